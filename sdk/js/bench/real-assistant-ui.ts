/**
 * assistant-ui's own smoothing, on a clock that jumps: `MessagePartPrimitive.Text` as an application
 * renders it, by React, into a page without a screen. What counts is when text is committed to the
 * page; its frames come 60 times a second. It is installed by itself (`assistant-ui/package.json`).
 */

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

import { Window } from "happy-dom";

import { FRAME_MS, type Peer } from "./peers.js";

/** From here as from `dist-bench`. */
export const ASSISTANT_UI = fileURLToPath(new URL("../bench/assistant-ui", import.meta.url));

/** What is used of its packages, which type checking must do without. */
interface Packages {
  createElement(type: unknown, props?: object | null, ...children: unknown[]): unknown;
  createRoot(container: unknown): { render(element: unknown): void };
  flushSync(run: () => void): void;
  TextMessagePartProvider: unknown;
  MessagePartPrimitive: { Text: unknown };
}

type Frame = (atMs: number) => void;

/** Maker of peers; undefined where it is not installed. */
export async function assistantUi(): Promise<(() => Peer) | undefined> {
  if (!existsSync(`${ASSISTANT_UI}/node_modules/.ready`)) return undefined;
  const page = new Page();
  const { resolve } = createRequire(`${ASSISTANT_UI}/package.json`);
  const names = ["react", "react-dom", "react-dom/client", "@assistant-ui/react"];
  const leave = page.enter(0);
  try {
    const found: object[] = [];
    for (const name of names) {
      const loaded = (await import(pathToFileURL(resolve(name)).href)) as { default?: object };
      found.push(loaded.default ?? loaded); // React's are CommonJS
    }
    const packages = Object.assign({}, ...found) as Packages;
    return () => new AssistantUi(page, packages);
  } finally {
    leave();
  }
}

/** One message, as long as it streams and until all of it is on the page. */
class AssistantUi implements Peer {
  numShown = 0;
  readonly #page: Page;
  readonly #packages: Packages;
  readonly #container;
  readonly #root;
  #text = "";

  constructor(page: Page, packages: Packages) {
    this.#page = page;
    this.#packages = packages;
    this.#container = page.document.createElement("div");
    page.frames.clear();
    this.#root = packages.createRoot(this.#container);
    this.#render(0, true);
  }

  get dueMs(): number {
    return this.#page.frames.dueMs;
  }

  arrive(text: string, nowMs: number): void {
    this.#text += text;
    this.#render(nowMs, true);
  }

  end(nowMs: number): void {
    this.#render(nowMs, false);
  }

  wake(nowMs: number): void {
    this.#commit(nowMs, () => this.#page.frames.run(nowMs));
  }

  #render(nowMs: number, isRunning: boolean): void {
    const { createElement, TextMessagePartProvider, MessagePartPrimitive } = this.#packages;
    const text = createElement(MessagePartPrimitive.Text);
    const message = { text: this.#text, isRunning };
    this.#commit(nowMs, () =>
      this.#root.render(createElement(TextMessagePartProvider, message, text)),
    );
  }

  /** What `run` changes is on the page when this returns. */
  #commit(nowMs: number, run: () => void): void {
    const leave = this.#page.enter(nowMs);
    try {
      this.#packages.flushSync(run);
      this.#page.settle();
    } finally {
      leave();
    }
    this.numShown = this.#container.textContent.length;
  }
}

/**
 * The globals that code for a page expects, there from `enter` until what it returns is called. What
 * code puts off (React its renders) waits for `settle`, so that none is left for another time.
 */
class Page {
  readonly frames = new Frames();
  readonly #window = new Window();
  readonly #tasks: (() => void)[] = [];

  get document() {
    return this.#window.document;
  }

  /** Runs what was put off, and what that puts off. */
  settle(): void {
    for (let task; (task = this.#tasks.shift());) task();
  }

  enter(nowMs: number): () => void {
    const { frames } = this;
    const later = (task: () => void) => this.#tasks.push(task);
    const globals: Record<string, unknown> = {
      window: this.#window,
      document: this.#window.document,
      navigator: this.#window.navigator,
      queueMicrotask: later,
      setImmediate: later,
      requestAnimationFrame: (frame: Frame) => frames.request(frame, nowMs),
      cancelAnimationFrame: (id: number) => frames.cancel(id),
    };
    const undo = [
      ...Object.entries(globals).map(([name, value]) => replaced(globalThis, name, value)),
      replaced(Date, "now", () => Math.floor(nowMs)),
      replaced(performance, "now", () => nowMs),
    ];
    return () => undo.forEach((each) => each());
  }
}

/** Puts `value` in place of a property; what is returned puts back what was there. */
function replaced(owner: object, name: string, value: unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(owner, name);
  Object.defineProperty(owner, name, { value, configurable: true, writable: true });
  return () => {
    if (before) Object.defineProperty(owner, name, before);
    else Reflect.deleteProperty(owner, name);
  };
}

/** `requestAnimationFrame` at 60 Hz: what is asked for comes with the next frame. */
class Frames {
  readonly #waiting = new Map<number, Frame>();
  #lastId = 0;
  #lastFrame = 0;
  #dueFrame = 0;

  get dueMs(): number {
    return this.#waiting.size ? this.#dueFrame * FRAME_MS : Infinity;
  }

  clear(): void {
    this.#waiting.clear();
    this.#lastFrame = 0;
  }

  request(frame: Frame, nowMs: number): number {
    if (!this.#waiting.size)
      this.#dueFrame = Math.max(this.#lastFrame, Math.floor(nowMs / FRAME_MS)) + 1;
    this.#waiting.set(++this.#lastId, frame);
    return this.#lastId;
  }

  cancel(id: number): void {
    this.#waiting.delete(id);
  }

  run(nowMs: number): void {
    const frames = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#lastFrame = this.#dueFrame;
    for (const frame of frames) frame(nowMs);
  }
}
