/**
 * One lane's text, cut into pieces that may be shown apart: by tokens, graphemes or coarser.
 *
 * A lane remembers only its last piece, and that only while what comes next may belong to it. Text
 * may move from a new arrival to that piece; what arrived with the text (logprobs, usage) never
 * moves.
 */

import { GRAPHEMES } from "./graphemes.js";
import type { Push } from "./pacer.js";
import { MAX_PIECES } from "./playout.js";

/** Where the text of a lane may be cut. */
export interface Cuts {
  /**
   * The ends of the pieces of `text` that are to stay whole, ascending; the last is its length.
   * `finely`: as small as can be.
   */
  ends(text: string, finely?: boolean): number[];
  /** Whether what comes next is likely to belong to the last of them, `atom`. */
  mayGrow(atom: string): boolean;
  /** `text` is whole, and stands before what comes. */
  passed?(text: string): void;
  /** The pieces are units of their own: where tokens end is no matter. */
  readonly isCoarse?: boolean;
}

/**
 * What is shown at one time: text of one lane, or a part that is no text (then weight 0).
 *
 * `cargo` is what the push brought along, for the caller; `first` and `last` say where in its push
 * the piece stands, and `tokens` which of the push's tokens it holds (from, to).
 */
export interface Piece {
  readonly lane: string;
  text: string;
  readonly weight: number;
  readonly arrivalMs: number;
  readonly cargo: unknown;
  readonly first: boolean;
  readonly last: boolean;
  readonly tokens: readonly [from: number, to: number];
  notBeforeMs: number;
}

/** Where a piece ends in its text, and how many of the push's shares stand before that. */
type End = readonly [end: number, upto: number];

/** The state of one lane. */
export class Cutter {
  /** The last piece, while it may grow. */
  open: Piece | undefined;
  readonly #lane: string;
  readonly #cuts: Cuts;
  #openAtom = "";

  constructor(lane: string, cuts: Cuts = GRAPHEMES) {
    this.#lane = lane;
    this.#cuts = cuts;
  }

  /** Gives the open piece what belongs to it; the text that is left. */
  extend(text: string, nowMs: number): string {
    const { open } = this;
    if (!open || !text) return text;
    // A word that has waited for half of what it may gets no more than what completes its last
    // character, so that it need not go out within one.
    const isAged = 2 * nowMs > open.arrivalMs + open.notBeforeMs;
    const before = this.#openAtom.length;
    const ends = this.#cuts.ends(this.#openAtom + text, isAged);
    const moved = text.slice(0, ends.find((end) => end >= before)! - before);
    open.text += moved;
    this.#openAtom += moved;
    if (moved !== text || !this.#cuts.mayGrow(this.#openAtom)) this.close();
    return text.slice(moved.length);
  }

  /**
   * `text` in pieces whose weights add up to `units`, or to the number of its graphemes; of no
   * units, in one. The last one is `open` if it may still grow.
   */
  cut(text: string, arrivalMs: number, units: number | undefined, push: Push): Piece[] {
    const { cargo, numTokens = 0 } = push;
    const ends = units === 0 ? [text.length] : this.#cuts.ends(text);
    const groups = this.#groups(text, ends, push, this.#cuts.isCoarse ? Infinity : units);
    const total = groups.at(-1)![1];
    let start = 0;
    let before = 0;
    const pieces: Piece[] = [];
    for (const [end, upto] of groups) {
      pieces.push({
        lane: this.#lane,
        text: text.slice(start, end),
        weight: ((units ?? ends.length) * (upto - before)) / total,
        arrivalMs,
        cargo,
        first: !before,
        last: upto === total,
        tokens: [Math.floor((numTokens * before) / total), Math.floor((numTokens * upto) / total)],
        notBeforeMs: 0,
      });
      start = end;
      before = upto;
    }
    if (units !== 0) {
      const atom = ends.at(-2) ?? 0;
      this.open = pieces.at(-1);
      this.#cuts.passed?.(text.slice(0, atom));
      this.#openAtom = text.slice(atom);
      if (!this.#cuts.mayGrow(this.#openAtom)) this.close();
    }
    return pieces;
  }

  /** The open piece is whole. */
  close(): void {
    if (this.open) this.open.notBeforeMs = 0;
    this.open = undefined;
    this.#cuts.passed?.(this.#openAtom);
    this.#openAtom = "";
  }

  /**
   * No more than MAX_PIECES: at the tokens where their ends are known, else evenly. A share is then
   * a token, or a grapheme where the number of tokens is not known.
   */
  #groups(
    text: string,
    ends: number[],
    { numTokens, tokenTexts = [] }: Push,
    units = Infinity,
  ): End[] {
    if (units && units <= MAX_PIECES && tokenTexts.join("") === text) {
      let length = 0;
      const upto = new Map(
        tokenTexts.map((token, before) => [(length += token.length), before + 1]),
      );
      return ends.map((end): End => [end, upto.get(end)!]).filter(([, upto]) => upto);
    }
    const number = Math.min(ends.length, MAX_PIECES, Math.ceil(units || 1));
    const groups: End[] = [];
    for (let share = 1; share <= number; share++) {
      const upto = Math.floor((ends.length * share) / number);
      groups.push([ends[upto - 1]!, numTokens ? share : upto]);
    }
    return groups;
  }
}
