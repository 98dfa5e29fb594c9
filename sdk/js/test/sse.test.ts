/** SSE from bytes: the vectors that every language passes, and the laws behind them. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { SseError, SseParser, type SseEvent } from "../src/sse.js";
import { cases } from "./vectors.js";

interface Case {
  name: string;
  chunks: string[];
  events: { data: string; event: string; id: string | null; retry: number | null }[];
  incomplete: boolean;
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Vectors write one character per byte. */
const bytesOf = (text: string): Uint8Array => Uint8Array.from(text, (char) => char.charCodeAt(0));

function parse(chunks: (Uint8Array | string)[]): [SseEvent[], boolean] {
  const parser = new SseParser();
  const events = chunks.flatMap((chunk) => parser.feed(chunk));
  return [events, parser.incomplete];
}

function cut(data: Uint8Array, places: number[]): Uint8Array[] {
  const inner = places.map((place) => place % (data.length + 1));
  const edges = [0, ...inner.sort((a, b) => a - b), data.length];
  return edges.slice(1).map((end, number) => data.subarray(edges[number], end));
}

function* pieces(data: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < data.length; at += size) yield data.subarray(at, at + size);
}

describe.each(cases<Case>("sse.json"))("vector: %s", (_, { chunks, events, incomplete }) => {
  const expected = [
    events.map(({ retry, ...event }) => ({ ...event, retryMs: retry })),
    incomplete,
  ];

  test("as it was read", () => {
    expect(parse(chunks.map(bytesOf))).toEqual(expected);
  });

  test("at every other split", () => {
    const data = bytesOf(chunks.join(""));
    const splits = [[data], [...pieces(data, 1)]];
    for (let place = 0; place < data.length; place++) splits.push(cut(data, [place]));
    for (const split of splits) expect(parse(split)).toEqual(expected);
  });
});

// ---- the laws ----------------------------------------------------------------------------------

const joined = (parts: Uint8Array[]): Uint8Array => Uint8Array.from(parts.flatMap((p) => [...p]));
const fragments = [
  "data", "data:", "data: ", "event: e", "id: 7", "id: \0", "retry: 9", ":", " ", "a",
  "\n", "\r", "\r\n", "\n\n", "\r\r", "\r\n\r\n", "北🌍", "\u2028\u0085", "\0",
]; // prettier-ignore
const bytes = fc.oneof(
  fc
    .array(
      fc.oneof(
        { weight: 6, arbitrary: fc.constantFrom(...fragments).map(utf8) },
        fc.constantFrom([0xef, 0xbb, 0xbf], [0xef], [0xe5, 0x8c]).map((b) => Uint8Array.from(b)),
      ),
      { maxLength: 24 },
    )
    .map(joined),
  fc.uint8Array({ maxLength: 60 }),
);
const places = fc.array(fc.nat(), { maxLength: 12 });

/** The WHATWG algorithm line by line over the whole text, with no thought of reads. */
function byTheStandard(data: Uint8Array): [SseEvent[], boolean] {
  const lines = new TextDecoder().decode(data).split(/\r\n|\r|\n/);
  const unfinished = lines.pop();
  const events: SseEvent[] = [];
  let fields: [string, string][] = [];
  let id: string | null = null;
  for (const line of lines) {
    if (line) {
      const [, name, value] = /^([^:]*):? ?(.*)$/su.exec(line)!;
      fields.push([name!, value!]);
      if (name === "id" && !value!.includes("\0")) id = value!;
      continue;
    }
    const all = (wanted: string) => fields.filter(([name]) => name === wanted).map(([, v]) => v);
    const [texts, kind, wait] = [all("data"), all("event").at(-1), all("retry")];
    const retryMs = wait.includes("9") ? 9 : null;
    if (texts.length)
      events.push({ data: texts.join("\n"), event: kind || "message", id, retryMs });
    fields = [];
  }
  return [events, fields.length > 0 || unfinished !== ""];
}

test("any split gives what the standard says", () => {
  fc.assert(
    fc.property(bytes, places, (data, where) => {
      expect(parse(cut(data, where))).toEqual(byTheStandard(data));
    }),
    { numRuns: 500 },
  );
});

test("text gives what its bytes give", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom("\ufeff", ...fragments), { maxLength: 24 }), (texts) => {
      expect(parse(texts)).toEqual(parse([utf8(texts.join(""))]));
    }),
  );
});

test("JSON sent as events arrives whole", () => {
  const texts = fc.array(fc.string({ unit: "binary" }), { maxLength: 8 });
  const lineEnds = fc.constantFrom("\n", "\r", "\r\n");
  fc.assert(
    fc.property(texts, lineEnds, places, (contents, end, where) => {
      const sent = contents.map((content) => JSON.stringify({ content }));
      const stream = utf8(sent.map((data) => `data: ${data}${end}${end}`).join(""));
      const [events, incomplete] = parse(cut(stream, where));
      expect(events.map((event) => event.data)).toEqual(sent);
      expect(incomplete).toBe(false);
    }),
  );
});

// ---- bounds ------------------------------------------------------------------------------------

test("a mebibyte in one line in small pieces", () => {
  const body = utf8(`data: ${"x".repeat(2 ** 20)}\n\n`);
  const [events] = parse([...pieces(body, 3)]);
  expect(events.map((event) => event.data.length)).toEqual([2 ** 20]);
});

test("a mebibyte of lines in one event in small pieces", () => {
  const number = Math.floor(2 ** 20 / 11);
  const [events] = parse([...pieces(utf8("data: y\r\n".repeat(number) + "\n"), 3)]);
  expect(events.map((event) => event.data.length)).toEqual([2 * number - 1]);
});

test.each([1, 3, 1000])("an event past the bound is refused however it comes (%d)", (size) => {
  const body = utf8("data: fits\n\ndata: does not fit\n\n");
  const parser = new SseParser({ maxEventBytes: 16 });
  const feed = () => [...pieces(body, size)].flatMap((piece) => parser.feed(piece));
  expect(feed).toThrow(SseError);
});

test.each([1, 3, 1000])("events up to the bound pass however many come together (%d)", (size) => {
  const parser = new SseParser({ maxEventBytes: 15 });
  const reads = [...pieces(utf8("data: just it\n\n".repeat(5)), size)];
  const events = reads.flatMap((read) => parser.feed(read));
  expect(events.map((event) => event.data)).toEqual(Array(5).fill("just it"));
});

test("a stream that never ends an event is refused", () => {
  const parser = new SseParser({ maxEventBytes: 1000 });
  expect(() => {
    for (let number = 0; number < 100; number++) parser.feed(": ping\n".repeat(10));
  }).toThrow("longer than 1000 bytes");
});

test("a retry time of thousands of digits is passed over", () => {
  const [event] = new SseParser().feed(`retry: ${"9".repeat(5000)}\ndata: a\n\n`);
  expect(event).toEqual({ data: "a", event: "message", id: null, retryMs: null });
});

test("comments are told before the event they stand with, and between events", () => {
  const told: string[] = [];
  const parser = new SseParser({ onComment: (comment) => told.push(comment) });
  const stream = "\ufeff: pace n=3\ndata: a\n\n:bare\r\n\r\n: next\ndata: b\n\n";
  for (const event of parser.events(stream)) told.push(`event ${event.data}`);
  expect(told).toEqual(["pace n=3", "event a", "bare", "next", "event b"]);
});
