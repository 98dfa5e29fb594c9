/**
 * `smoothStream` for the Vercel AI SDK, in the place of the one of the `ai` package.
 *
 *     import { smoothStream } from "paceline/ai-sdk";
 *
 *     streamText({ model, prompt, experimental_transform: smoothStream() });
 *
 * The options of that one are understood, and those of `Playback` beside them. What differs: the
 * pace is the stream's own instead of a pause of fixed length, the model is read while text waits,
 * and a stream that closes without `text-end` loses nothing. Nothing is imported from `ai`, so any
 * version of it that has parts of this shape will do.
 */

import { type Chunking, Chunks } from "./ai-chunking.js";
import { PartPacer, type StreamPart } from "./ai-parts.js";
import type { PlaybackOptions } from "./playback.js";
import { SmoothStream } from "./stream.js";

export type { ChunkDetector, Chunking } from "./ai-chunking.js";
export type { StreamPart } from "./ai-parts.js";

export interface SmoothStreamOptions extends Omit<
  PlaybackOptions<StreamPart>,
  "numChoices" | "onArrival"
> {
  /** null and 0 switch pacing off. Other values are accepted and change nothing. */
  readonly delayInMs?: number | null | undefined;
  /**
   * What is given out at a time. "word" is `unit: "word"`. With "line", a RegExp, a segmenter or a
   * function, text waits until such a chunk is whole, however long that takes.
   */
  readonly chunking?: Chunking | undefined;
  /** Called with every part as it arrives and unsplit. */
  readonly onArrival?: ((part: StreamPart) => void) | undefined;
}

/**
 * A value for `experimental_transform`, by itself or in a list.
 *
 * Text and reasoning are paced. Other parts keep their place, and what waits before them is shown
 * within `drainMs`; `ai` runs a tool as soon as its call is read, which waits for nothing. An
 * `abort` part gives out all that waits at once. Throws RangeError for options that no pacer could
 * keep, TypeError for a `chunking` that is none.
 */
export function smoothStream({ delayInMs, chunking, ...given }: SmoothStreamOptions = {}): <
  PART extends StreamPart,
>(
  options?: unknown,
) => TransformStream<PART, PART> {
  const off = delayInMs === null || delayInMs === 0;
  const options: PlaybackOptions<StreamPart> = {
    ...given,
    ...(off ? { enabled: false } : {}),
    ...(chunking === "word" && !given.unit ? { unit: "word" } : {}),
  };
  const make = () => {
    const chunks = chunking === undefined || chunking === "word" ? undefined : new Chunks(chunking);
    return new SmoothStream(options, new PartPacer(options, chunks));
  };
  make(); // so that what is wrong is said here
  return <PART extends StreamPart>() => make() as unknown as TransformStream<PART, PART>;
}
