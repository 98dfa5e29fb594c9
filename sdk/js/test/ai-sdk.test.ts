/** `paceline/ai-sdk` with the real `ai` package: in the place of its own smoothStream. */

import { type ModelMessage, stepCountIs, streamText, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { describe, expect, test } from "vitest";
import { z } from "zod";

import { smoothStream, type SmoothStreamOptions, type StreamPart } from "../src/ai-sdk.js";
import { HandClock, HandMotion, settle } from "./hand.js";

type ModelPart =
  Awaited<ReturnType<MockLanguageModelV3["doStream"]>>["stream"] extends ReadableStream<infer PART>
    ? PART
    : never;

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const FINISH = (unified: "stop" | "tool-calls" = "stop"): ModelPart => ({
  type: "finish",
  usage: USAGE,
  finishReason: { unified, raw: unified },
});
const text = (delta: string, id = "1"): ModelPart => ({ type: "text-delta", id, delta });

/** A model's stream that is written by hand. */
class Wire {
  readonly stream: ReadableStream<ModelPart>;
  #controller!: ReadableStreamDefaultController<ModelPart>;
  cancelled = false;

  constructor() {
    this.stream = new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
        controller.enqueue({ type: "stream-start", warnings: [] });
      },
      cancel: () => {
        this.cancelled = true;
      },
    });
  }

  send(...parts: ModelPart[]): void {
    for (const part of parts) this.#controller.enqueue(part);
  }

  close(): void {
    this.#controller.close();
  }

  fail(error: unknown): void {
    this.#controller.error(error);
  }
}

interface Seen {
  type: string;
  text?: string;
  id?: string;
}

function answering(wires: Wire[], given: SmoothStreamOptions = {}) {
  const clock = new HandClock();
  const model = new MockLanguageModelV3({
    doStream: wires.map((wire) => ({ stream: wire.stream })),
  });
  const messages: ModelMessage[] = [{ role: "user", content: "hello" }];
  const transform = smoothStream({ clock, ...given });
  return { clock, settings: { model, messages, experimental_transform: transform } };
}

/** What comes, noted as it comes. */
function watching(stream: AsyncIterable<Seen>, clock: HandClock) {
  const seen: Seen[] = [];
  const timesMs: number[] = [];
  const ended = (async () => {
    for await (const part of stream) {
      seen.push(part);
      timesMs.push(clock.nowMs());
    }
  })();
  return { seen, timesMs, ended };
}

const said = (seen: Seen[], type = "text-delta") =>
  seen
    .filter((part) => part.type === type)
    .map((part) => part.text)
    .join("");

const types = (seen: Seen[]) =>
  seen.map((part) => part.type).filter((type, at, all) => type !== all[at - 1]);

async function ready(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await settle();
}

test("bursts become an even stream, the first piece at once, the text the same", async () => {
  const wire = new Wire();
  const { clock, settings } = answering([wire]);
  const result = streamText(settings);
  const { seen, timesMs, ended } = watching(result.fullStream, clock);
  wire.send({ type: "text-start", id: "1" }, text("one"));
  await ready();
  expect(said(seen)).toBe("o");
  for (let burst = 0; burst < 10; burst++) {
    wire.send(text(" two three four five"));
    await clock.pass(100);
  }
  wire.send({ type: "text-end", id: "1" }, FINISH());
  wire.close();
  await clock.pass(150);
  await ended;
  const whole = "one" + " two three four five".repeat(10);
  expect(said(seen)).toBe(whole);
  expect(await result.text).toBe(whole);
  expect(new Set(timesMs).size).toBeGreaterThan(30);
  expect(timesMs.at(-1)).toBeLessThanOrEqual(1000 + 150);
  expect(types(seen)).toEqual([
    ...["start", "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"],
  ]);
});

test("reasoning and text are paced apart and stay in order, with their ids and metadata", async () => {
  const wire = new Wire();
  const { clock, settings } = answering([wire]);
  const result = streamText(settings);
  const { seen, ended } = watching(result.fullStream, clock);
  const signature = { anthropic: { signature: "s" } };
  wire.send(
    { type: "reasoning-start", id: "r" },
    { type: "reasoning-delta", id: "r", delta: "let me think" },
    { type: "reasoning-delta", id: "r", delta: "", providerMetadata: signature },
    { type: "reasoning-end", id: "r" },
    { type: "text-start", id: "1" },
    text("an answer"),
    { type: "text-end", id: "1" },
    FINISH(),
  );
  wire.close();
  await clock.pass(400);
  await ended;
  expect(said(seen, "reasoning-delta")).toBe("let me think");
  expect(said(seen)).toBe("an answer");
  expect(types(seen).slice(2, 8)).toEqual([
    ...["reasoning-start", "reasoning-delta", "reasoning-end"],
    ...["text-start", "text-delta", "text-end"],
  ]);
  const deltas = seen.filter(({ type }) => type === "reasoning-delta");
  expect(new Set(deltas.map(({ id }) => id))).toEqual(new Set(["r"]));
  expect(deltas.length).toBeGreaterThan(5);
  expect((await result.reasoning)[0]).toMatchObject({ providerMetadata: signature });
});

test("a tool runs while the text before its call is still being shown; the call keeps its place", async () => {
  const [first, second] = [new Wire(), new Wire()];
  const { clock, settings } = answering([first, second]);
  const ran: number[] = [];
  const weather = tool({
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => {
      ran.push(clock.nowMs());
      return `sun in ${city}`;
    },
  });
  const result = streamText({ ...settings, tools: { weather }, stopWhen: stepCountIs(2) });
  const { seen, timesMs, ended } = watching(result.fullStream, clock);
  first.send(
    { type: "text-start", id: "1" },
    text("I shall look at the weather for you."),
    { type: "text-end", id: "1" },
    { type: "tool-call", toolCallId: "c", toolName: "weather", input: '{"city":"Rome"}' },
    FINISH("tool-calls"),
  );
  first.close();
  await ready();
  expect(ran).toEqual([0]);
  expect(said(seen).length).toBeLessThan(30);
  expect(types(seen)).not.toContain("tool-call");
  await clock.pass(150);
  await ready();
  expect(said(seen)).toBe("I shall look at the weather for you.");
  expect(types(seen)).toContain("tool-result");
  expect(timesMs[seen.findIndex(({ type }) => type === "tool-call")]).toBeLessThanOrEqual(150);
  second.send({ type: "text-start", id: "2" }, text("It is sunny.", "2"));
  second.send({ type: "text-end", id: "2" }, FINISH());
  second.close();
  await clock.pass(1000);
  await ended;
  expect(said(seen)).toBe("I shall look at the weather for you.It is sunny.");
  expect((await result.steps).length).toBe(2);
});

test("an abort gives out what arrived, and its part comes last", async () => {
  const wire = new Wire();
  const leaving = new AbortController();
  const { clock, settings } = answering([wire]);
  const result = streamText({ ...settings, abortSignal: leaving.signal });
  const { seen, ended } = watching(result.fullStream, clock);
  wire.send({ type: "text-start", id: "1" }, text("one two three four"));
  await ready();
  expect(said(seen).length).toBeLessThan(10);
  leaving.abort();
  wire.fail(leaving.signal.reason); // as `fetch` does
  await ready();
  expect(said(seen)).toBe("one two three four");
  expect(seen.at(-1)?.type).toBe("abort");
  await ended;
  expect(clock.numTimers).toBe(0);
});

test("an error comes after the text that arrived before it", async () => {
  const wire = new Wire();
  const { clock, settings } = answering([wire]);
  const told: unknown[] = [];
  const result = streamText({ ...settings, onError: ({ error }) => void told.push(error) });
  const { seen, ended } = watching(result.fullStream, clock);
  const error = new Error("overloaded");
  wire.send({ type: "text-start", id: "1" }, text("half an answer"), { type: "error", error });
  wire.close();
  await clock.pass(150);
  await ended;
  expect(said(seen)).toBe("half an answer");
  expect(told).toContain(error);
  expect(types(seen).indexOf("error")).toBeGreaterThan(types(seen).indexOf("text-delta"));
});

test("two transforms in a list work one after the other", async () => {
  const wire = new Wire();
  const { clock, settings } = answering([wire]);
  const upper = () =>
    new TransformStream<Seen, Seen>({
      transform(part, controller) {
        controller.enqueue(part.text ? { ...part, text: part.text.toUpperCase() } : part);
      },
    }) as TransformStream;
  const transforms = [settings.experimental_transform, upper];
  const result = streamText({ ...settings, experimental_transform: transforms });
  const { seen, ended } = watching(result.fullStream, clock);
  wire.send({ type: "text-start", id: "1" }, text("one two"), { type: "text-end", id: "1" });
  wire.send(FINISH());
  wire.close();
  await clock.pass(150);
  await ended;
  expect(said(seen)).toBe("ONE TWO");
});

// ---- the transform alone -----------------------------------------------------------------------

function alone(options: SmoothStreamOptions = {}) {
  const clock = new HandClock();
  const { readable, writable } = smoothStream({ clock, ...options })<StreamPart>();
  const seen: Seen[] = [];
  void readable.pipeTo(new WritableStream({ write: (part) => void seen.push(part as Seen) }));
  const writer = writable.getWriter();
  return {
    clock,
    seen,
    write: (part: Seen) => void writer.write(part),
    close: () => void writer.close(),
  };
}

const delta = (words: string, more: object = {}): Seen => ({
  type: "text-delta",
  id: "1",
  text: words,
  ...more,
});

const texts = (seen: Seen[]) => seen.map((part) => part.text);

test("a stream that closes without text-end loses nothing", async () => {
  const { clock, seen, write, close } = alone();
  write(delta("Hello wor"));
  write(delta("ld"));
  close();
  await clock.pass(150);
  expect(said(seen)).toBe("Hello world");
});

test("whoever cancels stops what comes before, and nothing is left running", async () => {
  const clock = new HandClock();
  const { readable, writable } = smoothStream({ clock })<StreamPart>();
  const wire = new Wire();
  const before = wire.stream.pipeTo(writable as WritableStream);
  const gone = expect(before).rejects.toBe("enough");
  wire.send(delta("one two three four") as unknown as ModelPart);
  const reader = readable.getReader();
  while ((await reader.read()).value?.type !== "text-delta");
  expect(clock.numTimers).toBe(1);
  await reader.cancel("enough");
  await gone;
  expect([wire.cancelled, clock.numTimers]).toEqual([true, 0]);
});

test("metadata is on every piece of its text", async () => {
  const { clock, seen, write, close } = alone();
  write(delta("one two", { providerMetadata: { a: { b: 1 } } }));
  close();
  await clock.pass(150);
  expect(seen.length).toBeGreaterThan(2);
  for (const part of seen) expect(part).toHaveProperty("providerMetadata.a.b", 1);
});

test.each([null, 0])("delayInMs: %s passes parts on as they come", async (delayInMs) => {
  const { seen, write } = alone({ delayInMs });
  const parts = [delta("one two three"), { type: "tool-call" }, delta(" four")];
  for (const part of parts) write(part);
  await ready();
  for (const [at, part] of parts.entries()) expect(seen[at]).toBe(part);
});

test("in a hidden tab parts pass as they come", async () => {
  const motion = new HandMotion();
  const { clock, seen, write } = alone({ motion });
  motion.wanted = false;
  const part = delta("one two three");
  write(part);
  await ready();
  expect(seen).toEqual([part]);
  expect(clock.numTimers).toBe(0);
});

describe("chunking", () => {
  async function chunked(chunking: SmoothStreamOptions["chunking"], ...deltas: string[]) {
    const { clock, seen, write, close } = alone({ chunking });
    for (const words of deltas) {
      write(delta(words));
      await clock.pass(50);
    }
    close();
    await clock.pass(150);
    expect(said(seen)).toBe(deltas.join(""));
    return texts(seen);
  }

  test("word by word", async () => {
    expect(await chunked("word", "one two th", "ree four")).toEqual([
      ...["one", " two", " three", " four"],
    ]);
  });

  test("line by line", async () => {
    expect(await chunked("line", "a b\nc", " d\n\ne")).toEqual(["a b\n", "c d\n\n", "e"]);
  });

  test("by a pattern, whatever its flags", async () => {
    expect(await chunked(/_/g, "a_b_", "c_d")).toEqual(["a_", "b_", "c_", "d"]);
  });

  test("a pattern that matches nothing does not hang", async () => {
    expect((await chunked(/x*/, "abc")).join("")).toBe("abc");
  });

  test("by a segmenter, which does not cut what still grows", async () => {
    const words = new Intl.Segmenter("en", { granularity: "word" });
    expect(await chunked(words, "inter", "national, yes")).toEqual([
      ...["international", ",", " ", "yes"],
    ]);
    const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
    expect(await chunked(graphemes, "a👨‍", "👩‍👧b")).toEqual(["a", "👨‍👩‍👧", "b"]);
  });

  test("by a function", async () => {
    expect(await chunked((buffer) => buffer.slice(0, 2), "abcde")).toHaveLength(3);
  });

  test("what is no chunking is refused at once", () => {
    expect(() => smoothStream({ chunking: "letter" as "word" })).toThrow(TypeError);
  });

  test("text in a chunk that is not whole comes before a part, and at the end", async () => {
    const { clock, seen, write } = alone({ chunking: "line" });
    write(delta("no line"));
    write({ type: "tool-call" });
    await clock.pass(150);
    expect(seen.map((part) => part.text ?? part.type)).toEqual(["no line", "tool-call"]);
  });
});

test("options that cannot be kept are refused at once", () => {
  expect(() => smoothStream({ maxDelayMs: -1 })).toThrow(RangeError);
});
