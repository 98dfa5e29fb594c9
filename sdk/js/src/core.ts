/**
 * The least that smooths a stream: the parser and the pacer, pure both.
 *
 * This pacer takes its options as they are and shows tokens or graphemes. Presets by name, checked
 * options and words come with the one of `paceline`, which is this one under them.
 */

export type { Cuts, Piece } from "./cutting.js";
export type { CoreOptions as PacerOptions } from "./options.js";
export { type Hint, Pacer, type PacerStats, type Push } from "./pacer.js";
export { SseError, type SseEvent, SseParser, type SseParserOptions } from "./sse.js";
