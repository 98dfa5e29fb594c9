"use client";
/**
 * `useSmoothText` for React 18 and later: a growing text, paced.
 *
 *     const { text } = useSmoothText(message.text, { isStreaming });
 *     return <p>{text}</p>;
 */

import { useEffect, useLayoutEffect, useMemo, useSyncExternalStore } from "react";

import type { PlaybackOptions } from "./playback.js";
import { Reveal, type Revealed } from "./reveal.js";

export type { Revealed } from "./reveal.js";

/** `enabled` may change at any time; the others are read when a stream begins. */
export interface SmoothTextOptions extends Omit<
  PlaybackOptions<string>,
  "numChoices" | "onArrival"
> {
  /** Whether more will come; true if not said. */
  readonly isStreaming?: boolean | undefined;
  /** Which stream it is, such as the message's id: another one begins anew. */
  readonly streamKey?: string | number | undefined;
}

// A server renders once and has no layout: React warns of layout effects there.
const useBeforePaint = typeof document === "undefined" ? useEffect : useLayoutEffect;

/**
 * `text`, of which what is appended is shown at its pace.
 *
 * What is there at the first render is shown at once (a conversation that is opened again is not
 * typed again), and so is a text that is replaced. A server renders the whole text. The component
 * is rendered at most so often that rendering takes a quarter of the time, and every 96 ms at least.
 * Throws RangeError for options that no pacer could keep.
 */
export function useSmoothText(text: string, options: SmoothTextOptions = {}): Revealed {
  const { isStreaming = true, streamKey, enabled = true, ...pacing } = options;
  const reveal = useMemo(() => new Reveal(text, isStreaming, pacing), [streamKey]);
  useBeforePaint(
    () => reveal.update(text, isStreaming, enabled),
    [reveal, text, isStreaming, enabled],
  );
  useEffect(() => () => reveal.stop(), [reveal]);
  const revealed = useSyncExternalStore(reveal.subscribe, reveal.getSnapshot, reveal.getSnapshot);
  useBeforePaint(() => reveal.rendered(), [reveal, revealed]);
  return enabled
    ? revealed
    : { text, isCaughtUp: true, status: isStreaming ? "streaming" : "done" };
}
