/**
 * A pacer under a clock: the one loop that every adapter plays through.
 *
 *     const playback = new Playback<Chunk>({ show: (chunks) => …, end: (error) => … }, options);
 *     playback.push(chunk);      // as it arrives; what is due is shown within this call
 *     playback.end();            // no more will come; `end` is told after the last was shown
 *
 * An error goes the way of an end: what arrived before it is shown first.
 */

import { ChunkPacer } from "./chunks.js";
import { systemClock, type Clock } from "./clock.js";
import { IncompleteStreamError } from "./errors.js";
import { pageMotion, type Motion, type MotionOptions } from "./motion.js";
import type { PacerOptions } from "./options.js";
import type { Hint, PacerStats } from "./pacer.js";
import type { Preset } from "./presets.js";

export interface PlaybackOptions<T> extends Partial<PacerOptions>, MotionOptions {
  readonly preset?: Preset;
  /** Called with every chunk as it arrives and unsplit: the place to dispatch tool calls. */
  readonly onArrival?: ((chunk: T) => void) | undefined;
  /** How many choices were asked for (`n`); 1 if not said. */
  readonly numChoices?: number | undefined;
  readonly clock?: Clock | undefined;
  /** When to pace and when to let through; the page's own wishes if not said. */
  readonly motion?: Motion | undefined;
}

/** Who is shown the chunks. */
export interface Listener<T> {
  show(chunks: T[]): void;
  /** Told once, after the last chunk; not after `abort`. */
  end(error?: unknown): void;
}

/** What a playback plays through: `ChunkPacer`, or a pacer of the same shape for other chunks. */
export type ChunkPacing<T> = Pick<
  ChunkPacer<T>,
  | "push"
  | "finish"
  | "take"
  | "flush"
  | "abort"
  | "nextDueMs"
  | "numWaiting"
  | "stats"
  | "allFinished"
  | "incomplete"
>;

export class Playback<T> {
  readonly #listener: Listener<T>;
  readonly #pacer: ChunkPacing<T>;
  readonly #onArrival: ((chunk: T) => void) | undefined;
  readonly #clock: Clock;
  readonly #motion: Motion;
  #unwatch: (() => void) | undefined;
  #cancelTimer: (() => void) | undefined;
  #ended = false;
  #over = false;
  #error: unknown;

  /**
   * Throws RangeError for options that no pacer could keep. A `pacer` given has its own; the
   * others are still the playback's.
   */
  constructor(
    listener: Listener<T>,
    options: PlaybackOptions<T> | Preset = {},
    pacer?: ChunkPacing<T>,
  ) {
    const given: PlaybackOptions<T> = typeof options === "string" ? { preset: options } : options;
    this.#listener = listener;
    this.#pacer = pacer ?? new ChunkPacer<T>(given, given.numChoices);
    this.#onArrival = given.onArrival;
    this.#clock = given.clock ?? systemClock;
    this.#motion = given.motion ?? pageMotion(given);
  }

  /** Takes a chunk that arrives now. What comes after the end is dropped. */
  push(chunk: T, hint?: Hint): void {
    if (this.#ended) return;
    this.#unwatch ??= this.#motion.watch(this.#play);
    this.#pacer.push(chunk, this.#clock.nowMs(), hint, !this.#motion.wanted);
    this.#play();
    this.#onArrival?.(chunk);
  }

  /** No more will come. `error` says why, if it should not be so; `early`, that it is as wished. */
  end(error?: unknown, early = false): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    if (error === undefined && !early && this.#pacer.incomplete)
      this.#error = new IncompleteStreamError("the stream ended before its finish");
    this.#pacer.finish(this.#clock.nowMs());
    this.#play();
  }

  /** Shows at once all that waits. */
  flush(): void {
    if (!this.#over) this.#shown(this.#pacer.flush(this.#clock.nowMs()));
  }

  /** Shows nothing more; what had arrived and was not shown. */
  abort(): T[] {
    if (this.#over) return [];
    const unshown = this.#pacer.abort(this.#clock.nowMs());
    this.#close();
    return unshown;
  }

  /** How many pieces wait. */
  get numWaiting(): number {
    return this.#pacer.numWaiting;
  }

  get allFinished(): boolean {
    return this.#pacer.allFinished;
  }

  get stats(): PacerStats {
    return this.#pacer.stats;
  }

  readonly #play = (): void => {
    if (this.#over) return;
    const nowMs = this.#clock.nowMs();
    this.#shown(this.#motion.wanted ? this.#pacer.take(nowMs) : this.#pacer.flush(nowMs));
  };

  #shown(chunks: T[]): void {
    this.#cancelTimer?.();
    const dueMs = this.#pacer.nextDueMs;
    this.#cancelTimer = dueMs === undefined ? undefined : this.#clock.callAt(dueMs, this.#play);
    if (chunks.length) this.#listener.show(chunks);
    // The listener may have ended or aborted it meanwhile.
    if (!this.#ended || this.#over || this.#pacer.numWaiting) return;
    this.#close();
    this.#listener.end(this.#error);
  }

  #close(): void {
    this.#ended = this.#over = true;
    this.#cancelTimer?.();
    this.#unwatch?.();
  }
}
