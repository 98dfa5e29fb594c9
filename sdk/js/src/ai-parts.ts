/** Parts of the AI SDK's streams through a pacer: text and reasoning by lane, the rest in its place. */

import type { Chunks } from "./ai-chunking.js";
import type { Piece } from "./cutting.js";
import { Pacer, type Hint, type PacerStats } from "./pacer.js";
import type { ChunkPacing } from "./playback.js";
import { optionsFor, type Pacing } from "./presets.js";

/** What `ai` calls a TextStreamPart, as far as it is of matter here. */
export interface StreamPart {
  readonly type: string;
}

/** A delta of text or reasoning. */
export interface TextPart extends StreamPart {
  readonly id: string;
  readonly text: string;
  readonly providerMetadata?: unknown;
}

/** They begin something or stand beside it: what waits before them need not hurry. */
const UNHURRIED = ["start", "start-step", "text-start", "reasoning-start", "source", "raw"];

/** A `Pacer` for parts, in the shape that `Playback` plays. Times are milliseconds. */
export class PartPacer implements ChunkPacing<StreamPart> {
  readonly #pacer: Pacer;
  readonly #enabled: boolean;
  readonly #chunks: Chunks | undefined;
  #given: StreamPart[] = [];

  /** With `chunks`, what the pacer shows is gathered until one is whole. */
  constructor(pacing?: Pacing, chunks?: Chunks) {
    const options = optionsFor(pacing);
    this.#pacer = new Pacer(options);
    this.#enabled = options.enabled;
    this.#chunks = chunks;
  }

  push(part: StreamPart, nowMs: number, hint?: Hint, whole = false): void {
    if (hint) this.#pacer.hint(hint);
    if (isTextPart(part) && part.text && this.#enabled && !whole) {
      this.#chunks?.arrive(part);
      this.#pacer.push(part.text, nowMs, { lane: laneOf(part), cargo: part });
    } else {
      this.#chunks?.interrupt();
      this.#pacer.part(part, nowMs, whole || !this.#enabled ? null : completes(part));
    }
    if (part.type === "abort") this.#give(this.#pacer.flush(nowMs));
  }

  finish(nowMs: number): void {
    this.#chunks?.interrupt();
    this.#pacer.finish(nowMs);
  }

  take(nowMs: number): StreamPart[] {
    this.#give(this.#pacer.take(nowMs));
    return this.#taken();
  }

  flush(nowMs: number): StreamPart[] {
    this.#give(this.#pacer.flush(nowMs));
    return this.#taken();
  }

  abort(nowMs: number): StreamPart[] {
    this.#give(this.#pacer.abort(nowMs));
    return [...this.#taken(), ...(this.#chunks?.rest() ?? [])];
  }

  get nextDueMs(): number | undefined {
    return this.#pacer.nextDueMs;
  }

  get numWaiting(): number {
    return this.#pacer.numWaiting + this.#given.length;
  }

  get stats(): PacerStats {
    return this.#pacer.stats;
  }

  /** An end is where the stream closes, wherever that may be: `ai` itself says what was missing. */
  readonly allFinished = false;
  readonly incomplete = false;

  #give(pieces: readonly Piece[]): void {
    for (const piece of pieces) {
      const part = render(piece);
      if (piece.text) this.#chunks?.shown(part as TextPart);
      if (this.#chunks) this.#given.push(...this.#chunks.whole());
      if (part && !(piece.text && this.#chunks)) this.#given.push(part);
    }
  }

  #taken(): StreamPart[] {
    const taken = this.#given;
    this.#given = [];
    if (this.#chunks) taken.push(...this.#chunks.whole());
    return taken;
  }
}

export function isTextPart(part: StreamPart): part is TextPart {
  return part.type === "text-delta" || part.type === "reasoning-delta";
}

/** Every field but the text belongs to each piece: what `ai` reads of them, it reads of the last. */
function render({ cargo, lane, text }: Piece): StreamPart | undefined {
  const part = cargo as StreamPart;
  if (!lane || !isTextPart(part) || part.text === text) return part;
  // Its text went out with the one before, whose last character it completes.
  if (!text && part.providerMetadata === undefined) return;
  return { ...part, text } as TextPart;
}

export function laneOf({ type, id }: TextPart): string {
  return `${type.split("-", 1)[0]} ${id}\n`;
}

/** Which lanes a part completes, for `Pacer.part`. */
function completes(part: StreamPart): string | null {
  if (isTextPart(part) || UNHURRIED.includes(part.type)) return null;
  if (part.type === "text-end" || part.type === "reasoning-end") return laneOf(part as TextPart);
  return "";
}
