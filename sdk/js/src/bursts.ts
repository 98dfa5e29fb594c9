/** What a stream's arrivals say about its source: time per unit, and how far apart bursts are. */

/** Arrivals this close are one burst: a read may hold several events of one pass. */
const MERGE_MS = 4;
/** For the gap, bursts count less by e for every 2.5 s since. */
const MEMORY_MS = 2500;
/** For the period, this many bursts count, all alike. */
const REMEMBERED_BURSTS = 25;
/**
 * A pause of over two usual periods, or of over 1.2 s, is a stall, and counts as only that long: a
 * queue or a tool that thinks says nothing of the pace, and must not teach the pacer to wait.
 */
const STALL_PERIODS = 2;
const MAX_PERIOD_MS = 1200;
const MIN_BURSTS = 4;
const PRIOR_GAP_MS = 8;

/**
 * Estimates from the bursts so far, older ones forgotten with `MEMORY_MS`.
 *
 * The gap is time per unit of weight, the sum of periods over the sum of units rather than a mean
 * of rates, which small bursts would dominate. The period is the median: a high quantile, as audio
 * buffers aim at (WebRTC's NetEQ: 0.95 of lateness), swells with the first stalls, which no delay
 * within reason could hide, and then spends delay for nothing.
 */
export class Bursts {
  numBursts = 0;
  readonly #periods: number[] = [];
  #medianMs = 0;
  #sumMs = 0;
  #sumUnits = 0; // of the first burst, until a second one comes
  #lastMs = -Infinity;
  #hintedGapMs = PRIOR_GAP_MS;
  #hintedPeriodMs = 0;

  /** Takes `units` that arrived at `nowMs`. */
  push(nowMs: number, units: number): void {
    const passedMs = nowMs - this.#lastMs;
    if (passedMs > MERGE_MS) {
      this.#lastMs = nowMs;
      if (this.numBursts++) this.#measure(passedMs);
    }
    this.#sumUnits += units;
  }

  /** What the server expects, for the time before anything was measured. */
  hint(periodMs: number, units: number | false | undefined): void {
    this.#hintedPeriodMs = periodMs;
    if (units) this.#hintedGapMs = periodMs / units;
  }

  /** Milliseconds per unit of weight. */
  get gapMs(): number {
    return this.#sumMs / this.#sumUnits || this.#hintedGapMs;
  }

  /** How long the source is usually silent between bursts. */
  get periodMs(): number {
    return this.#medianMs || this.#hintedPeriodMs || this.#sumUnits * this.#hintedGapMs;
  }

  #measure(passedMs: number): void {
    const periods = this.#periods;
    const longestMs = periods.length < MIN_BURSTS ? Infinity : STALL_PERIODS * this.#medianMs;
    const periodMs = Math.min(passedMs, longestMs, MAX_PERIOD_MS);
    const kept = periods.length && Math.exp(-periodMs / MEMORY_MS);
    this.#sumMs = this.#sumMs * kept + periodMs;
    this.#sumUnits *= kept;
    periods.push(periodMs);
    if (periods.length > REMEMBERED_BURSTS) periods.shift();
    this.#medianMs = new Float64Array(periods).sort()[periods.length >> 1]!;
  }
}
