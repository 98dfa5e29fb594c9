/**
 * `make bench-smoothing`, the part in TypeScript: streams on standard input, on standard output the
 * time of every token under every rule, and what each rule costs. Scores are given elsewhere.
 */

import { text as textOfInput } from "node:stream/consumers";

import { bundledBytes, CORE } from "../scripts/size.mjs";
import { Pacer } from "../src/index.js";
import { ASSISTANT_UI_RULE } from "./peers.js";
import { aiSdkWithoutPauses, realAiSdk } from "./real-ai-sdk.js";
import { ASSISTANT_UI, assistantUi } from "./real-assistant-ui.js";
import { ofPeer, ours, RULES } from "./rules.js";
import { numTokensOf, type Rule, type Stream } from "./streams.js";

const LENGTHS = [25_000, 50_000, 100_000];
const ENDLESS = { letters: "x", emoji: "👨‍👩‍👧‍👦" };
const AI_SDK = "AI SDK";
const AUI = "assistant-ui";

interface Input {
  readonly classes: Readonly<Record<string, readonly Stream[]>>;
  /** What the cost of a token is measured on. */
  readonly timed: Stream;
}

/** The least time of some runs, in µs: of the first ones most goes to the compiler. */
async function leastUs(run: () => unknown, repeats = 30): Promise<number> {
  let least = Infinity;
  for (let number = 0; number < repeats; number++) {
    const beganMs = performance.now();
    await run();
    least = Math.min(least, performance.now() - beganMs);
  }
  return least * 1000;
}

type Rules = Readonly<Record<string, Rule>>;

async function usPerToken(rules: Rules, stream: Stream): Promise<Record<string, number>> {
  const each: Record<string, number> = {};
  for (const [name, rule] of Object.entries(rules)) each[name] = await leastUs(() => rule(stream));
  each[AI_SDK] = await leastUs(() => aiSdkWithoutPauses(stream));
  for (const name in each) each[name]! /= numTokensOf(stream);
  return each;
}

/** µs a character of a long text without spaces. */
function usPerChar(text: string, numChars: number, deltaChars = 4): number {
  const whole = text.repeat(Math.floor(numChars / text.length));
  const pacer = new Pacer();
  let nowMs = 0;
  const beganMs = performance.now();
  for (let start = 0; start < whole.length; start += deltaChars) {
    nowMs += 5;
    pacer.push(whole.slice(start, start + deltaChars), nowMs);
    pacer.take(nowMs);
  }
  pacer.finish(nowMs);
  pacer.take(nowMs + 151);
  return ((performance.now() - beganMs) * 1000) / whole.length;
}

/** Gzipped bytes of what a page must load for a rule, where it is known; React is there anyway. */
async function gzipBytes(rules: Rules): Promise<Record<string, number>> {
  const sizes = {
    ours: await bundledBytes(CORE),
    [AI_SDK]: await bundledBytes('export { smoothStream } from "ai";'),
    ...(AUI in rules && {
      [AUI]: await bundledBytes('export { useSmooth } from "@assistant-ui/react";', ASSISTANT_UI),
    }),
  };
  return Object.fromEntries(Object.entries(sizes).map(([name, { gzipped }]) => [name, gzipped]));
}

/** With assistant-ui's own code where it is installed, else with its rule. */
async function allRules(): Promise<Rules> {
  const real = await assistantUi();
  const { [ASSISTANT_UI_RULE]: _written, ...others } = RULES;
  return real ? { ...others, [AUI]: ofPeer(real) } : RULES;
}

async function main(): Promise<void> {
  const { classes, timed } = JSON.parse(await textOfInput(process.stdin)) as Input;
  const rules = await allRules();
  const times: Record<string, Record<string, number[][]>> = {};
  for (const [kind, streams] of Object.entries(classes)) {
    const byRule: Record<string, number[][]> = (times[kind] = {});
    for (const [name, rule] of Object.entries(rules)) byRule[name] = streams.map(rule);
    byRule[AI_SDK] = [];
    for (const stream of streams) byRule[AI_SDK].push(await realAiSdk(stream));
  }
  ours(timed);
  const endless = Object.entries(ENDLESS).map(([name, text]) => [
    name,
    Object.fromEntries(LENGTHS.map((length) => [length, usPerChar(text, length)])),
  ]);
  const cost = {
    us_per_token: await usPerToken(rules, timed),
    us_per_char: Object.fromEntries(endless) as object,
    gzip_bytes: await gzipBytes(rules),
  };
  process.stdout.write(JSON.stringify({ times, cost }));
}

await main();
