// The official `openai` package against the gateway; prints what it got for Python to judge.

import { createReadStream } from "node:fs";
import { GATEWAY, KEY, WEATHER, all, failure, report, setFaults } from "./shared.mjs";

const { OPENAI_PACKAGE, RECORDING } = process.env;
const { default: OpenAI } = await import(OPENAI_PACKAGE);

const options = { baseURL: `${GATEWAY}/v1`, maxRetries: 0, timeout: 15_000 };
const client = new OpenAI({ ...options, apiKey: KEY });
const stranger = new OpenAI({ ...options, apiKey: "another" });
const chat = client.chat.completions;
const model = "m";
const messages = [{ role: "user", content: "hi" }];
const rivers = [{ role: "user", content: "Tell me about rivers." }];
const textOf = (chunks) => chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
const finishes = (chunks) =>
  chunks.flatMap((chunk) => chunk.choices.map((choice) => choice.finish_reason)).filter(Boolean);

async function tools() {
  const given = [];
  const runner = chat.runTools({
    model: "alias",
    stream: true,
    messages: [{ role: "user", content: "Use weather for Oslo." }],
    tools: [
      {
        type: "function",
        function: {
          name: "weather",
          parameters: WEATHER,
          parse: JSON.parse,
          function: (args) => {
            given.push(args);
            return "hail, 3 degrees";
          },
        },
      },
    ],
  });
  const answer = await runner.finalContent();
  return { given, answer };
}

async function usage(stream_options) {
  const chunks = await all(
    await chat.create({ model, messages, stream: true, max_tokens: 6, stream_options }),
  );
  return {
    text: textOf(chunks),
    usages: chunks.filter((chunk) => chunk.usage).map((chunk) => chunk.usage),
    withoutChoices: chunks.filter((chunk) => !chunk.choices.length).length,
  };
}

async function died() {
  await setFaults({ kind: "die", at_token: 5 });
  const chunks = [];
  const error = await failure(async () =>
    all(await chat.create({ model, messages: rivers, stream: true }), chunks),
  );
  await setFaults();
  return { error, text: textOf(chunks), finishes: finishes(chunks) };
}

async function aborted() {
  const ask = { model, messages: rivers, stream: true, max_tokens: 2000, ignore_eos: true };
  const stream = await chat.create(ask);
  let seen = 0;
  for await (const chunk of stream) {
    seen += chunk.choices.length;
    if (seen >= 5) stream.controller.abort();
  }
  return seen;
}

await report({
  whole: () => chat.create({ model, messages }),
  streamed: async () => {
    const chunks = await all(await chat.create({ model, messages, stream: true }));
    return { text: textOf(chunks), finishes: finishes(chunks) };
  },
  put_together: () => chat.stream({ model, messages }).finalChatCompletion(),
  usage_asked: () => usage({ include_usage: true }),
  usage_not_asked: () => usage(undefined),
  tools,
  completion: () => client.completions.create({ model, prompt: "The river", max_tokens: 8 }),
  response: () => client.responses.create({ model, input: "hi" }),
  response_streamed: () => client.responses.stream({ model, input: "hi" }).finalResponse(),
  response_events: async () => {
    const events = await all(await client.responses.create({ model, input: "hi", stream: true }));
    return [...new Set(events.map((event) => event.type))];
  },
  embeddings: () => client.embeddings.create({ model, input: ["The river runs.", "Bread rises."] }),
  transcription: () =>
    client.audio.transcriptions.create({ model, file: createReadStream(RECORDING) }),
  transcription_streamed: async () => {
    const file = createReadStream(RECORDING);
    return textOf(await all(await client.audio.transcriptions.create({ model, file, stream: true })));
  },
  models: async () => (await all(client.models.list())).map((card) => card.id),
  request_id: async () => {
    const { data, request_id } = await chat.create({ model, messages }).withResponse();
    return { request_id, same: data._request_id === request_id };
  },
  wrong_key: () => failure(() => stranger.chat.completions.create({ model, messages })),
  wrong_model: () => failure(() => chat.create({ model: "nope", messages, stream: true })),
  refused: () => failure(() => chat.create({ model, messages, max_tokens: 1e6, stream: true })),
  died,
  aborted,
});
