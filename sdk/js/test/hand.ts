/** Time and sources that are moved by hand; nothing here waits for a clock. */

import type { Clock, Motion } from "../src/index.js";

/** A clock that stands still until it is moved. */
export class HandClock implements Clock {
  #nowMs = 0;
  #timers: { dueMs: number; callback: () => void }[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  callAt(dueMs: number, callback: () => void): () => void {
    const timer = { dueMs, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((one) => one !== timer);
    };
  }

  get numTimers(): number {
    return this.#timers.length;
  }

  /** Lets `ms` pass, each timer at its time. */
  async pass(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    for (;;) {
      await settle();
      const due = this.#timers.filter((timer) => timer.dueMs <= endMs);
      const next = due.sort((a, b) => a.dueMs - b.dueMs)[0];
      if (!next) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.callback();
    }
    this.#nowMs = endMs;
    await settle();
  }
}

/** Until all that can happen now has happened. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** A source that is told what to bring, and remembers how it was left. */
export class Source<T> implements AsyncIterable<T> {
  readonly controller = new AbortController();
  numReturned = 0;
  numRead = 0;
  #items: (T | Error | null)[] = [];
  #wake: (() => void) | undefined;

  send(...items: T[]): void {
    this.#items.push(...items);
    this.#wake?.();
  }

  /** Ends it, by an error if there is one. */
  end(error: Error | null = null): void {
    this.#items.push(error);
    this.#wake?.();
  }

  [Symbol.asyncIterator](): AsyncIterator<T> {
    return {
      next: async () => {
        while (!this.#items.length) await new Promise<void>((wake) => (this.#wake = wake));
        const item = this.#items.shift()!;
        if (item instanceof Error) throw item;
        if (item === null) return { done: true, value: undefined };
        this.numRead++;
        return { done: false, value: item };
      },
      return: async () => {
        this.numReturned++;
        return { done: true, value: undefined };
      },
    };
  }
}

/** What an iterator gives, noted as it comes. */
export class Reading<T> {
  readonly chunks: T[] = [];
  readonly timesMs: number[] = [];
  ended: "open" | "done" | unknown = "open";

  constructor(stream: AsyncIterable<T>, clock: Clock = new HandClock()) {
    void this.#read(stream, clock);
  }

  async #read(stream: AsyncIterable<T>, clock: Clock): Promise<void> {
    try {
      for await (const chunk of stream) {
        this.chunks.push(chunk);
        this.timesMs.push(clock.nowMs());
      }
      this.ended = "done";
    } catch (error) {
      this.ended = error;
    }
  }
}

/** A page's wish for motion, changed by hand. */
export class HandMotion implements Motion {
  #wanted = true;
  readonly #watchers = new Set<() => void>();

  get wanted(): boolean {
    return this.#wanted;
  }

  set wanted(wanted: boolean) {
    this.#wanted = wanted;
    for (const changed of this.#watchers) changed();
  }

  get numWatchers(): number {
    return this.#watchers.size;
  }

  watch(changed: () => void): () => void {
    this.#watchers.add(changed);
    return () => this.#watchers.delete(changed);
  }
}

export interface Delta {
  choices: { index: number; delta: { content?: string }; finish_reason: string | null }[];
  usage?: object;
}

export function delta(content: string, finish: string | null = null, index = 0): Delta {
  return { choices: [{ index, delta: { content }, finish_reason: finish }] };
}

export const textOf = (chunks: Delta[]): string =>
  chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
