/** Text by words, of whatever script. */

import { Markup } from "./markup.js";

const MAX_WORD_CHARS = 64;

const SPACE = "[\\p{space}\x1c-\x1f]";
/** Han, kana, and their full-width company: every character may end a word. */
const IDEOGRAPH = "[\u2e80-\u9fff\uff00-\uffef\u{20000}-\u{10ffff}]";
/** Before each run of spaces, behind a line, and beside characters of scripts without spaces. */
const WORD_END = new RegExp(
  `(?<=\n)|(?<!${SPACE})(?=${SPACE}|${IDEOGRAPH})|(?<=${IDEOGRAPH})(?<!${SPACE})`,
  "uy",
);
const ENDS_IN_SPACE = new RegExp(SPACE + "$", "u");

/** The text of one lane. */
export class Words extends Markup {
  readonly isCoarse = true;

  override ends(text: string, finely = false): number[] {
    const ends = super.ends(text);
    if (finely) return ends;
    let start = 0;
    return ends.filter((end) => {
      WORD_END.lastIndex = end;
      const cuts =
        end === text.length ||
        WORD_END.test(text) ||
        [...text.slice(start, end)].length >= MAX_WORD_CHARS;
      if (cuts) start = end;
      return cuts;
    });
  }

  override mayGrow(atom: string): boolean {
    return !ENDS_IN_SPACE.test(atom) || super.mayGrow(atom);
  }
}
