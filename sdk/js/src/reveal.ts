/**
 * A text that grows, shown at its pace: what views subscribe to that are given the whole text again
 * and again. It knows no framework; `useSmoothText` is the hook on it.
 */

import { type Clock } from "./clock.js";
import { frameClock } from "./frames.js";
import { pageMotion, type Motion } from "./motion.js";
import { Playback, type PlaybackOptions } from "./playback.js";
import { optionsFor } from "./presets.js";

/** Of the time, rendering may take a quarter; nothing is held back longer than this for it. */
const RENDER_SHARE = 0.25;
const LONGEST_INTERVAL_MS = 96;

export interface Revealed {
  /** The beginning of the text that is to be seen. */
  readonly text: string;
  /** Whether that is all that has arrived. */
  readonly isCaughtUp: boolean;
  /** "done" once no more will come and all is to be seen. */
  readonly status: "streaming" | "done";
}

export class Reveal {
  readonly #options: PlaybackOptions<string>;
  readonly #clock: Clock;
  readonly #motion: Motion;
  readonly #watchers = new Set<() => void>();
  #playback: Playback<string> | undefined;
  #received: string;
  #shown: string;
  #isStreaming: boolean;
  #snapshot: Revealed;
  #toldMs = -Infinity;
  #renderMs = 0;
  #isRendering = false;
  #cancelTelling: (() => void) | undefined;

  /** What is there at the beginning is shown at once. Throws RangeError as `Playback` does. */
  constructor(text: string, isStreaming: boolean, options: PlaybackOptions<string> = {}) {
    optionsFor(options); // so that what is wrong is said here
    this.#clock = options.clock ?? frameClock;
    this.#motion = options.motion ?? pageMotion(options);
    this.#options = { ...options, clock: this.#clock, motion: this.#motion };
    this.#received = this.#shown = text;
    this.#isStreaming = isStreaming;
    this.#snapshot = this.#now();
  }

  /** Calls back when `getSnapshot` gives something else; what is returned ends that. */
  readonly subscribe = (changed: () => void): (() => void) => {
    this.#watchers.add(changed);
    return () => this.#watchers.delete(changed);
  };

  readonly getSnapshot = (): Revealed => this.#snapshot;

  /**
   * Takes the text as it is now, and whether it still grows.
   *
   * What was appended is paced. A text that does not begin with the last one is another text and
   * shown at once, and so is all that changes while nothing streams or pacing is not `enabled`.
   */
  update(text: string, isStreaming: boolean, enabled = true): void {
    const streamed = isStreaming || this.#playback !== undefined;
    const grows = text.startsWith(this.#received);
    this.#isStreaming = isStreaming;
    if (!grows || !enabled || !streamed) {
      this.#playback?.abort();
      this.#playback = undefined;
      this.#received = this.#shown = text;
      return this.#tell();
    }
    const added = text.slice((this.#playback ? this.#received : this.#shown).length);
    this.#received = text;
    if (added) (this.#playback ??= this.#play()).push(added);
    if (!isStreaming) this.#playback?.end();
    this.#tellInTime();
  }

  /** Nobody looks: no timer is left. The next `update` goes on where this one stopped. */
  stop(): void {
    this.#playback?.abort();
    this.#playback = undefined;
    this.#cancelTelling?.();
    this.#cancelTelling = undefined;
  }

  /** The view has rendered what it was told last: how long that took sets how often it is told. */
  rendered(): void {
    if (!this.#isRendering) return;
    this.#isRendering = false;
    const tookMs = this.#clock.nowMs() - this.#toldMs;
    this.#renderMs += (tookMs - this.#renderMs) / 4;
  }

  #play(): Playback<string> {
    const playback = new Playback<string>(
      {
        show: (texts) => {
          this.#shown += texts.join("");
          this.#tellInTime();
        },
        end: () => {
          if (this.#playback === playback) this.#playback = undefined;
          this.#tell();
        },
      },
      this.#options,
    );
    return playback;
  }

  /** At once if rendering leaves the time for it, else as soon as it does. */
  #tellInTime(): void {
    const intervalMs = Math.min(LONGEST_INTERVAL_MS, this.#renderMs / RENDER_SHARE);
    const dueMs = this.#toldMs + intervalMs;
    if (dueMs <= this.#clock.nowMs() || !this.#motion.wanted) return this.#tell();
    this.#cancelTelling ??= this.#clock.callAt(dueMs, () => this.#tell());
  }

  #tell(): void {
    this.#cancelTelling?.();
    this.#cancelTelling = undefined;
    const [before, now] = [this.#snapshot, this.#now()];
    if (
      now.text === before.text &&
      now.isCaughtUp === before.isCaughtUp &&
      now.status === before.status
    )
      return;
    this.#snapshot = now;
    this.#toldMs = this.#clock.nowMs();
    this.#isRendering = true;
    for (const changed of this.#watchers) changed();
  }

  #now(): Revealed {
    const isCaughtUp = this.#shown.length === this.#received.length;
    const status = this.#isStreaming || !isCaughtUp ? "streaming" : "done";
    return { text: this.#shown, isCaughtUp, status };
  }
}
