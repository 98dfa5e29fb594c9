// Our own package, as it is built, against the gateway; prints what it got for Python to judge.

import { Client, chunkText } from "../../sdk/js/dist/index.js";
import { GATEWAY, KEY, all, failure, report, setFaults } from "./shared.mjs";

const retries = { most: 0 };
const client = new Client(`${GATEWAY}/v1`, { apiKey: KEY, retries });
const stranger = new Client(`${GATEWAY}/v1`, { apiKey: "another", retries });
const edits = new Client(`${GATEWAY}/v1`, {
  apiKey: KEY,
  retries,
  headers: { "x-paceline-workload": "edit", "x-paceline-explain": "1" },
});
const model = "m";
const messages = [{ role: "user", content: "hi" }];
const rivers = [{ role: "user", content: "Tell me about rivers." }];
const repeat = [{ role: "user", content: "Repeat: a b c d e f g" }];
const textOf = (chunks) => chunks.map(chunkText).join("");

/** The name of the error that a stream ends with, and the text before it. */
async function broken(fault) {
  await setFaults(fault);
  const chunks = [];
  const error = await failure(async () =>
    all(await client.stream({ model, messages: rivers }, "silky"), chunks),
  );
  await setFaults();
  return { error, text: textOf(chunks) };
}

await report({
  whole: () => client.chat({ model, messages }),
  streamed: async () => textOf(await all(await client.stream({ model, messages }))),
  sampled: async () => {
    const more = { logprobs: true, max_tokens: 60, seed: 3, temperature: 0.5, n: 2 };
    const usage = { include_usage: true };
    const body = { model, messages: repeat, ...more, stream_options: usage };
    const stream = await edits.stream(body);
    const chunks = await all(stream);
    return { chunks, route: stream.route, stats: stream.stats };
  },
  models: () => client.models(),
  wrong_key: () => failure(() => stranger.stream({ model, messages })),
  wrong_model: () => failure(() => client.stream({ model: "nope", messages })),
  refused: () => failure(() => client.stream({ model, messages, max_tokens: 1e6 })),
  died: () => broken({ kind: "die", at_token: 5 }),
  aborted: async () => {
    const ask = { model, messages: rivers, max_tokens: 2000, ignore_eos: true };
    let seen = 0;
    for await (const _ of await client.stream(ask)) if (++seen >= 5) break;
    return seen;
  },
});
