/** Runs a case of `pacer.json`. */

import type { Piece } from "../src/cutting.js";
import type { Pacer as CorePacer } from "../src/core.js";
import { Pacer, type PacerOptions } from "../src/index.js";

interface Step {
  at: number;
  push?: string;
  lane?: string;
  tokens?: number;
  token_texts?: string[];
  final?: boolean;
  part?: unknown;
  closes?: string | null;
  hint?: { n?: number; next?: number };
  flush?: true;
  abort?: true;
}

export interface Case {
  name: string;
  options: Record<string, unknown>;
  steps: Step[];
  shown: unknown[][];
}

/** The options of a vector under our names: max_delay_ms is maxDelayMs. */
export function optionsOf(options: Record<string, unknown>): Partial<PacerOptions> {
  const camel = (name: string) =>
    name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(options).map(([name, value]) => [camel(name), value]));
}

/** [time, lane, text] of every text shown, [time, part] of every part. */
export function play(
  { options, steps }: Case,
  pacer: CorePacer = new Pacer(optionsOf(options)),
): unknown[][] {
  const shown: [number, Piece][] = [];
  for (const step of steps) {
    const { at } = step;
    shown.push(...pacer.takeTimed(at));
    if (step.push !== undefined) {
      const { lane = "text", tokens, token_texts, final = false } = step;
      pacer.push(step.push, at, { lane, numTokens: tokens, tokenTexts: token_texts, final });
    } else if ("part" in step) {
      pacer.part(step.part, at, step.closes);
    } else if (step.hint) {
      pacer.hint({ numTokens: step.hint.n, nextMs: step.hint.next });
    } else if (step.flush) {
      for (const piece of pacer.flush(at)) shown.push([at, piece]);
    } else if (step.abort) {
      pacer.abort(at);
    } else {
      pacer.finish(at);
    }
  }
  shown.push(...pacer.takeTimed(Infinity));
  return shown.map(([at, { lane, text, cargo }]) => (lane ? [at, lane, text] : [at, cargo]));
}
