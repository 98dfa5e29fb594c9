/** Where text may be cut, beside what the engine's own segmenter says. */

import fc from "fast-check";
import { expect, test } from "vitest";

import { atoms, mayGrow } from "../src/markup.js";

const segmenter = new Intl.Segmenter("und", { granularity: "grapheme" });

function bySegmenter(text: string): number[] {
  return [...segmenter.segment(text)].map(({ index, segment }) => index + segment.length);
}

const TEXTS = [
  "Hello, world!\r\nNext line\n",
  "naïve café, e\u0301 and o\u0308\u0323",
  "👨‍👩‍👧‍👦👍🏽❤️🏳️‍🌈🇩🇪🇫🇷🇯🇵1️⃣👩🏽‍🚀",
  "日本語のテキスト、한국어 텍스트 각각",
  "हिन्दी पाठ ภาษาไทย น้ำ ຄຳ বাংলা தமிழ்",
  "العَرَبِيَّة עִבְרִית",
  "x̂ⁿ ∑ → ↦ ‼️ © ™",
];

test.each(TEXTS)("as the segmenter says: %s", (text) => {
  expect(atoms(text)).toEqual(bySegmenter(text));
});

test("as the segmenter says, of whatever stands beside each other", () => {
  const clusters = TEXTS.flatMap((text) => [...segmenter.segment(text)].map((one) => one.segment));
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...clusters), { maxLength: 20 }), (drawn) => {
      // Two half flags, or an escape's or a Hangul syllable's letters, may become one.
      const text = drawn.join("");
      expect(atoms(text)).toEqual(bySegmenter(text));
    }),
    { numRuns: 500 },
  );
});

test("ends are ascending, the last is the length, none is within a surrogate pair", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 200 }), fc.boolean(), (text, lineStart) => {
      const ends = atoms(text, lineStart ? "\n" : "x");
      expect(ends.at(-1) ?? 0).toBe(text.length);
      ends.forEach((end, number) => expect(end).toBeGreaterThan(ends[number - 1] ?? 0));
      for (const end of ends) expect(/^[\udc00-\udfff]/.test(text.slice(end))).toBe(false);
    }),
  );
});

test.each([
  ["\x1b[3", true],
  ["\x1b[31m", false],
  ["``", true],
  ["🇩", true],
  ["🇩🇪", false],
  ["👨", true],
  ["न", true],
  ["\ud83d", true],
  ["e", false],
  ["字", false],
])("%j may grow: %j", (atom, grows) => {
  expect(mayGrow(atom, "\n")).toBe(grows);
});
