/**
 * `SmoothStream`: pacing between two web streams.
 *
 *     response.body
 *       .pipeThrough(new TextDecoderStream())
 *       .pipeThrough(new SmoothStream())
 *
 * It takes strings, chat-completion chunks, and anything else, which keeps its place. Reading is
 * apart from showing: timers are not in the way of the source, until so much waits that the
 * consumer is far behind.
 */

import type { Preset } from "./presets.js";
import { MAX_WAITING, Outlet } from "./outlet.js";
import type { PacerStats } from "./pacer.js";
import { type ChunkPacing, Playback, type PlaybackOptions } from "./playback.js";

/**
 * An error of the source, and an end before every choice has its finish, error the readable side,
 * after what arrived before. Cancelling the readable side stops the source.
 */
export class SmoothStream<T = string> implements ReadableWritablePair<T, T> {
  readonly readable: ReadableStream<T>;
  readonly writable: WritableStream<T>;
  readonly #playback: Playback<T>;

  /** Throws RangeError for options that no pacer could keep. */
  constructor(options?: PlaybackOptions<T> | Preset, pacer?: ChunkPacing<T>) {
    const outlet = new Outlet<T>();
    const playback = new Playback<T>(outlet, options, pacer);
    this.#playback = playback;
    let stop: (reason: unknown) => void;
    this.writable = new WritableStream<T>({
      start(controller) {
        stop = (reason) => controller.error(reason);
      },
      async write(chunk) {
        playback.push(chunk);
        while (outlet.numWaiting + playback.numWaiting > MAX_WAITING) await outlet.room();
      },
      close: () => playback.end(),
      abort: (reason) => playback.end(reason ?? new DOMException("aborted", "AbortError")),
    });
    this.readable = new ReadableStream<T>(
      {
        async pull(controller) {
          const { done, value } = await outlet.next();
          if (done) controller.close();
          else controller.enqueue(value);
        },
        cancel(reason) {
          playback.abort();
          outlet.close();
          stop(reason);
        },
      },
      // Nothing is fetched before it is asked for: an error would drop what waits in the stream.
      { highWaterMark: 0 },
    );
  }

  /** Gives out at once all that waits. */
  flush(): void {
    this.#playback.flush();
  }

  /** What the pacer has done so far. */
  get stats(): PacerStats {
    return this.#playback.stats;
  }
}
