/** Chunks apart and together again: nothing lost, nothing doubled, each thing with its text. */

import fc from "fast-check";
import { expect, test } from "vitest";

import { ChunkPacer } from "../src/chunks.js";
import { optionsOf } from "./pacer-cases.js";
import { cases } from "./vectors.js";

interface Case {
  name: string;
  options: Record<string, unknown>;
  steps: { at: number; chunk: unknown }[];
  shown: [number, unknown][];
}

type Chunk = any;

test.each(cases<Case>("chunks.json"))("vector: %s", (_, { options, steps, shown }) => {
  const pacer = new ChunkPacer(optionsOf(options));
  for (const { at, chunk } of steps) pacer.push(chunk, at);
  pacer.finish(steps.at(-1)!.at);
  const played = pacer.takeTimed(Infinity);
  expect(played.map(([, chunk]) => chunk)).toEqual(shown.map(([, chunk]) => chunk));
  const late = played.map(([at], number) => Math.abs(at - shown[number]![0]));
  expect(Math.max(0, ...late)).toBeLessThanOrEqual(0.01);
});

const chunk = (choices: object[], more: object = {}) => ({ id: "c", model: "m", choices, ...more });

const choice = (delta: object, more: object = {}, index = 0) => {
  return { index, delta, finish_reason: null, ...more };
};

function shown(
  chunks: Chunk[],
  gapMs = 100,
  unit: "grapheme" | "token" | "word" = "token",
): Chunk[] {
  const pacer = new ChunkPacer<Chunk>({ unit });
  chunks.forEach((one, number) => pacer.push(one, number * gapMs));
  pacer.finish((chunks.length - 1) * gapMs);
  return pacer.take(Infinity);
}

const choicesOf = (chunks: Chunk[], index = 0): Chunk[] =>
  chunks.flatMap((one) => one.choices).filter((one) => one.index === index);

const text = (chunks: Chunk[], key = "content", index = 0): string =>
  choicesOf(chunks, index).map((one) => one.delta[key] ?? "").join(""); // prettier-ignore

test("a chunk shown whole is the object that came", () => {
  const first = chunk([choice({ content: "Hello" }, { token_ids: [1] })]);
  expect(shown([first])[0]).toBe(first);
});

test("strings and strangers keep their order", () => {
  const stranger = { type: "stranger" };
  const out = shown(["Hello there", stranger, " you"]);
  const place = out.indexOf(stranger);
  expect(out.slice(0, place).join("")).toBe("Hello there");
  expect(out.slice(place + 1).join("")).toBe(" you");
});

test("tool calls keep their order and come whole", () => {
  const call = { index: 0, id: "t", function: { name: "f", arguments: '{"a":' } };
  const rest = { index: 0, function: { arguments: "1}" } };
  const pieces = shown([
    chunk([choice({ content: "I will call" })]),
    chunk([choice({ content: " it now", tool_calls: [call] })]),
    chunk([choice({ tool_calls: [rest] })]),
    chunk([choice({}, { finish_reason: "tool_calls" })]),
  ]);
  const calls = pieces.filter((one) => one.choices[0].delta.tool_calls);
  expect(calls.map((one) => one.choices[0].delta.tool_calls)).toEqual([[call], [rest]]);
  expect(text(pieces.slice(0, pieces.indexOf(calls[0])))).toBe("I will call it now");
});

test("completeness", () => {
  const pacer = new ChunkPacer();
  expect([pacer.incomplete, pacer.allFinished]).toEqual([false, false]);
  pacer.push(chunk([choice({ content: "a" }, { finish_reason: "" })]), 0); // "" is no finish
  expect(pacer.incomplete).toBe(true);
  pacer.push(chunk([choice({}, { finish_reason: "stop" }), choice({ content: "b" }, {}, 1)]), 0);
  expect(pacer.incomplete).toBe(true);
  pacer.push(chunk([choice({}, { finish_reason: "repetition" }, 1)]), 0);
  expect([pacer.incomplete, pacer.allFinished]).toEqual([false, true]);
});

test.each(["usage", "hint", "ids"])("tokens are counted (%s)", (way) => {
  const pacer = new ChunkPacer<Chunk>();
  for (const [number, content] of ["abcdef", "ghijkl"].entries()) {
    const ids = way === "ids" ? { token_ids: [1, 2] } : {};
    const usage = way === "usage" ? { usage: { completion_tokens: 2 * number + 2 } } : {};
    const hint = way === "hint" ? { numTokens: 2, nextMs: 50 } : undefined;
    pacer.push(chunk([choice({ content }, ids)], usage), number * 50, hint);
  }
  pacer.finish(100);
  const contents = pacer.take(Infinity).map((one) => one.choices[0].delta.content);
  expect(contents).toEqual(["abc", "def", "ghi", "jkl"]);
});

// ---- the laws ----------------------------------------------------------------------------------

const CHANNELS = ["reasoning", "content", "refusal"];
const texts = fc.oneof(
  fc.string({ unit: "binary", maxLength: 8 }),
  fc.constantFrom("👨‍", "👩 ", "```", "a b"),
);
const choices = fc.uniqueArray(
  fc.record({
    index: fc.nat(1),
    delta: fc.dictionary(fc.constantFrom(...CHANNELS), texts),
    token_ids: fc.array(fc.nat(9), { maxLength: 4 }),
  }),
  { selector: (one) => one.index },
);

test("nothing is lost nor doubled", () => {
  const units = fc.constantFrom("grapheme" as const, "token" as const, "word" as const);
  fc.assert(
    fc.property(
      fc.array(choices, { minLength: 1, maxLength: 8 }), units, fc.constantFrom(0, 30, 500),
      (drawn, unit, gapMs) => {
        const stream = drawn.map((own, mark) =>
          chunk(own.map((one) => ({ ...one, mark })), { mark, usage: { completion_tokens: mark } }),
        );
        const out = shown(stream, gapMs, unit);
        for (const index of [0, 1]) {
          for (const key of CHANNELS) expect(text(out, key, index)).toBe(text(stream, key, index));
          const ids = (chunks: Chunk[]) => choicesOf(chunks, index).flatMap((c) => c.token_ids ?? []);
          expect(ids(out)).toEqual(ids(stream));
          const marks = (chunks: Chunk[]) => choicesOf(chunks, index).flatMap((c) => c.mark ?? []);
          expect(marks(out)).toEqual(marks(stream));
        }
        for (const key of ["mark", "usage"]) {
          const once = (chunks: Chunk[]) => chunks.flatMap((one) => one[key] ?? []);
          expect(once(out)).toEqual(once(stream));
        }
      },
    ),
  ); // prettier-ignore
});
