/**
 * `smooth`: any asynchronous stream of chunks, paced.
 *
 *     const stream = await client.chat.completions.create({ …, stream: true });   // openai's
 *     for await (const chunk of smooth(stream)) …
 *
 * The source is read apart from the consumer, so that a slow one does not slow the request. Leaving
 * the loop, by any way, closes the request.
 */

import { systemClock, type Clock } from "./clock.js";
import type { Preset } from "./presets.js";
import { MAX_WAITING, Outlet } from "./outlet.js";
import type { Hint, PacerStats } from "./pacer.js";
import { Playback, type PlaybackOptions } from "./playback.js";

/** After every choice has its finish, usage and the end are waited for this long in all. */
export const GRACE_MS = 5000;

/** What is paced: `openai`'s streams have a controller, which closes the request. */
export type Source<T> = AsyncIterable<T> & { readonly controller?: AbortController };

export interface SmoothOptions<T> extends PlaybackOptions<T> {
  /** Aborting it closes the request, and the iteration rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** A chunk with the server's hint, from a source that can see hints. */
export class Arrived<T> {
  readonly chunk: T;
  readonly hint: Hint | undefined;

  constructor(chunk: T, hint: Hint | undefined) {
    this.chunk = chunk;
    this.hint = hint;
  }
}

/**
 * `source` paced: chunks of the `openai` package's streams, objects of the same shape, or strings.
 *
 * `options` may be the name of a preset: realtime, balanced, silky, off. Throws RangeError for
 * options that no pacer could keep.
 */
export function smooth<T>(
  source: Source<T>,
  options: SmoothOptions<T> | Preset = {},
): SmoothChunks<T> {
  return new SmoothChunks<T>(source, options);
}

/**
 * What `smooth` gives: an iterator. The source is read from the first `next` on.
 *
 * An error of the source is thrown after the text that arrived before it. A stream that ends before
 * every choice has its finish throws IncompleteStreamError, after the text as well.
 */
export class SmoothChunks<T> implements AsyncIterableIterator<T, undefined> {
  readonly #source: Source<T | Arrived<T>>;
  readonly #outlet = new Outlet<T>();
  readonly #playback: Playback<T>;
  readonly #clock: Clock;
  readonly #signal: AbortSignal | undefined;
  #iterator: AsyncIterator<T | Arrived<T>> | undefined;
  #cancelGrace: (() => void) | undefined;
  #closed = false;

  constructor(source: Source<T | Arrived<T>>, options: SmoothOptions<T> | Preset = {}) {
    const given: SmoothOptions<T> = typeof options === "string" ? { preset: options } : options;
    this.#source = source;
    this.#playback = new Playback<T>(this.#outlet, given);
    this.#clock = given.clock ?? systemClock;
    this.#signal = given.signal;
    if (this.#signal?.aborted) this.#aborted();
    else this.#signal?.addEventListener("abort", this.#aborted, { once: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (!this.#iterator && !this.#closed) void this.#read();
    return this.#outlet.next();
  }

  /** Called where a loop is left early. */
  async return(): Promise<IteratorResult<T, undefined>> {
    this.abort();
    return { done: true, value: undefined };
  }

  /** What the pacer has done so far. */
  get stats(): PacerStats {
    return this.#playback.stats;
  }

  /** Gives out at once all that waits. */
  flush(): void {
    this.#playback.flush();
  }

  /**
   * Ends the iteration and closes the request; what had arrived and was not given out.
   *
   * Calling it again does nothing.
   */
  abort(): T[] {
    const unshown = this.#playback.abort();
    const unfetched = this.#outlet.close();
    this.#close();
    return [...unfetched, ...unshown];
  }

  readonly #aborted = (): void => {
    this.#playback.abort();
    this.#outlet.close(this.#signal!.reason);
    this.#close();
  };

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancelGrace?.();
    this.#signal?.removeEventListener("abort", this.#aborted);
    // First the controller: a generator that waits for the network cannot return.
    this.#source.controller?.abort();
    void leave(this.#iterator);
  }

  async #read(): Promise<void> {
    const [outlet, playback] = [this.#outlet, this.#playback];
    try {
      const iterator = (this.#iterator = this.#source[Symbol.asyncIterator]());
      for (let item; !(item = await iterator.next()).done && !this.#closed;) {
        const { value } = item;
        if (value instanceof Arrived) playback.push(value.chunk, value.hint);
        else playback.push(value);
        this.#awaitEnd();
        while (outlet.numWaiting + playback.numWaiting > MAX_WAITING) await outlet.room();
      }
      // Whoever aborts the source by its own controller knows that it is not whole.
      playback.end(undefined, this.#source.controller?.signal.aborted);
    } catch (error) {
      playback.end(error ?? new Error("the source failed"));
    }
    this.#iterator = undefined;
    this.#close();
  }

  /** Once every choice has its finish, the rest is waited for, and no longer than the grace. */
  #awaitEnd(): void {
    if (!this.#playback.allFinished) {
      this.#cancelGrace?.();
      this.#cancelGrace = undefined;
      return;
    }
    this.#cancelGrace ??= this.#clock.callAt(this.#clock.nowMs() + GRACE_MS, () => {
      this.#playback.end();
      this.#close();
    });
  }
}

/** It is over, and all that it said was given out: how it takes its end is no matter of ours. */
async function leave(iterator: AsyncIterator<unknown> | undefined): Promise<void> {
  try {
    await iterator?.return?.();
  } catch {
    // as said
  }
}
