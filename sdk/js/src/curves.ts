/** What arrived and what was shown over time, and what follows from both. Times are milliseconds. */

/** So many characters in all, from then on. */
export interface Point {
  readonly atMs: number;
  readonly numChars: number;
}

export interface Figures {
  readonly numArrived: number;
  readonly numShown: number;
  /** How much later than they arrived characters were shown; over those in sight. */
  readonly meanDelayMs: number;
  readonly maxDelayMs: number;
  /** Between one time that something was shown and the next; likewise. */
  readonly p95GapMs: number;
  readonly maxGapMs: number;
}

/** The last `windowMs` of both curves; what is older is forgotten. */
export class Curves {
  readonly windowMs: number;
  readonly arrived: Point[] = [];
  readonly shown: Point[] = [];
  readonly #delays: { atMs: number; delayMs: number; numChars: number }[] = [];

  constructor(windowMs = 10_000) {
    this.windowMs = windowMs;
  }

  arrive(numChars: number, nowMs: number): void {
    this.#add(this.arrived, numChars, nowMs);
  }

  show(numChars: number, nowMs: number): void {
    if (!numChars) return;
    const from = this.shown.at(-1)?.numChars ?? 0;
    this.#add(this.shown, numChars, nowMs);
    const arrival = this.arrived.find((point) => point.numChars > from);
    if (arrival) this.#delays.push({ atMs: nowMs, delayMs: nowMs - arrival.atMs, numChars });
    forget(this.#delays, nowMs - this.windowMs);
  }

  figures(): Figures {
    const gaps = this.shown.slice(1).map(({ atMs }, at) => atMs - this.shown[at]!.atMs);
    gaps.sort((a, b) => a - b);
    const delays = this.#delays;
    const numChars = delays.reduce((sum, one) => sum + one.numChars, 0);
    const weighted = delays.reduce((sum, one) => sum + one.delayMs * one.numChars, 0);
    return {
      numArrived: this.arrived.at(-1)?.numChars ?? 0,
      numShown: this.shown.at(-1)?.numChars ?? 0,
      meanDelayMs: weighted / Math.max(1, numChars),
      maxDelayMs: Math.max(0, ...delays.map((one) => one.delayMs)),
      p95GapMs: gaps[Math.max(0, Math.ceil(0.95 * gaps.length) - 1)] ?? 0,
      maxGapMs: gaps.at(-1) ?? 0,
    };
  }

  #add(points: Point[], numChars: number, atMs: number): void {
    if (!numChars) return;
    const before = points.at(-1)?.numChars ?? 0;
    if (points.at(-1)?.atMs === atMs) points.pop();
    points.push({ atMs, numChars: before + numChars });
    forget(points, atMs - this.windowMs);
  }
}

/** Drops what is older; the last one stays, for it says how many there were. */
function forget(points: { atMs: number }[], beforeMs: number): void {
  let old = 0;
  while (old < points.length - 1 && points[old]!.atMs < beforeMs) old++;
  if (old) points.splice(0, old);
}
