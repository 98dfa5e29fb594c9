/** Recorded streams of a real vLLM: what was read from the socket, and when. */

import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

export interface Read {
  readonly atMs: number;
  readonly data: string;
}

/** The reads of a recording in `tests/data/traces`, from the first one on. */
export function recording(name: string): Read[] {
  const file = new URL(`../data/traces/${name}.jsonl.gz`, import.meta.url);
  const [, ...lines] = gunzipSync(readFileSync(file))
    .toString("utf8")
    .trim()
    .split("\n");
  const reads = lines.map(
    (line) => JSON.parse(line) as { t_s: number; data: string },
  );
  return reads.map(({ t_s, data }) => ({
    atMs: (t_s - reads[0]!.t_s) * 1000,
    data,
  }));
}

/** With time stretched so that the median pass takes `passMs`. */
export function scaledTo(passMs: number, reads: readonly Read[]): Read[] {
  const gaps = reads.slice(1).map(({ atMs }, at) => atMs - reads[at]!.atMs);
  const passes = gaps.filter((gap) => gap > 4).sort((a, b) => a - b);
  const factor = passMs / passes[Math.floor(passes.length / 2)]!;
  return reads.map(({ atMs, data }) => ({ atMs: atMs * factor, data }));
}
