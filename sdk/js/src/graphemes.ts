/**
 * Where text may be cut: between user-perceived characters, escape sequences and code fences.
 *
 * `atoms` cuts a text into pieces that must stay whole; `mayGrow` says whether the last one could
 * still change with what comes. Both look at each character a bounded number of times.
 *
 * Extended grapheme clusters of UAX #29, in a form small enough to be the same in every language:
 * marks by general category, pictographs by block. Left out: prepended signs (a few Arabic and
 * Indic ones). `Intl.Segmenter` is not asked: what it says depends on the browser's version of
 * Unicode, and it knows neither fences nor whether a text may grow.
 */

/** A cluster longer than this is cut: endless combining marks must not hold up a stream. */
const MAX_ATOM_CHARS = 64;

const ESCAPE =
  // CSI: parameters, intermediates, final byte; OSC up to BEL or ST; others
  /\x1b(?:\[[0-?]{0,60}[ -/]{0,4}[@-~]?|\][^\x07\x1b]{0,250}(?:\x07|\x1b\\?)?|[ -/]{0,2}[0-Z^-~\\]?)/uy;
const WHOLE_ESCAPE =
  /^\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z^-~\\])$/u;
// Up to three spaces may indent a fence (CommonMark); one or two backticks may become three.
const FENCE = / {0,3}(?:`{3,30}[^\t-\r\x1b `]{0,32}|`{1,2})/uy;

/** Marks, joiners, variation selectors, skin tones, tags, half-width voicing marks, sara am. */
const EXTENDS =
  /^[\p{M}\u0e33\u0eb3\u200c\u200d\uff9e\uff9f\u{1f3fb}-\u{1f3ff}\u{e0020}-\u{e007f}]/u;
/** Extended_Pictographic, by block. */
const PICTOGRAPH =
  /^[©®‼⁉™ℹ〰〽㊗㊙\u2190-\u21ff\u2300-\u23ff\u25a0-\u25ff\u2600-\u27bf\u2b00-\u2bff\u{1f000}-\u{1faff}]/u;
const REGIONAL = /^[\u{1f1e6}-\u{1f1ff}]$/u;
const ENDS_REGIONAL = /[\u{1f1e6}-\u{1f1ff}]$/u;
/** Viramas that link the consonant before to the one after (UAX #29, GB9c). */
const LINKER = /[\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d]/;
/** GB6 to GB8: leading consonants, vowels, trailing ones; syllables with (t) and without (v). */
const HANGUL_SEQUENCE = /^(L[LVvt]|[Vv][VT]|[Tt]T)$/;
/**
 * What a text may end in and not be whole: a joiner; the scripts of South and South-East Asia,
 * whose vowels are marks; Hangul jamo; half a surrogate pair.
 */
const GROWS = /[\u200d\u0900-\u11ff\u1700-\u17ff\ud800-\udbff]$/;

/** How many characters: code points, as in every language. */
export function length(text: string): number {
  let number = 0;
  for (const _ of text) number++;
  return number;
}

/**
 * The ends of the pieces of `text` that must stay whole, ascending; the last is its length.
 *
 * `lineStart` says whether nothing but spaces stands before it on its line.
 */
export function atoms(text: string, lineStart = true): number[] {
  const ends: number[] = [];
  for (let at = 0; at < text.length; ends.push(at)) {
    at = special(text, at, lineStart) || clusterEnd(text, at);
    lineStart = text[at - 1] === "\n";
  }
  return ends;
}

/** Where the escape sequence, line end or fence ends that begins at `at`; 0 if none does. */
function special(text: string, at: number, lineStart: boolean): number {
  const char = text[at];
  if (char === "\r" && text[at + 1] === "\n") return at + 2;
  const pattern = char === "\x1b" ? ESCAPE : lineStart && FENCE;
  if (!pattern) return 0;
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : 0;
}

function clusterEnd(text: string, start: number): number {
  const first = charAt(text, start);
  let [at, before] = [start + first.length, first];
  for (let number = 1; number < MAX_ATOM_CHARS && text[at]! >= "\u0300"; number++) {
    const char = charAt(text, at);
    const flag = number === 1 && REGIONAL.test(first) && REGIONAL.test(char);
    if (!flag && !joins(first, before, char)) break;
    at += char.length;
    before = char;
  }
  return at;
}

function charAt(text: string, at: number): string {
  const char = text[at]!;
  return char < "\ud800" ? char : String.fromCodePoint(text.codePointAt(at)!);
}

/** Whether `char` belongs to the cluster that begins with `first` and ends in `before`. */
function joins(first: string, before: string, char: string): boolean {
  if (before < " ") return false;
  if (EXTENDS.test(char)) return true;
  if (before === "\u200d") return PICTOGRAPH.test(first) && PICTOGRAPH.test(char);
  if (LINKER.test(before))
    return before.charCodeAt(0) >> 7 === char.charCodeAt(0) >> 7 && /\p{L}/u.test(char);
  return HANGUL_SEQUENCE.test(hangul(before) + hangul(char));
}

/** The Hangul_Syllable_Type in a letter, or nothing. */
function hangul(char: string): string {
  const code = char.charCodeAt(0);
  if (code < 0x1200) return code < 0x1100 ? "" : code < 0x1160 ? "L" : code < 0x11a8 ? "V" : "T";
  return code < 0xac00 || code > 0xd7a3 ? "" : (code - 0xac00) % 28 ? "t" : "v";
}

/**
 * Whether what comes next is likely to belong to `atom`, the last of a text.
 *
 * An unfinished escape sequence or fence; a joiner, half a flag, a pictograph; scripts that write
 * vowels as marks. A letter of other scripts is let go: nearly always it is whole, and holding the
 * last letter of every token would cost more than a late accent.
 */
export function mayGrow(atom: string, lineStart: boolean): boolean {
  if (atom[0] === "\x1b") return !WHOLE_ESCAPE.test(atom) && length(atom) < 250;
  if (length(atom) >= MAX_ATOM_CHARS) return false;
  if (lineStart && /^ *`/.test(atom)) return true;
  if (ENDS_REGIONAL.test(atom)) return REGIONAL.test(atom);
  return PICTOGRAPH.test(atom) || GROWS.test(atom);
}

/** Whether nothing but spaces stands on the line that `text` ends on. */
export function lineStartAfter(text: string, lineStart: boolean): boolean {
  const newline = text.lastIndexOf("\n");
  return (lineStart || newline >= 0) && /^ *$/.test(text.slice(newline + 1));
}

/** Whether the first character belongs to the one before it. */
export function beginsWithMark(text: string): boolean {
  return EXTENDS.test(text);
}
