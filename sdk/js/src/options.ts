/** What a pacer can be told. Times are milliseconds. */

import type { Cuts } from "./cutting.js";

/** What is shown at a time: tokens where their number is known (else graphemes), or words. */
export type Unit = "grapheme" | "token" | "word";

/**
 * `maxDelayMs` bounds the delay that is ever added; the pacer spends what the stream's bursts ask
 * for, between `minDelayMs` and that. `drainMs` after the finish all is shown. `holdMs` bounds how
 * long an unfinished character, escape sequence or fence waits for its rest. `enabled: false`
 * passes everything on as it comes.
 */
export interface PacerOptions {
  readonly maxDelayMs: number;
  readonly minDelayMs: number;
  readonly drainMs: number;
  readonly holdMs: number;
  readonly unit: Unit;
  readonly enabled: boolean;
}

/** The usual times. The usual unit is the token, and a pacer is enabled. */
export const DEFAULTS = { maxDelayMs: 400, minDelayMs: 100, drainMs: 150, holdMs: 100 };

/** What the core's pacer is told. Words are cut by `cuts` alone. */
export type CoreOptions = Readonly<typeof DEFAULTS> &
  Partial<PacerOptions> & {
    /** For each lane, where its text may be cut; between graphemes, if that is not said. */
    readonly cuts?: () => Cuts;
  };
