/**
 * The least that smooths a stream: the parser and the pacer, pure both, within 3 kB on a page.
 *
 * This pacer takes its options as they are and shows tokens or graphemes. Presets by name, checked
 * options, words, and escape sequences and fences that stay whole come with the one of `paceline`,
 * which is this one under them; another rule of where text may be cut is given as `cuts`.
 */

export type { Cuts, Piece } from "./cutting.js";
export type { CoreOptions as PacerOptions } from "./options.js";
export { type Hint, Pacer, type PacerStats, type Push } from "./pacer.js";
export { SseError, type SseEvent, SseParser, type SseParserOptions } from "./sse.js";
