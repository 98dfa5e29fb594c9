/**
 * When each buffered unit is shown: deadline-tangent playout, on numbers alone.
 *
 * Units wait in one queue. Each is shown a gap after the one before it: the source's own time per
 * unit, stretched while the buffer is below its level and shortened while above, but never longer
 * than the straight line (the tangent) to any buffered unit's deadline allows. So nothing is ever
 * later than its deadline, and catching up is a steeper line, never a dump.
 *
 * It is the online form of the taut string that is the optimum when arrivals are known (Salehi,
 * Zhang, Kurose, Towsley, SIGMETRICS 1996), re-planned at every arrival as in Rexford et al.,
 * NOSSDAV 1997. Where it falls short: a silence longer than the delay target shows as a pause,
 * whatever is done.
 */

import type { CoreOptions } from "./options.js";

/**
 * The delay target in slacks. The slack is a burst's period less the time of one unit: what even
 * output of equal bursts of k units needs, P (k - 1) / k. It is nothing for a stream of single
 * tokens, and so is the delay beyond `minDelayMs`; bursts of unequal size need some times as much.
 */
const SLACKS_OF_DELAY = 3.5;
/** How full the buffer is kept, in delay targets. */
const LEVEL = 0.7;
/** How far the gap is stretched or shortened at most to keep that level. */
const CORRECTION = 0.5;
/** The target rises at once and falls by this share a millisecond. */
const FALL_PER_MS = 0.1 / 1000;

/** Arrivals this close wait as one. */
export const SAME_ARRIVAL_MS = 1;
/** Weights are fractions where tokens are spread over graphemes. */
export const ROUNDING = 1e-6;
/** Of one push: more could not be shown apart within the longest delay, timers being 1 ms apart. */
export const MAX_PIECES = 512;

/** Units that wait: those of one arrival, due by that + delay, or by `capMs` if that is earlier. */
export interface Batch {
  readonly arrivalMs: number;
  capMs: number;
  units: number;
}

/**
 * Milliseconds per unit from one shown at `sinceMs` to the next of `batches`.
 *
 * `sourceMs` is the source's own; no level is kept of what `isEnded`.
 */
export function gapMs(
  batches: readonly Batch[],
  sinceMs: number,
  delayMs: number,
  sourceMs: number,
  isEnded: boolean,
): number {
  let units = 0;
  let tangentMs = Infinity;
  for (const batch of batches) {
    units += batch.units;
    tangentMs = Math.min(
      tangentMs,
      (Math.min(batch.arrivalMs + delayMs, batch.capMs) - sinceMs) / units,
    );
  }
  const level = isEnded ? 1 : (units * sourceMs) / (LEVEL * delayMs) || 0;
  return Math.max(0, Math.min(sourceMs * (1 + CORRECTION * (1 - Math.min(2, level))), tangentMs));
}

/** The delay target, `passedMs` after it was `delayMs`: up at once, down slowly. */
export function delayTargetMs(
  { minDelayMs, maxDelayMs }: Pick<CoreOptions, "minDelayMs" | "maxDelayMs">,
  slackMs: number,
  delayMs: number,
  passedMs: number,
): number {
  const fallenMs = delayMs * (1 - FALL_PER_MS * passedMs) || 0; // before there was time, nothing
  return Math.min(Math.max(SLACKS_OF_DELAY * slackMs, minDelayMs, fallenMs), maxDelayMs);
}
