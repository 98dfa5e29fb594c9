/**
 * Text with what a view would make a mess of if it came in halves: escape sequences, code fences.
 *
 * Between them it is cut as graphemes are.
 */

import type { Cuts } from "./cutting.js";
import { CLUSTER, endsOf, EXTENDS, GRAPHEMES } from "./graphemes.js";

/** As far as it is there: CSI, its parameters, intermediates, final byte; OSC up to BEL or ST; others. */
const ESCAPE =
  /\x1b(?:\[[0-?]{0,60}[ -/]{0,4}[@-~]?|\][^\x07\x1b]{0,250}(?:\x07|\x1b\\?)?|[ -/]{0,2}[0-Z^-~\\]?)/;
/**
 * With its language, and behind its indentation, up to three spaces (CommonMark). One or two
 * backticks may become one.
 */
const FENCE = /(?<=\n {0,3})(?:`{3,30}[^\t-\r\x1b `]{0,32}|`{1,2})/;
const ATOM = new RegExp(`${ESCAPE.source}|${FENCE.source}|${CLUSTER}`, "uy");

/**
 * The ends of the pieces of `text` that must stay whole, ascending; the last is its length.
 *
 * `indent` is what its first line begins with, a line feed before it; empty within a line.
 */
export function atoms(text: string, indent = "\n"): number[] {
  return endsOf(ATOM, indent + text, indent.length);
}

/**
 * Whether what comes next is likely to belong to `atom`, the last of a text.
 *
 * That is beside graphemes an escape sequence or a fence that either of two signs would lengthen.
 */
export function mayGrow(atom: string, indent: string): boolean {
  const lengthens = (next: string) => atoms(atom + next, indent)[0]! > atom.length;
  return GRAPHEMES.mayGrow(atom) || (/^[\x1b`]/.test(atom) && (lengthens("\\") || lengthens("`")));
}

const BEGINS_WITH_MARK = new RegExp("^" + EXTENDS, "u");

/** The text of one lane. One that was once cut within a character is read with care from then on. */
export class Markup implements Cuts {
  #indent = "\n";
  #isCareful = false;

  ends(text: string): number[] {
    this.#isCareful ||= BEGINS_WITH_MARK.test(text);
    return atoms(text, this.#indent);
  }

  mayGrow(atom: string): boolean {
    return (this.#isCareful && /\p{L}$/u.test(atom)) || mayGrow(atom, this.#indent);
  }

  passed(text: string): void {
    this.#indent = /\n? {0,4}$/.exec(this.#indent + text)![0];
  }
}
