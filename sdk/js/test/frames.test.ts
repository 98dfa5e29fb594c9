/** `frameClock`: called back in the first frame that is not too early, and without frames as well. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { frameClock } from "../src/frames.js";

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("requestAnimationFrame", (look: () => void) => setTimeout(look, 16));
  vi.stubGlobal("cancelAnimationFrame", clearTimeout);
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** Calls back at `dueMs` from now, and notes when it was. */
function called(dueMs: number) {
  const beganMs = performance.now();
  const times: number[] = [];
  const cancel = frameClock.callAt(beganMs + dueMs, () => times.push(performance.now() - beganMs));
  return { times, cancel };
}

test("the callback comes in the first frame at or after its time, once", () => {
  const { times } = called(20);
  vi.advanceTimersByTime(1000);
  expect(times).toEqual([32]);
  expect(vi.getTimerCount()).toBe(0);
});

test("called off, nothing comes and nothing is left", () => {
  const { times, cancel } = called(20);
  vi.advanceTimersByTime(10);
  cancel();
  expect(vi.getTimerCount()).toBe(0);
  vi.advanceTimersByTime(1000);
  expect(times).toEqual([]);
});

test("a page that paints nothing is called back all the same, a little later", () => {
  vi.stubGlobal("requestAnimationFrame", () => 1);
  const { times } = called(20);
  vi.advanceTimersByTime(1000);
  expect(times).toHaveLength(1);
  expect(times[0]).toBeLessThanOrEqual(125);
});

test("without frames at all, timers do", () => {
  vi.stubGlobal("requestAnimationFrame", undefined);
  const { times } = called(20);
  vi.advanceTimersByTime(1000);
  expect(times).toEqual([20]);
});
