// @vitest-environment happy-dom
/** `useSmoothText` in real React: mounted, in strict mode, unmounted in the middle, on a server. */

import { createElement, StrictMode, useLayoutEffect } from "react";
import { createRoot, hydrateRoot, type Root } from "react-dom/client";
import { renderToString } from "react-dom/server";
import { afterEach, expect, test, vi } from "vitest";

import { type Revealed, type SmoothTextOptions, useSmoothText } from "../src/react.js";
import { HandClock, HandMotion, settle } from "./hand.js";

interface Props extends SmoothTextOptions {
  text: string;
  renders?: Revealed[];
  /** What rendering takes, on the clock by hand. */
  renderMs?: number;
}

function Message({ text, renders, renderMs = 0, ...options }: Props) {
  const revealed = useSmoothText(text, options);
  renders?.push(revealed);
  useLayoutEffect(() => {
    if (renderMs) (options.clock as SlowClock).lose(renderMs);
  }, [revealed, renderMs]);
  return createElement("p", null, revealed.text);
}

/** Rendering takes its time on it. */
class SlowClock extends HandClock {
  #lostMs = 0;

  override nowMs(): number {
    return super.nowMs() + this.#lostMs;
  }

  lose(ms: number): void {
    this.#lostMs += ms;
  }
}

let root: Root | undefined;
const errors = vi.spyOn(console, "error");

afterEach(() => {
  root?.unmount();
  root = undefined;
  expect(errors.mock.calls).toEqual([]);
});

function mounted({ strict = false, ...given }: Partial<Props> & { strict?: boolean } = {}) {
  const clock = (given.clock as HandClock | undefined) ?? new HandClock();
  const motion = (given.motion as HandMotion | undefined) ?? new HandMotion();
  const page = document.createElement("div");
  const renders: Revealed[] = [];
  let props: Props = { text: "", renders, ...given, clock, motion };
  root = createRoot(page);
  const show = async (change: Partial<Props> = {}) => {
    props = { ...props, ...change };
    const message = createElement(Message, props);
    root!.render(strict ? createElement(StrictMode, null, message) : message);
    await settle();
  };
  /** Bursts of four words, 100 ms apart. */
  const stream = async (bursts: number) => {
    for (let burst = 0; burst < bursts; burst++) {
      await show({ text: props.text + " one two three four" });
      await clock.pass(100);
    }
  };
  return { page, clock, motion, renders, show, stream, whole: () => props.text };
}

const distinct = (renders: Revealed[]) => new Set(renders.map(({ text }) => text)).size;

test.each([false, true])(
  "a growing text is shown at its pace (strict mode: %s)",
  async (strict) => {
    const { page, clock, renders, show, stream, whole } = mounted({ strict });
    await show();
    await stream(10);
    expect(distinct(renders)).toBeGreaterThan(50);
    expect(whole().startsWith(page.textContent!)).toBe(true);
    expect(renders.at(-1)).toMatchObject({ isCaughtUp: false, status: "streaming" });
    await show({ isStreaming: false });
    await clock.pass(150);
    expect(page.textContent).toBe(whole());
    expect(renders.at(-1)).toEqual({ text: whole(), isCaughtUp: true, status: "done" });
    expect(clock.numTimers).toBe(0);
    for (const { text } of renders) expect(whole().startsWith(text)).toBe(true);
  },
);

test("the first appended unit is there in the same commit", async () => {
  const { page, show } = mounted();
  await show();
  await show({ text: "one two three" });
  expect(page.textContent).toBe("o");
});

test.each([true, false])(
  "what is there at first is shown at once (streaming: %s)",
  async (isStreaming) => {
    const { page, renders, show } = mounted({ text: "a conversation of yesterday", isStreaming });
    await show();
    expect(page.textContent).toBe("a conversation of yesterday");
    expect(distinct(renders)).toBe(1);
  },
);

test("unmounting in the middle leaves no timer and no watcher", async () => {
  const { clock, motion, show, stream } = mounted({ strict: true });
  await show();
  await stream(2);
  await show({ text: "another one", streamKey: 2 });
  await stream(1);
  expect(clock.numTimers).toBeGreaterThan(0);
  root!.unmount();
  await settle();
  expect([clock.numTimers, motion.numWatchers]).toEqual([0, 0]);
});

test("another stream begins anew, and never shows the last one's text", async () => {
  const { clock, page, renders, show, stream } = mounted({ streamKey: "a" });
  await show();
  await stream(3);
  const before = renders.length;
  await show({ text: "b", streamKey: "b" });
  expect(page.textContent).toBe("b");
  expect(renders.slice(before).every(({ text }) => text.startsWith("b"))).toBe(true);
  await show({ isStreaming: false });
  await clock.pass(150);
  expect(clock.numTimers).toBe(0);
});

test("a text that is replaced is shown at once", async () => {
  const { page, show, stream } = mounted();
  await show();
  await stream(3);
  await show({ text: "edited" });
  expect(page.textContent).toBe("edited");
});

test("switched off it gives the text as it comes, and on again it paces from there", async () => {
  const { page, clock, show, whole } = mounted();
  await show({ enabled: false });
  await show({ text: "one two three" });
  expect(page.textContent).toBe("one two three");
  await show({ enabled: true });
  expect(page.textContent).toBe("one two three");
  await show({ text: "one two three four five six" });
  expect(page.textContent!.length).toBeLessThan(whole().length);
  await show({ isStreaming: false });
  await clock.pass(150);
  expect(page.textContent).toBe(whole());
});

test("hidden and reduced motion: text passes as it comes, without timers", async () => {
  const { page, clock, motion, show, stream, whole } = mounted();
  await show();
  await stream(2);
  motion.wanted = false;
  await settle();
  expect(page.textContent).toBe(whole());
  await show({ text: whole() + " five six" });
  expect(page.textContent).toBe(whole());
  expect(clock.numTimers).toBe(0);
  await show({ isStreaming: false });
});

test("a page whose rendering is slow is rendered less often, and is whole in the end", async () => {
  const fast = mounted({ clock: new SlowClock() });
  await fast.show();
  await fast.stream(10);
  root!.unmount();
  const clock = new SlowClock();
  const slow = mounted({ clock, renderMs: 20 });
  await slow.show();
  await slow.stream(10);
  expect(distinct(slow.renders)).toBeLessThan(0.5 * distinct(fast.renders));
  await slow.show({ isStreaming: false });
  await clock.pass(300);
  expect(slow.page.textContent).toBe(slow.whole());
});

test("a server renders the whole text, and the page takes it over", async () => {
  const text = "rendered before";
  const page = document.createElement("div");
  const message = createElement(Message, { text, clock: new HandClock() });
  page.innerHTML = renderToString(message);
  expect(page.textContent).toBe(text);
  root = hydrateRoot(page, message);
  await settle();
  expect(page.textContent).toBe(text);
});

test("options that cannot be kept throw where they are given", async () => {
  expect(() => renderToString(createElement(Message, { text: "", maxDelayMs: -1 }))).toThrow(
    RangeError,
  );
});
