// The official `@anthropic-ai/sdk` against the gateway; prints what it got for Python to judge.

import Anthropic from "@anthropic-ai/sdk";
import { GATEWAY, KEY, WEATHER, all, failure, report, setFaults } from "./shared.mjs";

const options = { baseURL: GATEWAY, maxRetries: 0, timeout: 15_000 };
const client = new Anthropic({ ...options, apiKey: KEY });
const stranger = new Anthropic({ ...options, apiKey: "another" });
const messages = [{ role: "user", content: "Tell me about rivers." }];
const ask = { model: "m", max_tokens: 40, messages };
const tools = [{ name: "weather", description: "Tells it.", input_schema: WEATHER }];

async function toolUsed() {
  const more = { ...ask, max_tokens: 200, tools };
  const stream = client.messages.stream({ ...more, tool_choice: { type: "any" } });
  let pieces = 0;
  stream.on("inputJson", () => pieces++);
  const message = await stream.finalMessage();
  const [block] = message.content;
  const result = { type: "tool_result", tool_use_id: block.id, content: "thunder" };
  const told = [
    ...messages,
    { role: "assistant", content: [block] },
    { role: "user", content: [result] },
  ];
  const answer = await client.messages.create({ ...more, messages: told });
  return { pieces, message, answer: answer.content[0].text };
}

async function died() {
  await setFaults({ kind: "die", at_token: 5 });
  const events = [];
  const error = await failure(async () =>
    all(await client.messages.create({ ...ask, stream: true }), events),
  );
  await setFaults();
  return { error, kinds: events.map((event) => event.type) };
}

async function aborted() {
  const stream = await client.messages.create({ ...ask, max_tokens: 2000, stream: true });
  let seen = 0;
  for await (const event of stream) {
    seen += event.type === "content_block_delta";
    if (seen >= 5) stream.controller.abort();
  }
  return seen;
}

await report({
  whole: () => client.messages.create(ask),
  streamed: () => client.messages.stream(ask).finalMessage(),
  events: async () => {
    const events = await all(await client.messages.create({ ...ask, stream: true }));
    return [...new Set(events.map((event) => event.type))];
  },
  tool_used: toolUsed,
  counted: () => client.messages.countTokens({ model: "alias", messages, tools }),
  wrong_key: () => failure(() => stranger.messages.create(ask)),
  wrong_model: () => failure(() => client.messages.create({ ...ask, model: "nope", stream: true })),
  refused: () => failure(() => client.messages.create({ ...ask, max_tokens: 5000 })),
  died,
  aborted,
});
