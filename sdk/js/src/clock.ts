/** The time, and being called back: the system's, a page's frames, or a test's. */

export interface Clock {
  /** Milliseconds of a clock that does not go back. */
  nowMs(): number;
  /** Calls back at `dueMs` or soon after; what is returned calls it off. */
  callAt(dueMs: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  callAt(dueMs, callback) {
    // Timers count whole milliseconds and round down: a call too early would only be made again.
    const timer = setTimeout(callback, Math.ceil(Math.max(1, dueMs - performance.now())));
    return () => clearTimeout(timer);
  },
};
