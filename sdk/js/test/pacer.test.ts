/** The pacer: the vectors that every language passes, and what holds whatever arrives. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";

import type { Piece } from "../src/cutting.js";
import { Pacer as CorePacer } from "../src/core.js";
import { Pacer, PRESETS, type PacerOptions, type Pacing } from "../src/index.js";
import { type Case, optionsOf, play } from "./pacer-cases.js";
import { cases } from "./vectors.js";

const LANES = ["0.text", "0.reasoning", "1.text"];
const TICK_MS = 0.001;

// ---- the vectors -------------------------------------------------------------------------------

const VECTORS = cases<Case>("pacer.json");

function expectAlike(played: unknown[][], shown: unknown[][]): void {
  const said = (entries: unknown[][]) => entries.map(([, ...what]) => what);
  expect(said(played)).toEqual(said(shown));
  const late = played.map(([at], number) => Math.abs(+at! - +shown[number]![0]!));
  expect(Math.max(0, ...late)).toBeLessThanOrEqual(0.01);
}

test.each(VECTORS)("vector: %s", (_, one) => expectAlike(play(one), one.shown));

/** What the core leaves to the pacers on it. */
function isBeyondTheCore({ name, options, steps }: Case): boolean {
  const texts = steps.map(({ push }) => push ?? "").join("");
  return options["unit"] === "word" || /[`\x1b]/.test(texts) || name.includes("read with care");
}

describe("the core alone", () => {
  const within = VECTORS.filter(([, one]) => !isBeyondTheCore(one));

  test("is measured by most of them", () => expect(within.length).toBeGreaterThan(25));

  test.each(within)("vector: %s", (_, one) => {
    expectAlike(play(one, new CorePacer(optionsOf(one.options))), one.shown);
  });

  test("text out is text in", () => {
    fc.assert(
      fc.property(arrivals, options, (stream, { unit, ...chosen }) => {
        const pacer = new CorePacer({ ...chosen, unit: unit === "word" ? "token" : unit });
        const [, endMs] = feed(pacer, stream);
        pacer.finish(endMs);
        const pieces = pacer.take(Infinity);
        for (const lane of LANES) expect(textOf(pieces, lane)).toBe(sent(stream, lane));
      }),
    );
  });
});

// ---- the laws ----------------------------------------------------------------------------------

interface Arrival {
  gapMs: number;
  text: string;
  numTokens: number | undefined;
  lane: string;
  part: boolean;
}

const texts = fc.oneof(
  fc.string({ maxLength: 12, unit: "binary" }),
  fc.constantFrom("Hello", " world", "👨‍", "👩‍👧", "🇩", "🇪 ", "\u0301", "```", "py\n", "\x1b[3", "1m", "中文字", " "),
); // prettier-ignore
const arrivals: fc.Arbitrary<Arrival[]> = fc.array(
  fc.record({
    gapMs: fc.constantFrom(0, 0.5, 3, 5, 20, 45, 120, 450, 2000),
    text: texts,
    numTokens: fc.option(fc.nat(6), { nil: undefined }),
    lane: fc.constantFrom(...LANES),
    part: fc.constantFrom(false, false, false, true),
  }),
  { maxLength: 25 },
);
const options: fc.Arbitrary<PacerOptions> = fc.record({
  maxDelayMs: fc.constantFrom(0, 50, 400, 1000),
  minDelayMs: fc.constantFrom(0, 100),
  drainMs: fc.constantFrom(0, 150),
  holdMs: fc.constant(100),
  unit: fc.constantFrom("grapheme" as const, "token" as const, "word" as const),
  enabled: fc.constantFrom(true, true, true, false),
});

type Shown = [number, Piece][];

/** What was shown so far, and the time. With `looks`, it is asked for at every arrival. */
function feed(pacer: CorePacer, stream: Arrival[], looks = false): [Shown, number] {
  const shown: Shown = [];
  let nowMs = 0;
  stream.forEach(({ gapMs, text, numTokens, lane, part }, number) => {
    nowMs += gapMs;
    if (part) pacer.part(number, nowMs);
    else pacer.push(text, nowMs, { lane, numTokens, cargo: number });
    if (looks) shown.push(...pacer.takeTimed(nowMs));
  });
  return [shown, nowMs];
}

/** All that is shown, and when the stream was finished. */
function run(stream: Arrival[], chosen?: Pacing): [Shown, number] {
  const pacer = new Pacer(chosen);
  const [, endMs] = feed(pacer, stream);
  pacer.finish(endMs);
  return [pacer.takeTimed(Infinity), endMs];
}

const textOf = (pieces: Piece[], lane: string): string =>
  pieces.map((piece) => (piece.lane === lane ? piece.text : "")).join("");

const sent = (stream: Arrival[], lane: string): string =>
  stream.map((one) => (one.lane === lane && !one.part ? one.text : "")).join("");

function law(name: string, holds: (stream: Arrival[], chosen: PacerOptions) => void): void {
  test(name, () => fc.assert(fc.property(arrivals, options, holds)));
}

law("text out is text in", (stream, chosen) => {
  const pieces = run(stream, chosen)[0].map(([, piece]) => piece);
  for (const lane of LANES) expect(textOf(pieces, lane)).toBe(sent(stream, lane));
});

law("everything keeps its order", (stream, chosen) => {
  const pieces = run(stream, chosen)[0].map(([, piece]) => piece);
  const cargoes = pieces.map((piece) => piece.cargo as number);
  expect(cargoes).toEqual([...cargoes].sort((a, b) => a - b));
  expect(new Set(cargoes)).toEqual(new Set(stream.keys()));
  for (const [number, arrival] of stream.entries()) {
    const own = pieces.filter((piece) => piece.cargo === number);
    expect(own.map((piece) => piece.first)).toEqual(own.map((_, place) => place === 0));
    expect(own.map((piece) => piece.last)).toEqual(own.map((_, place) => place === own.length - 1));
    const edges = own.map((piece) => piece.tokens);
    for (let at = 1; at < edges.length; at++) expect(edges[at]![0]).toBe(edges[at - 1]![1]);
    if (!arrival.part)
      expect([edges[0]![0], edges.at(-1)![1]]).toEqual([0, arrival.numTokens ?? 0]);
  }
});

law("nothing is early, nor held longer than allowed", (stream, chosen) => {
  const [shown] = run(stream, chosen);
  let beforeMs = -Infinity;
  for (const [atMs, piece] of shown) {
    expect(atMs).toBeGreaterThanOrEqual(Math.max(beforeMs, piece.arrivalMs - TICK_MS));
    expect(atMs - piece.arrivalMs).toBeLessThanOrEqual(chosen.maxDelayMs + TICK_MS);
    beforeMs = atMs;
  }
});

law("all is shown soon after the finish", (stream, chosen) => {
  const [shown, endMs] = run(stream, chosen);
  for (const [atMs] of shown) expect(atMs).toBeLessThanOrEqual(endMs + chosen.drainMs + TICK_MS);
});

law("what stands before a part is hurried", (stream, chosen) => {
  for (const [atMs, { lane, arrivalMs }] of run(stream, chosen)[0])
    if (!lane) expect(atMs - arrivalMs).toBeLessThanOrEqual(chosen.drainMs + TICK_MS);
});

law("the first unit is out at once", (stream, chosen) => {
  const first = stream.find(({ text, part }) => text && !part);
  if (!first) return;
  const [shown] = feed(new Pacer(chosen), [first], true);
  expect(shown[0]?.[1].text).toBeTruthy();
});

law("when it is asked makes no difference", (stream, chosen) => {
  const pacer = new Pacer(chosen);
  const [asked, endMs] = feed(pacer, stream, true);
  pacer.finish(endMs);
  for (let dueMs; (dueMs = pacer.nextDueMs) !== undefined;) asked.push(...pacer.takeTimed(dueMs));
  const plain = (shown: Shown) =>
    shown.map(([atMs, { lane, text }]) => [Math.round(atMs * 1e6), lane, text]);
  expect(plain(asked)).toEqual(plain(run(stream, chosen)[0]));
});

describe.each(["flush", "abort"] as const)("%s", (leave) => {
  law("loses nothing", (stream, chosen) => {
    const pacer = new Pacer(chosen);
    const [shown, nowMs] = feed(pacer, stream, true);
    const pieces = [...shown.map(([, piece]) => piece), ...pacer[leave](nowMs)];
    for (const lane of LANES) expect(textOf(pieces, lane)).toBe(sent(stream, lane));
    expect(pacer.nextDueMs).toBeUndefined();
    expect(pacer.take(nowMs + 1000)).toEqual([]);
    expect(pacer[leave](nowMs + 1000)).toEqual([]);
  });
});

const CLUSTERS = ["a", "é", " ", "\n", "👨‍👩‍👧‍👦", "👍🏽", "❤️", "🇩🇪", "की", "\x1b[31m", "字"];

test("no piece ends within a character", () => {
  const clusters = fc.array(fc.constantFrom(...CLUSTERS), { minLength: 1, maxLength: 20 });
  const sizes = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1 });
  const units = fc.constantFrom("grapheme" as const, "token" as const, "word" as const);
  fc.assert(
    fc.property(clusters, sizes, units, (drawn, cuts, unit) => {
      const whole = ["x", ...drawn]; // the first unit is never held
      const text = [...whole.join("")];
      const edges = new Set(whole.map((_, number) => whole.slice(0, number + 1).join("").length));
      const pacer = new Pacer({ unit });
      let [at, nowMs] = [1, 0];
      pacer.push("x", nowMs);
      while (at < text.length) {
        const size = cuts[at % cuts.length]!;
        nowMs += 3; // the longest character arrives within half the hold
        pacer.push(text.slice(at, (at += size)).join(""), nowMs);
      }
      pacer.finish(nowMs);
      let shownTo = 0;
      for (const piece of pacer.take(Infinity))
        expect(edges).toContain((shownTo += piece.text.length));
    }),
  );
});

// ---- the shape of the output -------------------------------------------------------------------

const words = (number: number): string => " word".repeat(number);

/** Times of the units of a periodic stream. */
function bursts(periodMs: number, size: number, number: number): number[] {
  const pacer = new Pacer();
  for (let burst = 0; burst < number; burst++)
    pacer.push(words(size), burst * periodMs, { numTokens: size });
  pacer.finish((number - 1) * periodMs);
  return pacer.takeTimed(Infinity).map(([atMs]) => atMs);
}

const gapsOf = (times: number[]): number[] =>
  times.slice(1).map((at, before) => at - times[before]!);

test("periodic bursts become even", () => {
  const gaps = gapsOf(bursts(45, 3, 60).slice(60, -30));
  expect(Math.max(...gaps)).toBeLessThan(16.5);
  expect(Math.min(...gaps)).toBeGreaterThan(13.5);
});

test("a slow stream of single tokens is neither sped up nor bunched", () => {
  const gaps = gapsOf(bursts(125, 1, 40).slice(0, -3));
  expect(Math.max(...gaps)).toBeLessThanOrEqual(125 * 1.5 + TICK_MS);
});

test("a delta that ends within a surrogate pair waits for the rest of it", () => {
  const pacer = new Pacer();
  for (const [number, text] of ["Hi", "\ud83d", "\ude00!"].entries()) pacer.push(text, number * 9);
  pacer.finish(30);
  expect(pacer.take(Infinity).map((piece) => piece.text)).toEqual(["H", "i", "😀", "!"]);
});

test("tokens that make one character are that character's", () => {
  const pacer = new Pacer();
  pacer.push("a🇩🇪b", 0, { numTokens: 4, tokenTexts: ["a", "🇩", "🇪", "b"] });
  pacer.finish(0);
  const pieces = pacer.take(Infinity).map(({ text, tokens }) => [text, ...tokens]);
  expect(pieces).toEqual([["a", 0, 1], ["🇩🇪", 1, 3], ["b", 3, 4]]); // prettier-ignore
});

test("an unfinished character waits no longer than the hold", () => {
  const pacer = new Pacer();
  pacer.push("Hi", 0, { numTokens: 1 });
  pacer.take(0);
  pacer.push("👨‍", 500, { numTokens: 1 });
  expect(pacer.nextDueMs).toBe(600);
  expect(pacer.take(600).map((piece) => piece.text)).toEqual(["👨‍"]);
});

test("switched off nothing waits and nothing is cut", () => {
  const pacer = new Pacer("off");
  pacer.push("Hello 👨‍", 0, { numTokens: 3 });
  pacer.push("👩 world", 0, { numTokens: 3 });
  expect(pacer.take(0).map((piece) => piece.text)).toEqual(["Hello 👨‍", "👩 world"]);
});

test("time does not go back", () => {
  const pacer = new Pacer();
  pacer.push("a", 10);
  expect(() => pacer.push("b", 9)).toThrow("time went back");
});

test.each([{ maxDelayMs: -1 }, { drainMs: Infinity }, { holdMs: NaN }, { unit: "line" }, "slow"])(
  "options that cannot be kept are refused (%j)",
  (wrong) => {
    expect(() => new Pacer(wrong as Pacing)).toThrow(RangeError);
  },
);

test("presets are named, and what is not said is as usual", () => {
  expect(new Pacer("realtime").stats.delayTargetMs).toBe(PRESETS.realtime.minDelayMs);
  expect(new Pacer({ maxDelayMs: 60 }).stats.delayTargetMs).toBe(60);
  expect(new Pacer({}).stats.delayTargetMs).toBe(100);
});

test("stats say what was added", () => {
  const pacer = new Pacer();
  for (let burst = 0; burst < 20; burst++) pacer.push(" a b c", burst * 45, { numTokens: 3 });
  const { stats } = pacer;
  expect(stats.unitsPerBurst).toBe(3);
  expect(stats.gapMs).toBeCloseTo(15, 0);
  expect(stats.meanAddedDelayMs).toBeGreaterThan(0);
  expect(stats.maxAddedDelayMs).toBeLessThanOrEqual(400);
  expect(stats.numChars + stats.waitingChars).toBe(20 * 6);
});

// ---- cost --------------------------------------------------------------------------------------

/** Milliseconds of CPU for a stream of `number` characters that never give a place to cut. */
function cost(char: string, number: number): number {
  const pacer = new Pacer();
  const start = process.cpuUsage();
  for (let at = 0; at < number; at += 4) {
    pacer.push(char.repeat(4), at, { numTokens: 1 });
    pacer.take(at);
  }
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

test.each(["x", "👩‍👧", "ก"])("CPU is linear in a text without spaces (%s)", (char) => {
  cost(char, 10_000);
  const [short, long] = [cost(char, 20_000), cost(char, 100_000)];
  expect(long / Math.max(short, 5)).toBeLessThan(20); // quadratic would be 25 beside 5
});
