/** `record`: streams with their timings, what is text replaced, the stream itself untouched. */

import { afterAll, beforeAll, expect, test } from "vitest";

import { Client, chunkText, type Chunk, SseParser } from "../src/index.js";
import { record, type Recorder } from "../src/inspector.js";
import { HandClock } from "./hand.js";
import { event, type Exchange, serve, SSE } from "./server.js";

let server: Awaited<ReturnType<typeof serve>>;
let answer: (exchange: Exchange) => void;

beforeAll(async () => {
  server = await serve((exchange) => answer(exchange));
});
afterAll(() => server.stop());

const messages = [{ role: "user", content: "My name is Ada Lovelace, born 1815." }];

async function streamed(recorder: Recorder, onFirst?: () => Promise<void>): Promise<string> {
  const client = new Client(server.url, { fetch: recorder.fetch });
  let text = "";
  for await (const chunk of await client.stream({ model: "m", messages, max_tokens: 9 }, "off")) {
    if (!text) await onFirst?.();
    text += chunkText(chunk);
  }
  return text;
}

const said = (data: string): Chunk[] =>
  new SseParser()
    .feed(data)
    .filter((one) => one.data !== "[DONE]")
    .map((one) => JSON.parse(one.data) as Chunk);

test("a stream is noted, its texts replaced, and comes out as it was", async () => {
  const clock = new HandClock();
  let rest = () => {};
  answer = ({ response }) => {
    const split = Buffer.from(event("日本語 été 42!")); // within a character, at 119
    response.writeHead(200, SSE);
    response.write(Buffer.concat([Buffer.from(event("Hello Ada, ")), split.subarray(0, 119)]));
    rest = () => {
      response.write(split.subarray(119));
      response.end(`: pace n=1\n\n${event("", "stop")}data: [DONE]\n\n`);
    };
  };
  const recorder = record({ clock });
  const onFirst = async () => {
    await clock.pass(20);
    rest();
  };
  expect(await streamed(recorder, onFirst)).toBe("Hello Ada, 日本語 été 42!");
  const [recording] = recorder.recordings;
  const lines = String(recording).trim().split("\n").map((line) => JSON.parse(line)); // prettier-ignore
  expect(lines[0]).toMatchObject({
    kind: "request",
    body: {
      model: "m",
      max_tokens: 9,
      messages: [{ role: "user", content: "Xx xxxx xx Xxx Xxxxxxxx, xxxx 0000." }],
    },
  });
  const all = lines.slice(1).map((line) => line.data as string);
  const chunks = said(all.join(""));
  expect(chunks.map(chunkText).join("")).toBe("Xxxxx Xxx, 字字字 xxx 00!");
  expect(chunks.at(-1)).toMatchObject({ model: "m", choices: [{ finish_reason: "stop" }] });
  expect(all.join("")).toContain(": pace n=1\n");
  expect(all.join("")).toContain("data: [DONE]");
  expect(String(recording)).not.toMatch(/Ada|Hello|日本|1815/);
  const times = lines.slice(1).map((line) => line.t_s as number);
  expect(times[0]).toBe(0);
  expect(times.at(-1)).toBe(0.02);
});

test("what spells the text is replaced as well, as many as they were", async () => {
  answer = ({ response }) => {
    const logprobs = { content: [{ token: "Ada", bytes: [65, 100, 97], logprob: -0.5 }] };
    const choice = { index: 0, delta: { content: "Ada" }, logprobs, token_ids: [7, 8] };
    response.writeHead(200, SSE);
    response.end(`data: ${JSON.stringify({ choices: [choice] })}\n\n${event("", "stop")}`);
  };
  const recorder = record();
  await streamed(recorder).catch(() => undefined);
  const [chunk] = said(recorder.recordings[0]!.reads.map(({ data }) => data).join(""));
  expect(chunk!["choices"]).toEqual([
    {
      index: 0,
      delta: { content: "Xxx" },
      logprobs: { content: [{ token: "Xxx", bytes: [0, 0, 0], logprob: -0.5 }] },
      token_ids: [0, 0],
    },
  ]);
});

test("with keepText the reads are what they were", async () => {
  const body = event("Hello Ada") + event("", "stop") + "data: [DONE]\n\n";
  answer = ({ response }) => response.writeHead(200, SSE).end(body);
  const recorder = record({ keepText: true, clock: new HandClock() });
  await streamed(recorder);
  const [recording] = recorder.recordings;
  expect(recording!.reads.map(({ data }) => data).join("")).toBe(body);
  expect(recording!.request).toHaveProperty("body.messages", messages);
});

test("what is no stream is let through and not noted", async () => {
  answer = ({ response }) => response.writeHead(200, { "content-type": "application/json" }).end('{"data":[{"id":"m"}]}'); // prettier-ignore
  const recorder = record();
  expect(await new Client(server.url, { fetch: recorder.fetch }).models()).toEqual(["m"]);
  expect(recorder.recordings).toEqual([]);
});
