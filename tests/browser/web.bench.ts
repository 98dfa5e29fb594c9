/**
 * `make bench-web`: what is painted in a real page, a recording as it came beside smooth.
 *
 * Recordings of the hold-out half are replayed in real time over a socket, stretched to passes of
 * 45 ms. Times are those of frames, so they are right to 17 ms.
 */

import { mkdirSync, writeFileSync } from "node:fs";

import { type Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { chromePath, launch } from "./chrome.js";
import { recording, scaledTo } from "./recording.js";
import { Site } from "./site.js";
import type { Frame, Measured } from "./web-page.js";

const NAMES = ["ngram-k4.chat-2", "suffix.code-2", "draft-k3.edit-2"];
const PASS_MS = 45;
const RESULTS = new URL("../../bench-results/", import.meta.url);
const WINDOW_MS = 100;
const MAX_END_LAG_MS = 150 + 2 * 17;

const CASES = [
  { name: "DOM, by tokens", how: "token", slowdown: 1 },
  { name: "DOM, by graphemes", how: "grapheme", slowdown: 1 },
  { name: "React", how: "react", slowdown: 1 },
  { name: "React, CPU four times slower", how: "react", slowdown: 4 },
] as const;

/** How one side of a page was painted. Times are milliseconds, sizes characters. */
interface Painted {
  p95GapMs: number;
  p99GapMs: number;
  maxGapMs: number;
  p95Step: number;
  rateCv: number;
}

interface Row {
  case: string;
  recording: string;
  raw: Painted;
  smooth: Painted;
  meanDelayMs: number;
  maxDelayMs: number;
  firstMs: number;
  endLagMs: number;
  numLongFrames: number;
}

const rows: Row[] = [];
let browser: Browser;
let site: Site;

beforeAll(async () => {
  const chrome = chromePath();
  if (!chrome)
    throw new Error(
      "no browser here (apt-get install chromium, or say CHROME=...)",
    );
  [browser, site] = await Promise.all([launch(chrome), Site.open()]);
}, 30_000);

afterAll(async () => {
  await browser?.close();
  await site?.close();
  if (rows.length) report();
});

test.each(
  CASES.flatMap((one) => NAMES.map((name) => [one.name, name, one] as const)),
)(
  "%s, %s",
  async (_, name, { name: kind, how, slowdown }) => {
    const page = await browser.newPage();
    const session = await page.context().newCDPSession(page);
    await session.send("Emulation.setCPUThrottlingRate", { rate: slowdown });
    await page.goto(await site.page("/web", "./web-page.tsx"));
    await page.waitForFunction(() => !!window.measure);
    site.replay(name, scaledTo(PASS_MS, recording(name)));
    const measured = await page.evaluate(
      ([base, how]) => window.measure(base, how),
      [`${site.origin}/${name}`, how] as const,
    );
    await page.context().close();
    expect(measured.same).toBe(true);
    const row = rowOf(kind, name, measured);
    rows.push(row);
    expect(row.endLagMs).toBeLessThanOrEqual(MAX_END_LAG_MS * slowdown);
  },
  60_000,
);

function rowOf(
  kind: string,
  name: string,
  { frames, numLongFrames }: Measured,
): Row {
  const [raw, smooth] = [changes(frames, "raw"), changes(frames, "smooth")];
  const added = delays(raw, smooth);
  return {
    case: kind,
    recording: name,
    raw: painted(raw),
    smooth: painted(smooth),
    meanDelayMs: mean(added),
    maxDelayMs: Math.max(...added),
    firstMs: smooth[0]!.atMs - raw[0]!.atMs,
    endLagMs: smooth.at(-1)!.atMs - raw.at(-1)!.atMs,
    numLongFrames,
  };
}

interface Change {
  atMs: number;
  size: number;
}

/** The frames in which more was on show than before. */
function changes(frames: readonly Frame[], side: "raw" | "smooth"): Change[] {
  return frames
    .map((frame) => ({ atMs: frame.atMs, size: frame[side] }))
    .filter(({ size }, at) => size > (at ? frames[at - 1]![side] : 0));
}

function painted(shown: readonly Change[]): Painted {
  const gaps = shown.slice(1).map(({ atMs }, at) => atMs - shown[at]!.atMs);
  const steps = shown.map(
    ({ size }, at) => size - (at ? shown[at - 1]!.size : 0),
  );
  const beganMs = shown[0]!.atMs;
  const counts = new Array<number>(
    Math.max(1, Math.ceil((shown.at(-1)!.atMs - beganMs) / WINDOW_MS)),
  ).fill(0);
  for (const [at, step] of steps.entries())
    counts[
      Math.min(
        counts.length - 1,
        Math.floor((shown[at]!.atMs - beganMs) / WINDOW_MS),
      )
    ]! += step;
  return {
    p95GapMs: quantile(gaps, 0.95),
    p99GapMs: quantile(gaps, 0.99),
    maxGapMs: Math.max(...gaps),
    p95Step: quantile(steps, 0.95),
    rateCv:
      Math.sqrt(mean(counts.map((count) => (count - mean(counts)) ** 2))) /
      mean(counts),
  };
}

/** For every character, how much later it was painted. */
function delays(raw: readonly Change[], smooth: readonly Change[]): number[] {
  const added: number[] = [];
  let at = 0;
  for (let position = 1; position <= raw.at(-1)!.size; position++) {
    while (raw[at]!.size < position) at++;
    added.push(
      smooth.find(({ size }) => size >= position)!.atMs - raw[at]!.atMs,
    );
  }
  return added;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
}

function report(): void {
  const rounded = (value: number) => Number(value.toFixed(2));
  const over = (take: (row: Row) => number, of = rows) =>
    rounded(mean(of.map(take)));
  const headline = {
    painted_rate_cv_ratio: over(
      ({ raw, smooth }) => smooth.rateCv / raw.rateCv,
    ),
    painted_p99_gap_ratio: over(
      ({ raw, smooth }) => smooth.p99GapMs / raw.p99GapMs,
    ),
    painted_end_lag_ms: rounded(
      Math.max(...rows.map(({ endLagMs }) => endLagMs)),
    ),
    long_frames: rows.reduce(
      (sum, { numLongFrames }) => sum + numLongFrames,
      0,
    ),
  };
  const lines = [
    "| page | side | p95 gap | p99 gap | max gap | p95 step | rate CV | mean delay | max delay | first | end lag | long frames |",
    "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
  ];
  for (const { name } of CASES) {
    const of = rows.filter((row) => row.case === name);
    for (const side of ["raw", "smooth"] as const) {
      const cells = (
        ["p95GapMs", "p99GapMs", "maxGapMs", "p95Step"] as const
      ).map((key) => over((row) => row[side][key], of).toFixed(0));
      const delay = (
        ["meanDelayMs", "maxDelayMs", "firstMs", "endLagMs"] as const
      ).map((key) =>
        side === "raw" ? "" : over((row) => row[key], of).toFixed(0),
      );
      const cv = over((row) => row[side].rateCv, of).toFixed(2);
      const long = of.reduce(
        (sum, { numLongFrames }) => sum + numLongFrames,
        0,
      );
      lines.push(
        `| ${[name, side, ...cells, cv, ...delay, side === "raw" ? "" : long].join(" | ")} |`,
      );
    }
  }
  const text = `${lines.join("\n")}\n\n${Object.entries(headline).map(([key, value]) => `${key} ${value}`).join("\n")}\n`; // prettier-ignore
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(
    new URL("web.json", RESULTS),
    `${JSON.stringify({ headline, rows }, null, 1)}\n`,
  );
  writeFileSync(new URL("web.txt", RESULTS), text);
  process.stdout.write(`\n${text}`);
}
