/** `smooth` on the real `openai` package, against a server on a loopback port. */

import OpenAI from "openai";
import { afterEach, expect, test } from "vitest";

import { IncompleteStreamError, smooth } from "../src/index.js";
import { event, type Exchange, serve, SSE } from "./server.js";

const HI = {
  model: "m",
  messages: [{ role: "user" as const, content: "hi" }],
  stream: true as const,
};
let stop: (() => Promise<void>) | undefined;

afterEach(() => stop?.());

async function openai(answer: (exchange: Exchange) => void): Promise<OpenAI> {
  const served = await serve(answer);
  stop = served.stop;
  return new OpenAI({ baseURL: served.url, apiKey: "k", maxRetries: 0 });
}

test("a stream is paced, chunk for chunk of the package's own type", async () => {
  const client = await openai(({ response }) => {
    response.writeHead(200, SSE);
    response.end(event("Hello") + event(" you there", "stop") + "data: [DONE]\n\n");
  });
  const stream = smooth(await client.chat.completions.create(HI), { drainMs: 20 });
  let [text, finish, number]: [string, string | null, number] = ["", null, 0];
  for await (const { choices } of stream) {
    const [choice] = choices;
    text += choice?.delta.content ?? "";
    finish = choice?.finish_reason ?? finish;
    number++;
  }
  expect([text, finish]).toEqual(["Hello you there", "stop"]);
  expect(number).toBeGreaterThan(2);
});

test("leaving the loop closes the request", async () => {
  let closed!: Promise<boolean>;
  const client = await openai((exchange) => {
    closed = exchange.closed;
    exchange.response.writeHead(200, SSE).write(event("Hello"));
  });
  const source = await client.chat.completions.create(HI);
  for await (const _ of smooth(source)) break;
  expect(source.controller.signal.aborted).toBe(true);
  expect(await closed).toBe(false);
});

test("an end before the finish is an error, which the package does not tell", async () => {
  const client = await openai(({ response }) => {
    response.writeHead(200, SSE).end(event("half an ans"));
  });
  let text = "";
  const reading = async () => {
    const source = await client.chat.completions.create(HI);
    for await (const chunk of smooth(source)) text += chunk.choices[0]?.delta.content ?? "";
  };
  await expect(reading()).rejects.toBeInstanceOf(IncompleteStreamError);
  expect(text).toBe("half an ans");
});

test("the package's error for an error event comes after the text", async () => {
  const client = await openai(({ response }) => {
    const error = 'data: {"error":{"message":"no memory"}}\n\n';
    response.writeHead(200, SSE).end(event("half an ans") + error);
  });
  let text = "";
  const reading = async () => {
    const source = await client.chat.completions.create(HI);
    for await (const chunk of smooth(source)) text += chunk.choices[0]?.delta.content ?? "";
  };
  await expect(reading()).rejects.toBeInstanceOf(OpenAI.APIError);
  expect(text).toBe("half an ans");
});
