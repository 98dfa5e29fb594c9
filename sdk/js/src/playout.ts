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

import type { Bursts } from "./bursts.js";
import type { PacerOptions } from "./options.js";

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
/** The target rises at once and falls by this share a second. */
const FALL_PER_S = 0.1;
const SAME_ARRIVAL_MS = 1;
const ROUNDING = 1e-6; // weights are fractions where tokens are spread over graphemes

/** What the queue holds: an arrival, a weight, and a time before which it must not go. */
export interface Waiting {
  readonly arrivalMs: number;
  readonly weight: number;
  readonly notBeforeMs: number;
}

/** All units up to `upto` (in weight ever pushed) are due by arrival + delay, or `capMs`. */
interface Deadline {
  readonly arrivalMs: number;
  capMs: number;
  upto: number;
}

/** A queue with due times. Times never go back; the caller passes them in. */
export class Playout<T extends Waiting> {
  /** The present delay target: no unit is held longer. */
  delayMs: number;
  readonly #options: PacerOptions;
  readonly #bursts: Bursts;
  #queue: T[] = [];
  #deadlines: Deadline[] = [];
  #pushed = 0;
  #shown = 0;
  #lastDueMs = -Infinity;
  #lastUnitMs: number | undefined;
  #plannedMs = -Infinity;
  #endMs = Infinity;
  #delaySetMs: number | undefined;

  constructor(options: PacerOptions, bursts: Bursts) {
    this.#options = options;
    this.#bursts = bursts;
    this.delayMs = Math.min(options.minDelayMs, options.maxDelayMs);
  }

  get length(): number {
    return this.#queue.length;
  }

  push(item: T): void {
    this.#queue.push(item);
    if (!item.weight) return; // it goes with what stands before it
    this.#pushed += item.weight;
    const last = this.#deadlines.at(-1);
    if (last?.capMs === Infinity && item.arrivalMs - last.arrivalMs < SAME_ARRIVAL_MS)
      last.upto = this.#pushed;
    else this.#deadlines.push({ arrivalMs: item.arrivalMs, capMs: Infinity, upto: this.#pushed });
  }

  /** All that waits is due within `drainMs`. */
  hurry(nowMs: number): void {
    const last = this.#deadlines.at(-1);
    if (last) last.capMs = Math.min(last.capMs, nowMs + this.#options.drainMs);
  }

  /** Something changed at `nowMs`: nothing still queued is due before it. */
  replan(nowMs: number): void {
    this.#plannedMs = nowMs;
    this.#aim(nowMs);
  }

  /** No more will come: all is due within `drainMs`. */
  end(nowMs: number): void {
    this.#endMs = Math.min(this.#endMs, nowMs + this.#options.drainMs);
    this.#plannedMs = nowMs;
  }

  /** When the head is to be shown; undefined if nothing waits. */
  dueMs(): number | undefined {
    const head = this.#queue[0];
    if (!head) return;
    const { arrivalMs, notBeforeMs, weight } = head;
    const earliestMs = Math.max(arrivalMs, notBeforeMs, this.#plannedMs, this.#lastDueMs);
    const lastMs = this.#lastUnitMs;
    if (!weight || lastMs === undefined) return earliestMs;
    return Math.max(earliestMs, lastMs + weight * this.#gapMs(lastMs));
  }

  /** Takes the head, shown at `dueMs`. */
  pop(dueMs: number): T {
    const item = this.#queue.shift()!;
    this.#shown += item.weight;
    this.#lastDueMs = dueMs;
    if (item.weight) this.#lastUnitMs = dueMs;
    while (this.#deadlines.length && this.#deadlines[0]!.upto <= this.#shown + ROUNDING)
      this.#deadlines.shift();
    if (!this.#queue.length) this.clear();
    return item;
  }

  /** Empties the queue; what was in it, in order. */
  clear(): T[] {
    const rest = this.#queue;
    this.#queue = [];
    this.#deadlines = [];
    this.#shown = this.#pushed;
    return rest;
  }

  /** Milliseconds per unit of weight for the head, from the unit shown at `sinceMs`. */
  #gapMs(sinceMs: number): number {
    let gapMs = this.#nominalMs();
    for (const { arrivalMs, capMs, upto } of this.#deadlines) {
      const dueMs = Math.min(arrivalMs + this.delayMs, capMs, this.#endMs);
      const units = upto - this.#shown;
      if (units > ROUNDING) gapMs = Math.min(gapMs, (dueMs - sinceMs) / units);
    }
    return Math.max(0, gapMs);
  }

  #nominalMs(): number {
    const { gapMs } = this.#bursts;
    if (this.#endMs < Infinity) return gapMs;
    const wantMs = LEVEL * this.delayMs;
    const levelMs = (this.#pushed - this.#shown) * gapMs;
    if (wantMs <= 0) return 0;
    return gapMs * (1 + CORRECTION * Math.min(1, Math.max(-1, (wantMs - levelMs) / wantMs)));
  }

  /** Moves the delay target: up at once, down slowly. */
  #aim(nowMs: number): void {
    const { minDelayMs, maxDelayMs } = this.#options;
    const slackMs = this.#bursts.periodMs - this.#bursts.gapMs;
    let wantedMs = Math.min(Math.max(SLACKS_OF_DELAY * slackMs, minDelayMs), maxDelayMs);
    if (this.#delaySetMs !== undefined) {
      const fallen = 1 - (FALL_PER_S * (nowMs - this.#delaySetMs)) / 1000;
      if (wantedMs < this.delayMs)
        wantedMs = Math.max(wantedMs, this.delayMs * Math.max(0, fallen));
    }
    this.delayMs = wantedMs;
    this.#delaySetMs = nowMs;
  }
}
