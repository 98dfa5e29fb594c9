/** `SmoothStream` between two web streams: pace, errors, cancelling, a slow consumer. */

import { expect, test } from "vitest";

import { IncompleteStreamError, type PlaybackOptions, SmoothStream } from "../src/index.js";
import { MAX_WAITING } from "../src/outlet.js";
import { type Delta, delta, HandClock, Reading, settle, textOf } from "./hand.js";

/** What goes in by hand comes out to a reading. */
function piped<T>(options: PlaybackOptions<T> = {}) {
  const clock = new HandClock();
  let source!: ReadableStreamDefaultController<T>;
  let cancelled: unknown = "not";
  const readable = new ReadableStream<T>({
    start: (controller) => void (source = controller),
    cancel: (reason) => void (cancelled = reason),
  });
  const smooth = new SmoothStream<T>({ clock, ...options });
  const out = readable.pipeThrough(smooth);
  return { clock, source, smooth, out, cancelled: () => cancelled };
}

test("text goes through at its pace, whole", async () => {
  const { clock, source, out, smooth } = piped<string>();
  const read = new Reading(out, clock);
  source.enqueue("Hello");
  await settle();
  expect(read.chunks.join("")).toMatch(/^H/);
  for (let burst = 0; burst < 10; burst++) {
    source.enqueue(" and some words");
    await clock.pass(100);
  }
  source.close();
  await clock.pass(150);
  expect([read.ended, read.chunks.join("")]).toEqual([
    "done",
    "Hello" + " and some words".repeat(10),
  ]);
  expect(new Set(read.timesMs).size).toBeGreaterThan(30);
  expect(smooth.stats.maxAddedDelayMs).toBeLessThanOrEqual(400);
});

test("an error of the source comes out after the text", async () => {
  const { clock, source, out } = piped<string>();
  const read = new Reading(out, clock);
  source.enqueue("some words that wait");
  await settle();
  source.error(new Error("cut"));
  await clock.pass(150);
  expect(read.ended).toHaveProperty("message", "cut");
  expect(read.chunks.join("")).toBe("some words that wait");
});

test("an answer that ends without its finish errors, after the text", async () => {
  const { clock, source, out } = piped<Delta>();
  const read = new Reading(out, clock);
  source.enqueue(delta("half an ans"));
  source.close();
  await clock.pass(150);
  expect(read.ended).toBeInstanceOf(IncompleteStreamError);
  expect(textOf(read.chunks)).toBe("half an ans");
});

test("cancelling the readable side stops the source and every timer", async () => {
  const { clock, source, out, cancelled } = piped<string>();
  const reader = out.getReader();
  source.enqueue("some words that wait");
  expect((await reader.read()).value).toBe("s");
  await reader.cancel("enough");
  await settle();
  expect(cancelled()).toBe("enough");
  expect(clock.numTimers).toBe(0);
});

test("leaving a loop over it stops the source", async () => {
  const { source, out, cancelled } = piped<string>();
  source.enqueue("some words");
  for await (const _ of out) break;
  await settle();
  expect(cancelled()).not.toBe("not");
});

test("the source is read on while pieces wait, until the consumer is far behind", async () => {
  const { source, out } = piped<string>({ enabled: false });
  for (let number = 0; number < MAX_WAITING + 500; number++) source.enqueue("x");
  await settle();
  expect(source.desiredSize).toBeLessThan(0);
  const read = new Reading(out);
  source.close();
  for (let turn = 0; turn < 20; turn++) await settle();
  expect([read.ended, read.chunks.length]).toEqual(["done", MAX_WAITING + 500]);
});

test("flush gives all at once", async () => {
  const { source, out, smooth } = piped<string>();
  const read = new Reading(out);
  source.enqueue("some words that wait");
  await settle();
  smooth.flush();
  await settle();
  expect(read.chunks.join("")).toBe("some words that wait");
});
