/**
 * One lane's text, cut into pieces that may be shown apart: by tokens, words or graphemes.
 *
 * A lane remembers only its last piece, and that only while what comes next may belong to it. Text
 * may move from a new arrival to that piece; what arrived with the text (logprobs, usage) never
 * moves.
 */

import { atoms, beginsWithMark, length, lineStartAfter, mayGrow } from "./graphemes.js";
import type { Unit } from "./options.js";

const MAX_WORD_CHARS = 64;
/** Of one push: more could not be shown apart within the longest delay, timers being 1 ms apart. */
export const MAX_PIECES = 512;

/** Of any script: one unit each. */
const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
/** Han, kana, and their full-width company: every character may end a word. */
const STARTS_IDEOGRAPHIC = /^[\u2e80-\u9fff\uff00-\uffef\u{20000}-\u{10ffff}]/u;
const ENDS_IDEOGRAPHIC = /[\u2e80-\u9fff\uff00-\uffef\u{20000}-\u{10ffff}]$/u;
const ENDS_IN_LETTER = /\p{L}$/u;

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
  first: boolean;
  last: boolean;
  readonly tokens: readonly [from: number, to: number];
  notBeforeMs: number;
}

export function newPiece(
  lane: string,
  text: string,
  weight: number,
  arrivalMs: number,
  cargo: unknown,
  tokens: Piece["tokens"] = [0, 0],
): Piece {
  const [first, last, notBeforeMs] = [true, true, 0];
  return { lane, text, weight, arrivalMs, cargo, first, last, tokens, notBeforeMs };
}

/** (end in the text, atoms up to there) of a piece. */
type Group = readonly [end: number, upto: number];

/** The state of one lane. */
export class Cutter {
  openPiece: Piece | undefined;
  readonly #unit: Unit;
  readonly #lane: string;
  #lineStart = true;
  #careful = false;
  #openAtom = "";

  constructor(unit: Unit, lane: string) {
    this.#unit = unit;
    this.#lane = lane;
  }

  /**
   * Gives the open piece what belongs to it; the text that is left.
   *
   * `aged` says that the piece has not long to wait: a word then gets no more than what completes
   * its last character, so that it need not go out within one.
   */
  extend(text: string, aged: boolean): string {
    const piece = this.openPiece;
    if (!piece || !text) {
      if (beginsWithMark(text)) this.#careful = true; // this stream cuts within characters
      return text;
    }
    const before = this.#openAtom;
    const joined = before + text;
    const end = this.#firstEnd(joined, aged);
    const numMoved = Math.max(0, end - before.length);
    piece.text += text.slice(0, numMoved);
    if (numMoved === text.length && this.#grows(joined.slice(0, end)))
      this.#openAtom = joined.slice(0, end);
    else this.#close(before + text.slice(0, numMoved));
    return text.slice(numMoved);
  }

  /** The open piece is whole. */
  close(): void {
    if (this.openPiece) this.#close(this.#openAtom);
  }

  /**
   * `text` (not empty) in pieces whose weights add up to `units`, or to its graphemes.
   *
   * The last one is `openPiece` if it may still grow.
   */
  cut(
    text: string,
    nowMs: number,
    cargo: unknown,
    units: number | undefined,
    numTokens: number,
    tokenTexts: readonly string[] | undefined,
  ): Piece[] {
    const ends = this.#ends(text);
    const groups = this.#groups(text, ends, units, tokenTexts);
    const tokenEach = groups.length === units && units === numTokens;
    const perAtom = (share: number) => Math.floor((share * numTokens) / ends.length);
    let [start, before] = [0, 0];
    const pieces = groups.map(([end, upto], number) => {
      const weight = tokenEach ? 1 : ((units ?? ends.length) * (upto - before)) / ends.length;
      const tokens = (
        tokenEach ? [number, number + 1] : [perAtom(before), perAtom(upto)]
      ) as Piece["tokens"];
      const piece = newPiece(this.#lane, text.slice(start, end), weight, nowMs, cargo, tokens);
      piece.first = !number;
      piece.last = number === groups.length - 1;
      [start, before] = [end, upto];
      return piece;
    });
    this.#endWith(pieces.at(-1)!, text, ends.at(-2) ?? 0);
    return pieces;
  }

  /** Remembers the end of what was cut, open if it may grow. */
  #endWith(piece: Piece, text: string, start: number): void {
    const atom = text.slice(start);
    this.#lineStart = lineStartAfter(text.slice(0, start), this.#lineStart);
    if (!this.#grows(atom)) return this.#close(atom);
    this.openPiece = piece;
    this.#openAtom = atom;
  }

  /** Where the open atom ends in what it has become with the text after it. */
  #firstEnd(joined: string, withinWord: boolean): number {
    if (!withinWord) return this.#ends(joined)[0]!;
    const least = this.#openAtom.length;
    return atoms(joined, this.#lineStart).find((end) => end >= least)!;
  }

  #ends(text: string): number[] {
    const ends = atoms(text, this.#lineStart);
    return this.#unit === "word" ? wordEnds(text, ends) : ends;
  }

  #grows(atom: string): boolean {
    if (this.#unit === "word" && !SPACE.test(atom.at(-1)!) && length(atom) < MAX_WORD_CHARS)
      return true;
    return (this.#careful && ENDS_IN_LETTER.test(atom)) || mayGrow(atom, this.#lineStart);
  }

  #close(atom: string): void {
    this.#lineStart = lineStartAfter(atom, this.#lineStart);
    if (this.openPiece) this.openPiece.notBeforeMs = 0;
    this.openPiece = undefined;
    this.#openAtom = "";
  }

  /** No more than MAX_PIECES. */
  #groups(
    text: string,
    ends: number[],
    units: number | undefined,
    tokenTexts: readonly string[] | undefined,
  ): Group[] {
    let groups: Group[];
    if (this.#unit !== "token" || units === undefined || units >= ends.length)
      groups = ends.map((end, number) => [end, number + 1]);
    else if (tokenTexts?.join("") === text) groups = atTokens(ends, tokenTexts);
    else groups = evenly(ends, Math.max(1, units));
    return groups.length > MAX_PIECES ? evenly(ends, MAX_PIECES) : groups;
  }
}

function evenly(ends: number[], numGroups: number): Group[] {
  const groups: Group[] = [];
  for (let number = 1; number <= numGroups; number++) {
    const upto = Math.floor((ends.length * number) / numGroups);
    groups.push([ends[upto - 1]!, upto]);
  }
  return groups;
}

/** At the first place after each token where text may be cut. */
function atTokens(ends: number[], tokenTexts: readonly string[]): Group[] {
  const groups: Group[] = [];
  let [number, length, last] = [0, 0, 0];
  const add = (end: number) => {
    if (last < number) groups.push([end, (last = number)]);
  };
  for (const text of tokenTexts) {
    length += text.length;
    while (number < ends.length && ends[number]! <= length) number++;
    if (ends[number - 1] === length) add(length);
  }
  number = ends.length;
  add(ends.at(-1)!);
  return groups;
}

/** The ends before each run of spaces and between characters of scripts without spaces. */
function wordEnds(text: string, ends: number[]): number[] {
  let [start, before] = [0, 0];
  return ends.filter((end, number) => {
    const here = text.slice(before, end);
    const after = text.slice(end, ends[number + 1]);
    before = end;
    const afterSpace = SPACE.test(here.at(-1)!);
    const cuts =
      !after ||
      (SPACE.test(after[0]!) && !afterSpace) ||
      here.endsWith("\n") ||
      (!afterSpace && (STARTS_IDEOGRAPHIC.test(after) || ENDS_IDEOGRAPHIC.test(here))) ||
      length(text.slice(start, end)) >= MAX_WORD_CHARS;
    if (cuts) start = end;
    return cuts;
  });
}
