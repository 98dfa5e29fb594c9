/** Streams of a real vLLM: nothing lost, nothing doubled, at any reads and through the pacer. */

import { readdirSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { type Chunk, ChunkPacer, chunkText, SseParser } from "../src/index.js";

const FOLDER = new URL("../../../tests/data/traces/", import.meta.url);
const STREAMS = readdirSync(FOLDER).filter((name) => name.endsWith(".jsonl.gz"));

const TICK_MS = 0.001;

interface Read {
  t_s: number;
  data: string;
}

function recorded(name: string): Read[] {
  const lines = gunzipSync(readFileSync(new URL(name, FOLDER)))
    .toString("utf8")
    .trim();
  return lines.split("\n").slice(1).map((line) => JSON.parse(line) as Read); // prettier-ignore
}

const parsed = (parser: SseParser, read: Uint8Array | string): Chunk[] =>
  parser
    .feed(read)
    .filter(({ data }) => data !== "[DONE]")
    .map(({ data }) => JSON.parse(data) as Chunk);

const textOf = (chunks: Chunk[]): string => chunks.map(chunkText).join("");

test("the recordings are there", () => expect(STREAMS.length).toBe(24));

describe.each(STREAMS)("%s", (name) => {
  const reads = recorded(name);
  const body = reads.map((read) => read.data).join("");
  // vLLM writes one JSON value a line.
  const said = body.split("\n").filter((line) => line && line !== "data: [DONE]");
  const chunks = said.map((line) => JSON.parse(line.slice("data: ".length)) as Chunk);

  test("reads the same at any boundaries", () => {
    const bytes = new TextEncoder().encode(body);
    const sizes = fc.array(fc.constantFrom(1, 2, 3, 10, 100, 1000), { minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(sizes, (drawn) => {
        const parser = new SseParser();
        const found: Chunk[] = [];
        for (let at = 0, number = 0; at < bytes.length; number++) {
          const size = drawn[number % drawn.length]!;
          found.push(...parsed(parser, bytes.subarray(at, (at += size))));
        }
        expect(found).toEqual(chunks);
        expect(parser.incomplete).toBe(false);
      }),
      { numRuns: 4 },
    );
  });

  test("comes out of the pacer whole, within its bounds", () => {
    const pacer = new ChunkPacer<Chunk>();
    const parser = new SseParser();
    const shown: [number, Chunk][] = [];
    let nowMs = 0;
    for (const read of reads) {
      nowMs = read.t_s * 1000;
      for (const chunk of parsed(parser, read.data)) pacer.push(chunk, nowMs);
      shown.push(...pacer.takeTimed(nowMs));
    }
    pacer.finish(nowMs);
    expect(pacer.incomplete).toBe(false);
    shown.push(...pacer.takeTimed(Infinity));
    const out = shown.map(([, chunk]) => chunk);
    expect(textOf(out)).toBe(textOf(chunks));
    const ids = (of: Chunk[]) =>
      of.flatMap((chunk) => (chunk["choices"] as Chunk[]).flatMap((one) => one["token_ids"] ?? []));
    expect(ids(out)).toEqual(ids(chunks));
    expect(out.at(-1)).toEqual(chunks.at(-1));
    expect(shown.at(-1)![0]).toBeLessThanOrEqual(nowMs + 150 + TICK_MS);
    expect(pacer.stats.maxAddedDelayMs).toBeLessThanOrEqual(400 + TICK_MS);
  });
});
