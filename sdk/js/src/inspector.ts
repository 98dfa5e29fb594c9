/**
 * For debugging: an overlay with the curves of arrival and playout, and recordings of streams.
 *
 *     const inspector = new Inspector();
 *     document.body.append(inspector.element);
 *     await playInto(element, stream, inspector.hooks);
 *
 * `record` saves streams with their timings, to attach to a report.
 */

import { type Chunk, chunkText } from "./answers.js";
import { systemClock, type Clock } from "./clock.js";
import { Curves, type Figures, type Point } from "./curves.js";
import { frameClock } from "./frames.js";

export type { Figures, Point } from "./curves.js";
export { record, Recorder, type Recording, type RecordOptions } from "./record.js";

const [WIDTH, HEIGHT] = [320, 120];
const SVG = "http://www.w3.org/2000/svg";
/** Drawing more often would be what is measured. */
const EVERY_MS = 100;

const STYLE = `position: fixed; right: 12px; bottom: 12px; z-index: 2147483647; padding: 8px;
  background: rgb(20 22 26 / 0.92); color: #ddd; font: 11px/1.5 monospace; border-radius: 6px`;

export interface InspectorOptions {
  /** How far back the curves go; 10 s if not said. */
  readonly windowMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

/** An element to put anywhere. It draws while something happens, and then no more. */
export class Inspector {
  readonly element: HTMLElement;
  readonly #curves: Curves;
  readonly #clock: Clock;
  readonly #frames: Clock;
  readonly #lines: readonly [Element, Element];
  readonly #said: HTMLElement;
  #cancel: (() => void) | undefined;

  constructor({ windowMs, clock }: InspectorOptions = {}) {
    this.#curves = new Curves(windowMs);
    this.#clock = clock ?? systemClock;
    this.#frames = clock ?? frameClock;
    this.element = document.createElement("div");
    this.element.style.cssText = STYLE;
    this.element.setAttribute("aria-hidden", "true");
    const picture = document.createElementNS(SVG, "svg");
    picture.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    picture.setAttribute("width", String(WIDTH));
    picture.setAttribute("height", String(HEIGHT));
    this.#lines = [line("#e8a33d"), line("#4cc38a")];
    picture.append(...this.#lines);
    this.#said = document.createElement("div");
    this.#said.style.whiteSpace = "pre";
    this.element.append(picture, this.#said);
  }

  /** For `playInto`, and with `onArrival` alone for whatever else takes it. */
  readonly hooks = {
    onArrival: (chunk: unknown): void => this.arrived(textOf(chunk).length),
    onShown: (chunk: unknown): void => this.shown(textOf(chunk).length),
  };

  /** Characters that arrived now. */
  arrived(numChars: number): void {
    this.#curves.arrive(numChars, this.#clock.nowMs());
    this.#drawSoon();
  }

  /** Characters that are to be seen from now on. */
  shown(numChars: number): void {
    this.#curves.show(numChars, this.#clock.nowMs());
    this.#drawSoon();
  }

  get figures(): Figures {
    return this.#curves.figures();
  }

  /** Takes the element away, and draws no more. */
  close(): void {
    this.#cancel?.();
    this.element.remove();
  }

  #drawSoon(): void {
    this.#cancel ??= this.#frames.callAt(this.#frames.nowMs() + EVERY_MS, () => {
      this.#cancel = undefined;
      this.#draw();
    });
  }

  #draw(): void {
    const { arrived, shown, windowMs } = this.#curves;
    const toMs = Math.max(arrived.at(-1)?.atMs ?? 0, shown.at(-1)?.atMs ?? 0);
    const low = Math.min(arrived[0]?.numChars ?? 0, shown[0]?.numChars ?? 0);
    const high = Math.max(low + 1, arrived.at(-1)?.numChars ?? 0);
    const beganMs = Math.min(arrived[0]?.atMs ?? toMs, shown[0]?.atMs ?? toMs);
    const spanMs = Math.min(windowMs, Math.max(1000, toMs - beganMs));
    const x = (atMs: number) => WIDTH * (1 - (toMs - atMs) / spanMs);
    const y = (numChars: number) => HEIGHT * (1 - (numChars - low) / (high - low));
    for (const [at, points] of [arrived, shown].entries())
      this.#lines[at]!.setAttribute("points", steps(points, x, y));
    this.#said.textContent = saying(this.figures);
  }
}

function line(colour: string): Element {
  const drawn = document.createElementNS(SVG, "polyline");
  drawn.setAttribute("fill", "none");
  drawn.setAttribute("stroke", colour);
  drawn.setAttribute("stroke-width", "1.5");
  return drawn;
}

/** A curve that stays until it rises. */
function steps(
  points: readonly Point[],
  x: (atMs: number) => number,
  y: (numChars: number) => number,
): string {
  return points
    .map(({ atMs, numChars }, at) => {
      const before = at ? `${x(atMs).toFixed(1)},${y(points[at - 1]!.numChars).toFixed(1)} ` : "";
      return `${before}${x(atMs).toFixed(1)},${y(numChars).toFixed(1)}`;
    })
    .join(" ");
}

function saying(figures: Figures): string {
  const ms = (value: number) => `${value.toFixed(0)} ms`;
  return [
    `arrived ${figures.numArrived} · shown ${figures.numShown} characters`,
    `delay   mean ${ms(figures.meanDelayMs)} · max ${ms(figures.maxDelayMs)}`,
    `gaps    p95 ${ms(figures.p95GapMs)} · max ${ms(figures.maxGapMs)}`,
  ].join("\n");
}

function textOf(chunk: unknown): string {
  return typeof chunk === "string" ? chunk : chunkText(chunk as Chunk);
}
