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
import { Cutter, newPiece, type Piece } from "./cutting.js";
import { length } from "./graphemes.js";
import { optionsFor, type Pacing, type PacerOptions } from "./options.js";
import { Playout } from "./playout.js";

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
  readonly #options: PacerOptions;
  readonly #bursts = new Bursts();
  readonly #playout: Playout<Piece>;
  readonly #cutters = new Map<string, Cutter>();
  #ready: [number, Piece][] = [];
  #nowMs = -Infinity;
  #countsTokens: boolean | undefined;
  #charsPerToken = 4;
  #started = false;
  #numUnits = 0;
  #numPieces = 0;
  #numChars = 0;
  #waitingChars = 0;
  #sumDelayMs = 0;
  #maxDelayMs = 0;

  constructor(pacing?: Pacing) {
    this.#options = optionsFor(pacing);
    this.#playout = new Playout(this.#options, this.#bursts);
  }

  // -- what arrives ------------------------------------------------------------------------------

  /**
   * Takes text that arrived.
   *
   * Text that completes the lane's last character moves to that piece; if none is left, `cargo`
   * goes on in a piece without text, in its place. `final` says that the lane is complete: nothing
   * is held, and all that waits is due within `drainMs`.
   */
  push(text: string, nowMs: number, push: Push = {}): void {
    const { lane = "text", numTokens, tokenTexts, cargo, final } = push;
    this.#advance(nowMs);
    const cutter = this.#cutter(lane);
    this.#waitingChars += text.length;
    const { enabled } = this.#options;
    const rest = enabled ? cutter.extend(text, this.#aged(cutter)) : text;
    const units = this.#count(text, numTokens);
    const known = numTokens ?? 0;
    if (rest && enabled) {
      const texts = rest.length === text.length ? tokenTexts : undefined;
      this.#arrive(cutter.cut(rest, nowMs, cargo, units, known, texts), cutter, nowMs);
    } else if (rest || cargo !== undefined) {
      this.#enqueue(newPiece(lane, rest, 0, nowMs, cargo, [0, known]), nowMs);
    }
    if (final) {
      cutter.close();
      this.#playout.hurry(nowMs);
    }
    this.#advance(nowMs);
  }

  /**
   * Takes what is no text: it keeps its place among the texts.
   *
   * `closes` is the beginning of the names of the lanes that it completes; all that waits is then
   * due within `drainMs`. null completes nothing and hurries nothing.
   */
  part(cargo: unknown, nowMs: number, closes: string | null = ""): void {
    this.#advance(nowMs);
    this.#enqueue(newPiece("", "", 0, nowMs, cargo), nowMs);
    if (closes !== null) {
      for (const [lane, cutter] of this.#cutters) if (lane.startsWith(closes)) cutter.close();
      this.#playout.hurry(nowMs);
    }
    this.#advance(nowMs);
  }

  /** Takes what the server says of its pace; of use before anything was measured. */
  hint({ numTokens, nextMs = 0 }: Hint): void {
    if (nextMs > 0 && nextMs < Infinity)
      this.#bursts.hint(nextMs, this.#countsTokens === false ? undefined : numTokens);
  }

  /** No more will come: all is due within `drainMs`. */
  finish(nowMs: number): void {
    this.#advance(nowMs);
    this.#closeAll();
    this.#playout.end(nowMs);
    this.#advance(nowMs);
  }

  // -- what leaves -------------------------------------------------------------------------------

  /** What is to be shown by `nowMs` and was not taken before, in order. */
  take(nowMs: number): Piece[] {
    return this.takeTimed(nowMs).map(([, piece]) => piece);
  }

  /** The same with the time at which each was due. */
  takeTimed(nowMs: number): [dueMs: number, piece: Piece][] {
    this.#advance(nowMs);
    const taken = this.#ready;
    this.#ready = [];
    return taken;
  }

  /** When `take` has something; undefined while nothing waits. */
  get nextDueMs(): number | undefined {
    return this.#ready.length ? this.#nowMs : this.#playout.dueMs();
  }

  /** How many pieces have not been taken. */
  get numWaiting(): number {
    return this.#ready.length + this.#playout.length;
  }

  /** All that waits, at once: what pacing is switched off with, in the middle of a stream. */
  flush(nowMs: number): Piece[] {
    this.#advance(nowMs);
    this.#closeAll();
    while (this.#playout.length) this.#show(nowMs);
    return this.take(nowMs);
  }

  /** Shows nothing more; what was received and never shown, for who wants to keep it. */
  abort(nowMs: number): Piece[] {
    const ready = this.take(nowMs);
    this.#closeAll();
    this.#waitingChars = 0;
    return [...ready, ...this.#playout.clear()];
  }

  get stats(): PacerStats {
    return {
      numPieces: this.#numPieces,
      numChars: this.#numChars,
      waitingChars: this.#waitingChars,
      meanAddedDelayMs: this.#sumDelayMs / Math.max(1, this.#numPieces),
      maxAddedDelayMs: this.#maxDelayMs,
      delayTargetMs: this.#playout.delayMs,
      gapMs: this.#bursts.gapMs,
      unitsPerBurst: this.#numUnits / Math.max(1, this.#bursts.numBursts),
    };
  }

  // -- inside ------------------------------------------------------------------------------------

  #cutter(lane: string): Cutter {
    let cutter = this.#cutters.get(lane);
    if (!cutter) this.#cutters.set(lane, (cutter = new Cutter(this.#options.unit, lane)));
    return cutter;
  }

  #closeAll(): void {
    for (const cutter of this.#cutters.values()) cutter.close();
  }

  /** Whether the lane's open piece has waited for half of what it may. */
  #aged({ openPiece }: Cutter): boolean {
    if (!openPiece || this.#options.unit !== "word") return false;
    const { arrivalMs, notBeforeMs } = openPiece;
    return this.#nowMs - arrivalMs > (notBeforeMs - arrivalMs) / 2;
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
    const numChars = length(text);
    if (numTokens <= 0) return Math.max(1, Math.floor(numChars / this.#charsPerToken + 0.5));
    this.#charsPerToken += (Math.max(1, numChars / numTokens) - this.#charsPerToken) / 8;
    return numTokens;
  }

  #arrive(pieces: Piece[], cutter: Cutter, nowMs: number): void {
    let units = 0;
    for (const piece of pieces) units += piece.weight;
    this.#numUnits += units;
    this.#bursts.arrive(nowMs, units);
    for (const piece of pieces) this.#playout.push(piece);
    this.#playout.replan(nowMs);
    if (!this.#started) {
      this.#started = true;
      if (pieces.length === 1) cutter.close(); // the first unit is never held
    }
    if (cutter.openPiece) {
      const { holdMs, drainMs } = this.#options;
      cutter.openPiece.notBeforeMs = nowMs + Math.min(holdMs, drainMs, this.#playout.delayMs);
    }
  }

  #enqueue(piece: Piece, nowMs: number): void {
    this.#playout.push(piece);
    this.#playout.replan(nowMs);
  }

  /** Moves what became due up to `nowMs` to what is ready. */
  #advance(nowMs: number): void {
    if (nowMs < this.#nowMs)
      throw new RangeError(`time went back from ${this.#nowMs} to ${nowMs} ms`);
    this.#nowMs = nowMs;
    for (let dueMs; (dueMs = this.#playout.dueMs()) !== undefined && dueMs <= nowMs;)
      this.#show(dueMs);
  }

  #show(dueMs: number): void {
    const piece = this.#playout.pop(dueMs);
    const cutter = this.#cutters.get(piece.lane);
    if (cutter?.openPiece === piece) cutter.close();
    const addedMs = dueMs - piece.arrivalMs;
    this.#numPieces++;
    this.#numChars += piece.text.length;
    this.#waitingChars -= piece.text.length;
    this.#sumDelayMs += addedMs;
    this.#maxDelayMs = Math.max(this.#maxDelayMs, addedMs);
    this.#ready.push([dueMs, piece]);
  }
}
