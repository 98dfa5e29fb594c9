/** The client: what is sent, what comes of every kind of answer, and when it asks again. */

import { afterEach, expect, test } from "vitest";

import {
  ApiError,
  AuthenticationError,
  BadRequestError,
  BadStreamError,
  type Chunk,
  chunkText,
  Client,
  type ClientOptions,
  ConnectError,
  ConnectionCutError,
  IncompleteStreamError,
  NotFoundError,
  OverloadedError,
  PacelineError,
  ServerError,
  StreamErrorEvent,
} from "../src/index.js";
import { retryAfterS } from "../src/answers.js";
import { RETRIES, retryAfterMs } from "../src/retries.js";
import { HandClock, settle } from "./hand.js";
import { event, type Exchange, serve, SSE } from "./server.js";

const HI = { model: "m", messages: [{ role: "user", content: "hi" }] };
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** A client of a server that answers so. */
async function client(answer: (exchange: Exchange) => void, options: ClientOptions = {}) {
  const { url, stop } = await serve(answer);
  stops.push(stop);
  return new Client(url, { retries: { most: 0 }, ...options });
}

/** The text that came, and the error at its end. */
async function read(stream: AsyncIterable<Chunk>): Promise<[string, unknown]> {
  let text = "";
  try {
    for await (const chunk of stream) text += chunkText(chunk);
    return [text, undefined];
  } catch (error) {
    return [text, error];
  }
}

/** What an answer of these bytes reads as. */
async function answered(body: string, head: Record<string, string> = SSE) {
  const it = await client(({ response }) => response.writeHead(200, head).end(body));
  return read(await it.stream(HI, "off"));
}

test("a stream is asked for with hints, and its chunks come as they were sent", async () => {
  let asked!: Exchange;
  const it = await client(
    (exchange) => {
      asked = exchange;
      exchange.response.writeHead(200, { ...SSE, "x-paceline-pool": "ngram" });
      exchange.response.write(": pace n=1 t=0 next=44\n" + event("Hello"));
      exchange.response.end(
        ": pace n=2 t=44 next=44\n" + event(" you there", "stop") + "data: [DONE]\n\n",
      );
    },
    { apiKey: "k", headers: { "x-mine": "1" } },
  );
  const stream = await it.stream({ ...HI, seed: 7 });
  expect(await read(stream)).toEqual(["Hello you there", undefined]);
  expect(asked.body).toEqual({ ...HI, seed: 7, stream: true });
  expect(asked.request.headers).toMatchObject({
    authorization: "Bearer k",
    "x-mine": "1",
    "x-paceline-hints": "1",
  });
  expect(stream.route).toMatchObject({ requestId: "r-1", pool: "ngram", workload: null });
  expect(stream.stats.numPieces).toBe(3); // one token, then two: the hints were read
});

test("leaving the loop closes the request", async () => {
  let closed!: Promise<boolean>;
  const it = await client((exchange) => {
    closed = exchange.closed;
    exchange.response.writeHead(200, SSE).write(event("Hello"));
  });
  for await (const _ of await it.stream(HI)) break;
  expect(await closed).toBe(false);
});

test("a signal closes the request, before the head and after it", async () => {
  const exchanges: Exchange[] = [];
  const it = await client((exchange) => exchanges.push(exchange));
  const early = new AbortController();
  const asking = it.stream(HI, { signal: early.signal });
  while (!exchanges.length) await settle();
  early.abort();
  await expect(asking).rejects.toBe(early.signal.reason);
  expect(await exchanges[0]!.closed).toBe(false);

  const late = new AbortController();
  const opened = it.stream(HI, { signal: late.signal });
  while (exchanges.length < 2) await settle();
  exchanges[1]!.response.writeHead(200, SSE).write(event("Hello"));
  const reading = read(await opened);
  await settle();
  late.abort();
  expect((await reading)[1]).toBe(late.signal.reason);
  expect(await exchanges[1]!.closed).toBe(false);
});

test("after the last event the connection is used again", async () => {
  const sockets = new Set<unknown>();
  const it = await client(({ request, response }) => {
    sockets.add(request.socket);
    response.writeHead(200, SSE).end(event("Hello", "stop") + "data: [DONE]\n\n");
  });
  for (let number = 0; number < 3; number++) {
    expect(await read(await it.stream(HI, "off"))).toEqual(["Hello", undefined]);
    await settle();
  }
  expect(sockets.size).toBe(1);
});

test("what comes after the finish is waited for: usage", async () => {
  const usage = 'data: {"id":"c","choices":[],"usage":{"completion_tokens":2}}\n\n';
  const it = await client(({ response }) => {
    response.writeHead(200, SSE).end(event("Hello", "stop") + usage + "data: [DONE]\n\n");
  });
  const chunks: Chunk[] = [];
  for await (const chunk of await it.stream(HI)) chunks.push(chunk);
  expect(chunks.at(-1)).toMatchObject({ usage: { completion_tokens: 2 } });
});

// ---- streams that do not end well --------------------------------------------------------------

test("a cut connection is an error after the text", async () => {
  const it = await client(({ response }) => {
    response.writeHead(200, SSE).write(event("half an ans"), () => response.destroy());
  });
  const [text, error] = await read(await it.stream(HI));
  expect(text).toBe("half an ans");
  expect(error).toBeInstanceOf(ConnectionCutError);
  expect(error).toHaveProperty("requestId", "r-1");
});

test.each(["", "data: [DONE]\n\n"])("an end before the finish is one too (%j)", async (end) => {
  const [text, error] = await answered(event("half an ans") + end);
  expect(text).toBe("half an ans");
  expect(error).toBeInstanceOf(IncompleteStreamError);
});

test("a choice that was asked for and never came is missed", async () => {
  const it = await client(({ response }) => {
    response.writeHead(200, SSE).end(event("one", "stop") + "data: [DONE]\n\n");
  });
  const [text, error] = await read(await it.stream({ ...HI, n: 2 }, "off"));
  expect(text).toBe("one");
  expect(error).toBeInstanceOf(IncompleteStreamError);
});

test.each([
  ['data: {"error":{"message":"no memory","type":"server_error","code":500}}', "no memory"],
  ['event: error\ndata: {"message":"no memory","type":"server_error","code":500}', "no memory"],
  ['data: {"object":"error","message":"no memory","type":"server_error","code":500}', "no memory"],
])("an error event is an error after the text (%s)", async (said, message) => {
  const [text, error] = await answered(`${event("half")}${said}\n\n`);
  expect(text).toBe("half");
  expect(error).toBeInstanceOf(StreamErrorEvent);
  expect(error).toMatchObject({ message, type: "server_error", code: 500, requestId: "r-1" });
});

test.each([
  ["data: not json\n\n", "not a JSON object: not json"],
  ["data: [1]\n\n", "not a JSON object: [1]"],
  ['data: {"choices":7}\n\n', 'odd choices: {"choices":7}'],
])("an event that cannot be read is never skipped (%j)", async (said, message) => {
  const [text, error] = await answered(event("half") + said + event(" whole", "stop"));
  expect(text).toBe("half");
  expect(error).toBeInstanceOf(BadStreamError);
  expect(error).toHaveProperty("message", message);
});

test("an answer that is no stream is refused", async () => {
  const [, error] = await answered("{}", { "content-type": "application/json" });
  expect(error).toBeInstanceOf(BadStreamError);
});

test("a server that falls silent is left after the timeout, head or stream", async () => {
  for (const head of [false, true]) {
    const clock = new HandClock();
    let arrived = false;
    const answer = ({ response }: Exchange) => {
      if (head) response.writeHead(200, SSE).write(event("Hello"));
      arrived = true;
    };
    const it = await client(answer, { clock, timeoutMs: 1000 });
    const asking = it.stream(HI, "off").then(read, (error: unknown) => ["", error]);
    while (!arrived || clock.numTimers !== 1) await settle();
    if (head) for (let turn = 0; turn < 20; turn++) await settle();
    await clock.pass(1000);
    const [text, error] = await asking;
    expect(text).toBe(head ? "Hello" : "");
    expect(error).toBeInstanceOf(head ? ConnectionCutError : ConnectError);
    expect((error as Error).message).toContain("silent for 1000 ms");
  }
});

// ---- answers that refuse -----------------------------------------------------------------------

test.each([
  [400, BadRequestError],
  [401, AuthenticationError],
  [403, AuthenticationError],
  [404, NotFoundError],
  [409, BadRequestError],
  [422, BadRequestError],
  [429, OverloadedError],
  [500, ServerError],
  [503, OverloadedError],
])("%d is %s", async (status, Kind) => {
  const error = { message: "so it is", type: "t", code: "c", param: "p" };
  const it = await client(({ response }) => {
    response.writeHead(status, { "x-request-id": "r-2", "retry-after": "7" });
    response.end(JSON.stringify({ error }));
  });
  const got = await it.stream(HI).catch((refused: unknown) => refused);
  expect(got).toBeInstanceOf(Kind);
  expect(got).toBeInstanceOf(PacelineError);
  expect(got).toMatchObject({
    ...error,
    status,
    requestId: "r-2",
    retryAfterS: 7,
    name: Kind.name,
  });
});

test.each(["<html>", '{"detail":"so it is"}', '{"error":"so it is"}', "[]", ""])(
  "a refusal in another form is one as well (%j)",
  async (body) => {
    const it = await client(({ response }) => response.writeHead(502).end(body));
    const got = await it.chat(HI).catch((refused: unknown) => refused);
    expect(got).toBeInstanceOf(ServerError);
    expect((got as ApiError).message).toBe(
      body.includes("so") ? "so it is" : "the server said 502",
    );
  },
);

test("a server that is not there is a ConnectError that says why", async () => {
  const { url, stop } = await serve(() => undefined);
  await stop();
  const got = await new Client(url, { retries: { most: 0 } }).models().catch((e: unknown) => e);
  expect(got).toBeInstanceOf(ConnectError);
  expect((got as Error).message).toContain("ECONNREFUSED");
});

test("models and whole answers", async () => {
  const it = await client(({ request, body, response }) => {
    const whole = { choices: [{ index: 0, message: { content: "hi" } }], asked: body };
    response.end(JSON.stringify(request.method === "GET" ? { data: [{ id: "m" }, null] } : whole));
  });
  expect(await it.models()).toEqual(["m"]);
  expect(await it.chat(HI)).toHaveProperty("asked", { ...HI, stream: false });
});

// ---- asking again ------------------------------------------------------------------------------

test("what says 'later' is asked again after the time it names", async () => {
  const clock = new HandClock();
  let number = 0;
  const it = await client(
    ({ response }) => {
      if (++number < 3) response.writeHead(503, { "retry-after": "4" }).end("{}");
      else response.end('{"data":[{"id":"m"}]}');
    },
    { clock, retries: {} },
  );
  const asking = it.models();
  for (let tries = 1; tries < 3; tries++) {
    // The timer of the wait, after that of the answer.
    while (number < tries || clock.numTimers !== 1) await settle();
    for (let turn = 0; turn < 20; turn++) await settle();
    await clock.pass(3999);
    expect(number).toBe(tries);
    await clock.pass(1);
  }
  expect(await asking).toEqual(["m"]);
});

test("how long is waited, and when not at all", () => {
  const later = (status: number, seconds: number | null = null) =>
    new ApiError("x", { status, retryAfterS: seconds });
  const wait = (number: number, error: unknown, chance = 0) =>
    retryAfterMs(RETRIES, number, error, () => chance);
  expect(wait(0, later(503))).toBe(500);
  expect(wait(1, later(503))).toBe(1000);
  expect(wait(1, later(503), 0.5)).toBe(750);
  expect(wait(2, later(503))).toBeUndefined();
  expect(wait(0, later(500))).toBeUndefined();
  expect(wait(0, later(429, 30))).toBe(30_000);
  expect(wait(0, later(429, 31))).toBeUndefined();
  expect(wait(0, new ConnectError("x"))).toBe(500);
  expect(wait(0, new Error("x"))).toBeUndefined();
});

test.each([
  [null, null],
  ["", null],
  ["7", 7],
  ["-1", null],
  ["1.5", null],
  ["soon", null],
  ["Mon, 30 Nov 2026 00:00:10 GMT", 10],
  ["Sun, 29 Nov 2026 23:59:59 GMT", 0],
])("Retry-After %j is %j seconds", (value, seconds) => {
  expect(retryAfterS(value, Date.parse("2026-11-30T00:00:00Z"))).toBe(seconds);
});
