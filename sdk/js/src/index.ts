/**
 * Paceline's TypeScript SDK: a stream's bursts re-paced into a smooth stream.
 */

export { type Piece } from "./cutting.js";
export { PRESETS, type Pacing, type PacerOptions, type Preset, type Unit } from "./options.js";
export { Pacer, type Hint, type PacerStats, type Push } from "./pacer.js";
export { SseError, SseParser, type SseEvent, type SseParserOptions } from "./sse.js";
