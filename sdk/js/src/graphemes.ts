/**
 * Where text may be cut: between user-perceived characters.
 *
 * Extended grapheme clusters of UAX #29 as one pattern, small enough to be the same in every
 * language; each character is looked at a bounded number of times. Left out: prepended signs (a few
 * Arabic and Indic ones). `Intl.Segmenter` is not asked: it does not know whether a text may grow.
 */

/** Marks, joiners, variation selectors, skin tones, tags, half-width voicing marks, sara am. */
export const EXTENDS = "[\\p{M}\\p{Gr_Ext}\\p{EMod}\u200d\u0e33\u0eb3]";

/** A cluster; anything is one. */
export const CLUSTER =
  "\r\n|" +
  // a flag or a character that is no control, and what joins it
  `(?:\\p{RI}{2}|[^\0-\x1f])(?:${EXTENDS}` +
  // a pictograph behind a pictograph and a joiner (GB11)
  `|(?<=\\p{ExtPict}${EXTENDS}*\u200d)\\p{ExtPict}` +
  // a letter behind a virama that links (GB9c)
  "|\\p{L}(?<=[\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d][\u0900-\u0dff])" +
  // Hangul in letters: leading consonants, then vowels, then trailing ones (GB6 to GB8)
  "|(?<=[\u1100-\u115f])[\u1100-\u115f\uac00-\ud7a3]" +
  "|[\u1160-\u11ff](?<=[\u1100-\u11a7\uac00-\ud7a3].|[\u11a8-\u11ff]{2})" +
  // and no more than that: endless marks must not hold up a stream
  "){0,63}|[^]";

/**
 * What a text may end in and not be whole: half a flag, a pictograph; the scripts of South and
 * South-East Asia, whose vowels are marks; jamo; half a surrogate pair. A letter of other scripts
 * is let go: nearly always it is whole, and holding the last letter of every token would cost more
 * than a late accent.
 */
const GROWS = /^\p{RI}$|^\p{ExtPict}|[\u0900-\u11ff\u1700-\u17ff\ud800-\udbff]$/u;

/** The ends of what `pattern` (sticky) finds in `text` from `start`, one after the other. */
export function endsOf(pattern: RegExp, text: string, start = 0): number[] {
  const ends: number[] = [];
  for (pattern.lastIndex = start; pattern.test(text);) ends.push(pattern.lastIndex - start);
  return ends;
}

const PATTERN = new RegExp(CLUSTER, "uy");

/** Text by graphemes. */
export const GRAPHEMES = {
  /** The ends of the pieces of `text` that must stay whole, ascending; the last is its length. */
  ends: (text: string) => endsOf(PATTERN, text),
  /** Whether what comes next is likely to belong to the last of them, `atom`. */
  mayGrow: (atom: string) => GROWS.test(atom),
};
