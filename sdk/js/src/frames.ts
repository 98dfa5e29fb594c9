/** A clock that calls back in a page's frames: what is due between two of them is shown at once. */

import { systemClock, type Clock } from "./clock.js";

/** A page without frames (hidden, or kept from painting) is called back by a timer, this much later. */
const LATE_MS = 100;

/**
 * The system's time, calling back in the first frame at or after it is due; by timers alone where
 * there are no frames.
 */
export const frameClock: Clock = {
  nowMs: () => systemClock.nowMs(),
  callAt(dueMs, callback) {
    const page = globalThis as Partial<typeof globalThis>;
    if (!page.requestAnimationFrame) return systemClock.callAt(dueMs, callback);
    const cancelTimer = systemClock.callAt(dueMs + LATE_MS, () => {
      cancelAnimationFrame(frame);
      callback();
    });
    const look = () => {
      if (systemClock.nowMs() < dueMs) {
        frame = requestAnimationFrame(look);
        return;
      }
      cancelTimer();
      callback();
    };
    let frame = requestAnimationFrame(look);
    return () => {
      cancelTimer();
      cancelAnimationFrame(frame);
    };
  },
};
