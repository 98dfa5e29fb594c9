/**
 * Paceline's TypeScript SDK: a stream's bursts re-paced into a smooth stream.
 *
 * Start at `smooth`, which paces any asynchronous stream of chunks, such as the `openai` package's,
 * at `SmoothStream`, for web streams, or at `Client`, which needs no other package. Below them is
 * `Playback`, what every adapter plays through, and `Pacer`, pure, under a clock of yours.
 */

export { type Chunk, chunkText, type Route } from "./answers.js";
export { ChunkPacer } from "./chunks.js";
export {
  type Body,
  ChatStream,
  Client,
  type ClientOptions,
  type RequestOptions,
} from "./client.js";
export { type Clock, systemClock } from "./clock.js";
export type { Piece } from "./cutting.js";
export {
  ApiError,
  AuthenticationError,
  BadRequestError,
  BadStreamError,
  ConnectError,
  ConnectionCutError,
  IncompleteStreamError,
  NotFoundError,
  OverloadedError,
  PacelineError,
  ServerError,
  StreamError,
  StreamErrorEvent,
} from "./errors.js";
export { HINTS_HEADER, parseHint } from "./hints.js";
export { type Motion, type MotionOptions, pageMotion } from "./motion.js";
export { smooth, SmoothChunks, type SmoothOptions, type Source } from "./openai.js";
export type { PacerOptions, Unit } from "./options.js";
export type { Hint, PacerStats, Push } from "./pacer.js";
export { type ChunkPacing, type Listener, Playback, type PlaybackOptions } from "./playback.js";
export { Pacer, type Pacing, type Preset, PRESETS } from "./presets.js";
export type { Retries } from "./retries.js";
export { SseError, type SseEvent, SseParser, type SseParserOptions } from "./sse.js";
export { SmoothStream } from "./stream.js";
