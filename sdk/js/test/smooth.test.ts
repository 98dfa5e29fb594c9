/** `smooth`: pieces at their times, errors after the text, the request closed however it ends. */

import { expect, test } from "vitest";

import { IncompleteStreamError, smooth, type SmoothOptions } from "../src/index.js";
import { GRACE_MS } from "../src/openai.js";
import { MAX_WAITING } from "../src/outlet.js";
import {
  type Delta,
  delta,
  HandClock,
  HandMotion,
  Reading,
  settle,
  Source,
  textOf,
} from "./hand.js";

function reading(options: SmoothOptions<Delta> = {}) {
  const [source, clock] = [new Source<Delta>(), new HandClock()];
  const stream = smooth(source, { clock, ...options });
  return { source, clock, stream, read: new Reading(stream, clock) };
}

test("the first chunk is there in the same turn, the rest at its pace, all within the bounds", async () => {
  const { source, clock, read } = reading();
  source.send(delta("one"));
  await settle();
  expect(textOf(read.chunks)).toBe("o");
  for (let burst = 0; burst < 10; burst++) {
    source.send(delta(" two three four five"));
    await clock.pass(100);
  }
  source.send(delta("", "stop"));
  source.end();
  await clock.pass(150);
  expect(read.ended).toBe("done");
  expect(textOf(read.chunks)).toBe("one" + " two three four five".repeat(10));
  expect(new Set(read.timesMs).size).toBeGreaterThan(30);
  expect(read.timesMs.at(-1)).toBeLessThanOrEqual(1000 + 150);
});

test("an error of the source comes after the text that arrived before it, soon", async () => {
  const { source, clock, read } = reading();
  const error = new Error("cut");
  source.send(delta("x"), delta(" one two three four"));
  source.end(error);
  await settle();
  expect(read.ended).toBe("open");
  await clock.pass(150);
  expect(read.ended).toBe(error);
  expect(textOf(read.chunks)).toBe("x one two three four");
});

test("a stream that ends before its finish is an error, after the text", async () => {
  const { source, clock, read } = reading();
  source.send(delta("half an ans"));
  source.end();
  await clock.pass(150);
  expect(read.ended).toBeInstanceOf(IncompleteStreamError);
  expect(textOf(read.chunks)).toBe("half an ans");
});

test("leaving the loop closes the request, even while the source waits", async () => {
  const source = new Source<Delta>();
  const stream = smooth(source, { clock: new HandClock() });
  source.send(delta("x"), delta(" one two"));
  for await (const _ of stream) break;
  expect(source.controller.signal.aborted).toBe(true);
  await settle();
  expect(source.numReturned).toBe(1);
  expect(await stream.next()).toEqual({ done: true, value: undefined });
});

test("abort ends the iteration, closes the request, and hands over what was not given out", async () => {
  const { source, clock, stream, read } = reading();
  source.send(delta("x"), delta(" one two three"));
  await clock.pass(10);
  const unshown = stream.abort();
  await settle();
  expect(read.ended).toBe("done");
  expect(textOf([...read.chunks, ...unshown])).toBe("x one two three");
  expect(source.controller.signal.aborted).toBe(true);
  expect(stream.abort()).toEqual([]);
  expect(clock.numTimers).toBe(0);
});

test("a signal closes the request, and its reason is the error", async () => {
  const leaving = new AbortController();
  const { source, clock, read } = reading({ signal: leaving.signal });
  source.send(delta("x"), delta(" one two three"));
  await clock.pass(10);
  leaving.abort();
  await settle();
  expect(read.ended).toBe(leaving.signal.reason);
  expect(source.controller.signal.aborted).toBe(true);
  expect(clock.numTimers).toBe(0);
});

test("a signal that was aborted before lets nothing begin", async () => {
  const { source, read } = reading({ signal: AbortSignal.abort() });
  source.send(delta("x"));
  await settle();
  expect(read.ended).toHaveProperty("name", "AbortError");
  expect(source.numRead).toBe(0);
});

test("whoever aborts the source's own controller gets the text and no error", async () => {
  const { source, clock, read } = reading();
  source.send(delta("half an ans"));
  source.controller.abort();
  source.end();
  await clock.pass(150);
  expect(read.ended).toBe("done");
  expect(textOf(read.chunks)).toBe("half an ans");
});

test("arrivals are told of at once and whole, and shown in order", async () => {
  const arrived: Delta[] = [];
  const { source, clock, read } = reading({ onArrival: (chunk) => arrived.push(chunk) });
  const call = {
    choices: [{ index: 0, delta: { tool_calls: [{ index: 0 }] }, finish_reason: null }],
  };
  const sent = [delta("x"), delta(" one two three"), call as Delta];
  source.send(...sent);
  await settle();
  expect(arrived).toEqual(sent);
  expect(read.chunks).not.toContain(call);
  await clock.pass(150);
  expect(read.chunks.at(-1)).toBe(call);
});

test("flush gives all at once", async () => {
  const { source, stream, read } = reading();
  source.send(delta("x"), delta(" one two three"));
  await settle();
  expect(textOf(read.chunks)).toBe("x");
  stream.flush();
  await settle();
  expect(textOf(read.chunks)).toBe("x one two three");
});

test("a source that never ends after its finish is waited for no longer than a grace", async () => {
  const { source, clock, read } = reading();
  source.send(delta("all", "stop"));
  await clock.pass(GRACE_MS - 1);
  expect([textOf(read.chunks), read.ended]).toEqual(["all", "open"]);
  await clock.pass(1);
  expect(read.ended).toBe("done");
  expect(source.controller.signal.aborted).toBe(true);
});

test("no grace begins before every choice that was asked for has its finish", async () => {
  const { source, clock, read } = reading({ numChoices: 2 });
  source.send(delta("one", "stop"));
  await clock.pass(2 * GRACE_MS);
  expect(read.ended).toBe("open");
  source.send(delta("two", "stop", 1));
  source.end();
  await clock.pass(150);
  expect([read.ended, textOf(read.chunks)]).toEqual(["done", "onetwo"]);
});

test("the source waits for a consumer that is far behind", async () => {
  const source = new Source<string>();
  const stream = smooth(source, { clock: new HandClock(), enabled: false });
  source.send(...Array<string>(MAX_WAITING + 500).fill("x"));
  await stream.next();
  for (let turn = 0; turn < 50; turn++) await settle();
  expect(source.numRead).toBeLessThanOrEqual(MAX_WAITING + 2);
  for (let number = 1; number < MAX_WAITING + 500; number++) await stream.next();
  expect(source.numRead).toBe(MAX_WAITING + 500);
});

test("reading begins with the first chunk that is asked for", async () => {
  const source = new Source<string>();
  source.send("x");
  const stream = smooth(source);
  await settle();
  expect(source.numRead).toBe(0);
  expect(stream.abort()).toEqual([]);
});

test("options that cannot be kept are refused at once", () => {
  expect(() => smooth(new Source<string>(), { maxDelayMs: -1 })).toThrow(RangeError);
  expect(() => smooth(new Source<string>(), "slow" as "silky")).toThrow("no preset 'slow'");
});

// ---- when pacing is of no use ------------------------------------------------------------------

test("in a hidden tab text comes through as it arrives, without timers, and the end at once", async () => {
  const motion = new HandMotion();
  const { source, clock, read } = reading({ motion });
  source.send(delta("x"), delta(" one two three"));
  await settle();
  expect(textOf(read.chunks)).toBe("x");
  motion.wanted = false;
  await settle();
  expect(textOf(read.chunks)).toBe("x one two three");
  const last = delta(" four five", "stop");
  source.send(last);
  source.end();
  await settle();
  expect([textOf(read.chunks), read.ended]).toEqual(["x one two three four five", "done"]);
  expect(read.chunks.at(-1)).toBe(last);
  expect(clock.numTimers).toBe(0);
  expect(motion.numWatchers).toBe(0);
});

test("back in sight the pace is kept again", async () => {
  const motion = new HandMotion();
  motion.wanted = false;
  const { source, clock, read } = reading({ motion });
  for (let burst = 0; burst < 8; burst++) {
    source.send(delta(" one two"));
    await clock.pass(100);
  }
  expect(new Set(read.timesMs).size).toBe(8);
  motion.wanted = true;
  for (let burst = 0; burst < 8; burst++) {
    source.send(delta(" one two"));
    await clock.pass(100);
  }
  expect(new Set(read.timesMs).size).toBeGreaterThan(30);
});

test("the tokens of what came in a hidden tab are no burst of what comes after", async () => {
  const motion = new HandMotion();
  motion.wanted = false;
  const { source, clock, stream, read } = reading({ motion });
  let tokens = 0;
  const send = async (number: number) => {
    tokens += number;
    source.send({ ...delta(" word".repeat(number)), usage: { completion_tokens: tokens } });
    await clock.pass(100);
  };
  for (let burst = 0; burst < 8; burst++) await send(20);
  motion.wanted = true;
  for (let burst = 0; burst < 8; burst++) await send(2);
  expect(stream.stats.unitsPerBurst).toBe(2);
  expect(textOf(read.chunks).length).toBeGreaterThan(5 * 8 * 20);
});
