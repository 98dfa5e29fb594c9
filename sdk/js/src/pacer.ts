/**
 * Bursts in, a smooth stream out: the pacer, a pure class that is told the time.
 *
 *     const pacer = new Pacer();
 *     pacer.push("Hello wor", nowMs);               // as it arrives
 *     for (const piece of pacer.take(nowMs)) …      // what may be shown by now
 *     pacer.nextDueMs                               // when to come again
 *     pacer.finish(nowMs);                          // no more will come
 *
 * What holds, whatever arrives: per lane the text that comes out is the text that went in, in
 * order; parts keep their place between texts; the first unit is out at once; nothing is held
 * longer than `maxDelayMs`, and nothing longer than `drainMs` after the finish. All lanes share one
 * queue and one clock. Times are milliseconds of any clock that does not go back.
 */

import { Bursts } from "./bursts.js";
import { Cutter, type Piece } from "./cutting.js";
import { DEFAULTS, type CoreOptions } from "./options.js";
import { type Batch, delayTargetMs, gapMs, ROUNDING, SAME_ARRIVAL_MS } from "./playout.js";

/**
 * What a Paceline gateway says before an event: `: pace n=3 t=18233 next=44`.
 *
 * Tokens in the event, the gateway's clock at reading it, and the time it expects to the next one,
 * both in milliseconds. What is unknown is left out.
 */
export interface Hint {
  readonly numTokens?: number | undefined;
  readonly serverMs?: number | undefined;
  readonly nextMs?: number | undefined;
}

/** What a pacer has done so far. Delays are those it added, over the pieces shown; characters are UTF-16 units. */
export interface PacerStats {
  readonly numPieces: number;
  readonly numChars: number;
  readonly waitingChars: number;
  readonly meanAddedDelayMs: number;
  readonly maxAddedDelayMs: number;
  readonly delayTargetMs: number;
  readonly gapMs: number;
  readonly unitsPerBurst: number;
}

/** What is known of a text: the number of its tokens and their texts where known, and more. */
export interface Push {
  readonly lane?: string;
  readonly numTokens?: number | undefined;
  readonly tokenTexts?: readonly string[] | undefined;
  readonly cargo?: unknown;
  readonly final?: boolean;
}

/** See the module. `finish`, `flush` and `abort` may each be called again without effect. */
export class Pacer {
  readonly #options: CoreOptions;
  readonly #bursts = new Bursts();
  readonly #cutters = new Map<string, Cutter>();
  #queue: Piece[] = [];
  #batches: Batch[] = [];
  #ready: [dueMs: number, piece: Piece][] = [];
  #nowMs = -Infinity;
  #plannedMs = -Infinity;
  #unitMs = -Infinity; // when the last unit was shown
  #endMs = Infinity;
  #delayMs: number;
  #aimedMs = -Infinity;
  #countsTokens: boolean | undefined;
  #charsPerToken = 4;
  #numUnits = 0;
  #numPieces = 0;
  #numChars = 0;
  #sumDelayMs = 0;
  #maxDelayMs = 0;

  constructor(options?: Partial<CoreOptions>) {
    this.#options = { ...DEFAULTS, ...options };
    this.#delayMs = delayTargetMs(this.#options, 0, 0, 0);
  }

  // -- what arrives ------------------------------------------------------------------------------

  /**
   * Takes text that arrived.
   *
   * Text that completes the lane's last character moves to that piece; if none is left, `cargo`
   * goes on in a piece without text, in its place. `final` says that the lane is complete, and
   * with it those whose names begin like its: nothing is held, all is due within `drainMs`.
   */
  push(text: string, nowMs: number, push: Push = {}): void {
    const { lane = "text", cargo, final } = push;
    this.#advance(nowMs);
    const cutter = this.#cutter(lane);
    const rest = cutter.extend(text, nowMs);
    const units = this.#count(text, push.numTokens);
    if (rest || cargo !== undefined) this.#enqueue(cutter, rest, push, units);
    if (final) this.#complete(lane);
  }

  /**
   * Takes what is no text: it keeps its place among the texts.
   *
   * `closes` is the beginning of the names of the lanes that it completes; all that waits is then
   * due within `drainMs`. null completes nothing and hurries nothing.
   */
  part(cargo: unknown, nowMs: number, closes: string | null = ""): void {
    this.#advance(nowMs);
    this.#enqueue(this.#cutter(""), "", { cargo });
    if (closes !== null) this.#complete(closes);
  }

  /** Takes what the server says of its pace; of use before anything was measured. */
  hint({ numTokens, nextMs = 0 }: Hint): void {
    if (nextMs > 0) this.#bursts.hint(nextMs, this.#countsTokens !== false && numTokens);
  }

  /** No more will come: all is due within `drainMs`. */
  finish(nowMs: number): void {
    this.#advance(nowMs);
    this.#complete("");
    this.#plannedMs = nowMs;
    this.#endMs = Math.min(this.#endMs, nowMs + this.#options.drainMs);
  }

  // -- what leaves -------------------------------------------------------------------------------

  /** What is to be shown by `nowMs` and was not taken before, in order. */
  take(nowMs: number): Piece[] {
    return this.takeTimed(nowMs).map(([, piece]) => piece);
  }

  /** The same with the time at which each was due. */
  takeTimed(nowMs: number): [dueMs: number, piece: Piece][] {
    this.#advance(nowMs);
    return this.#ready.splice(0);
  }

  /** When `take` has something; undefined while nothing waits. */
  get nextDueMs(): number | undefined {
    return this.#ready.length ? this.#nowMs : this.#dueMs();
  }

  /** How many pieces have not been taken. */
  get numWaiting(): number {
    return this.#ready.length + this.#queue.length;
  }

  /** All that waits, at once: what pacing is switched off with, in the middle of a stream. */
  flush(nowMs: number): Piece[] {
    this.#advance(nowMs);
    while (this.#queue.length) this.#show(nowMs);
    return this.take(nowMs);
  }

  /** Shows nothing more; what was received and never shown, for who wants to keep it. */
  abort(nowMs: number): Piece[] {
    const ready = this.take(nowMs);
    this.#complete("");
    this.#batches = [];
    return [...ready, ...this.#queue.splice(0)];
  }

  get stats(): PacerStats {
    return {
      numPieces: this.#numPieces,
      numChars: this.#numChars,
      waitingChars: this.#queue.map(({ text }) => text).join("").length,
      meanAddedDelayMs: this.#sumDelayMs / (this.#numPieces || 1),
      maxAddedDelayMs: this.#maxDelayMs,
      delayTargetMs: this.#delayMs,
      gapMs: this.#bursts.gapMs,
      unitsPerBurst: this.#numUnits / (this.#bursts.numBursts || 1),
    };
  }

  // -- inside ------------------------------------------------------------------------------------

  #cutter(lane: string): Cutter {
    let cutter = this.#cutters.get(lane);
    if (!cutter) this.#cutters.set(lane, (cutter = new Cutter(lane, this.#options.cuts?.())));
    return cutter;
  }

  /**
   * How many tokens `text` weighs; undefined where this stream is weighed in graphemes.
   *
   * A stream is weighed in one unit for good: tokens if its first text came with their number, and
   * then a text without it is taken for tokens of the usual length.
   */
  #count(text: string, numTokens = 0): number | undefined {
    if (text) this.#countsTokens ??= numTokens > 0 && this.#options.unit !== "grapheme";
    if (!this.#countsTokens) return;
    const numChars = [...text].length;
    if (numTokens <= 0) return Math.max(1, Math.round(numChars / this.#charsPerToken));
    this.#charsPerToken += (Math.max(1, numChars / numTokens) - this.#charsPerToken) / 8;
    return numTokens;
  }

  #enqueue(cutter: Cutter, text: string, push: Push, weight?: number): void {
    const options = this.#options;
    const nowMs = (this.#plannedMs = this.#nowMs);
    const pieces = cutter.cut(text, nowMs, text && options.enabled !== false ? weight : 0, push);
    this.#queue.push(...pieces);
    let units = 0;
    for (const piece of pieces) units += piece.weight;
    if (!units) return;
    this.#bursts.push(nowMs, units);
    const last = this.#batches.at(-1);
    if (last?.capMs === Infinity && nowMs - last.arrivalMs < SAME_ARRIVAL_MS) last.units += units;
    else this.#batches.push({ arrivalMs: nowMs, capMs: this.#endMs, units });
    const slackMs = this.#bursts.periodMs - this.#bursts.gapMs;
    this.#delayMs = delayTargetMs(this.#options, slackMs, this.#delayMs, nowMs - this.#aimedMs);
    this.#aimedMs = nowMs;
    // The first unit is never held.
    if (cutter.open && (this.#numUnits || pieces.length > 1))
      cutter.open.notBeforeMs = nowMs + Math.min(options.holdMs, options.drainMs, this.#delayMs);
    this.#numUnits += units;
  }

  /** The lanes whose names begin so are complete, and all that waits is due within `drainMs`. */
  #complete(lanes: string): void {
    for (const [lane, cutter] of this.#cutters) if (lane.startsWith(lanes)) cutter.close();
    const last = this.#batches.at(-1);
    if (last) last.capMs = Math.min(last.capMs, this.#nowMs + this.#options.drainMs);
  }

  /** When the head of the queue is to be shown; undefined if nothing waits. */
  #dueMs(): number | undefined {
    const head = this.#queue[0];
    if (!head) return;
    const unitMs = gapMs(
      this.#batches,
      this.#unitMs,
      this.#delayMs,
      this.#bursts.gapMs,
      this.#endMs < Infinity,
    );
    return Math.max(this.#plannedMs, head.notBeforeMs, this.#unitMs + head.weight * unitMs);
  }

  /** Moves what became due up to `nowMs` to what is ready. */
  #advance(nowMs: number): void {
    if (nowMs < this.#nowMs) throw new RangeError(`time went back to ${nowMs} ms`);
    // While nothing waits, dueMs is undefined, which no comparison holds for.
    for (let dueMs; (dueMs = this.#dueMs()!) <= nowMs;) this.#show(dueMs);
    this.#nowMs = nowMs;
  }

  #show(dueMs: number): void {
    const piece = this.#queue.shift()!;
    const cutter = this.#cutter(piece.lane);
    if (cutter.open === piece) cutter.close();
    this.#plannedMs = dueMs;
    if (piece.weight) {
      this.#unitMs = dueMs;
      if ((this.#batches[0]!.units -= piece.weight) < ROUNDING) this.#batches.shift();
    }
    const addedMs = dueMs - piece.arrivalMs;
    this.#numPieces++;
    this.#numChars += piece.text.length;
    this.#sumDelayMs += addedMs;
    this.#maxDelayMs = Math.max(this.#maxDelayMs, addedMs);
    this.#ready.push([dueMs, piece]);
  }
}
