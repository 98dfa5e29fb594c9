/** The bench's rules: everything shown, in order, nothing before it is there; and what each is. */

import { describe, expect, test } from "vitest";

import {
  ArrivalRate,
  FRAME_MS,
  type Peer,
  Proportional,
  RandomPieces,
  Sixtieth,
} from "../bench/peers.js";
import { realAiSdk } from "../bench/real-ai-sdk.js";
import { assistantUi } from "../bench/real-assistant-ui.js";
import { ofPeer, played, RULES } from "../bench/rules.js";
import type { Stream } from "../bench/streams.js";

function made(everyMs: number, ...texts: string[]): Stream {
  const bursts = texts.map((text, number) => ({
    atMs: number * everyMs,
    text,
    numTokens: text.trim().split(" ").length,
  }));
  return { name: "made", bursts, endMs: bursts.at(-1)!.atMs };
}

const STREAM = made(100, ...Array<string>(20).fill(" one two three"), " four");
const arrivals = STREAM.bursts.flatMap(({ atMs, numTokens }) =>
  Array<number>(numTokens).fill(atMs),
);

function expectWhole(times: number[]): void {
  expect(times.length).toBe(61);
  expect(times).toEqual([...times].sort((a, b) => a - b));
  for (const [at, time] of times.entries()) expect(time).toBeGreaterThanOrEqual(arrivals[at]!);
}

describe("every token in order, none before it is there", () => {
  test.each(Object.entries(RULES))("%s", (_, rule) => expectWhole(rule(STREAM)));
  test("AI SDK", async () => expectWhole(await realAiSdk(STREAM)));
});

test("the AI SDK's own waits for the space after a word, and then 10 ms each", async () => {
  expect(await realAiSdk(made(100, "a ", "b c d ", "e"))).toEqual([0, 100, 110, 120, 200]);
});

// Installed by make bench-smoothing.
const real = await assistantUi();

describe.skipIf(!real)("assistant-ui's own", () => {
  test("every token in order, none before it is there", () => expectWhole(ofPeer(real!)(STREAM)));

  test("a character takes 5 ms, and text comes with frames", () => {
    const shown = played(made(1000, "x".repeat(40), "y".repeat(40)), real!());
    expect(shown.map(([numChars]) => numChars).slice(0, 3)).toEqual([3, 6, 10]);
    for (const [, atMs] of shown)
      expect(atMs).toBeCloseTo(Math.round(atMs / FRAME_MS) * FRAME_MS, 6);
  });

  test("a text that ends before a frame has shown any of it comes at once", () => {
    expect(played(made(100, "x".repeat(500)), real!())).toEqual([[500, 0]]);
  });

  test("a large backlog takes more than a quarter of a second, as the rule has it", () => {
    const stream = made(1000, "x".repeat(500), "y");
    const wholeMs = (peer: Peer) => played(stream, peer).find(([numChars]) => numChars === 500)![1];
    expect(wholeMs(real!())).toBeGreaterThan(250);
    expect(Math.abs(wholeMs(real!()) - wholeMs(new Proportional()))).toBeLessThan(50);
  });

  test("what it needs of a page is gone afterwards, and time goes on", () => {
    ofPeer(real!)(STREAM);
    expect(globalThis).not.toHaveProperty("document");
    expect(globalThis).not.toHaveProperty("requestAnimationFrame");
    expect(Date.now()).toBeGreaterThan(1e12);
  });
});

test("the proportional rule takes a quarter of a second for a large backlog", () => {
  const shown = played(made(100, "x".repeat(500)), new Proportional());
  expect(shown.at(-1)![1]).toBeGreaterThan(250);
});

test("a sixtieth a frame, and all at the end", () => {
  const shown = played(made(1000, "x".repeat(600), "y"), new Sixtieth());
  expect(shown[0]![0]).toBe(10);
  expect(shown.at(-1)![0]).toBe(601);
  expect(shown.at(-1)![1]).toBeLessThan(1000 + 1000 / 60);
});

test("the rate rule holds no word longer than 400 ms after it is whole", () => {
  const shown = played(made(1, "word ".repeat(200)), new ArrivalRate());
  expect(shown.at(-1)![1]).toBeLessThanOrEqual(400);
});

test("pieces of one to three characters, 5 ms each", () => {
  const shown = played(made(1, "x".repeat(30)), new RandomPieces());
  for (const [at, [numChars, atMs]] of shown.entries()) {
    expect(numChars - (shown[at - 1]?.[0] ?? 0)).toBeLessThanOrEqual(3);
    expect(atMs).toBe(5 * at);
  }
});
