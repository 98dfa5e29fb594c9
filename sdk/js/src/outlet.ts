/** Where a playback's chunks wait to be fetched: the pulling side of streams and iterators. */

import type { Listener } from "./playback.js";

/** Chunks that may wait for a slow consumer; beyond, the source waits too. */
export const MAX_WAITING = 4096;

type Ask<T> = {
  resolve(result: IteratorResult<T, undefined>): void;
  reject(error: unknown): void;
};

export class Outlet<T> implements Listener<T> {
  #out: T[] = [];
  #asks: Ask<T>[] = [];
  #ended = false;
  #error: unknown;
  #roomy: (() => void) | undefined;

  show(chunks: T[]): void {
    this.#out.push(...chunks);
    this.#answer();
  }

  end(error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#answer();
  }

  /** Ends it at once; the chunks that nobody fetched. */
  close(error?: unknown): T[] {
    const rest = this.#out;
    this.#out = [];
    this.#ended = false;
    this.end(error);
    this.#roomy?.();
    return rest;
  }

  /** The next chunk. Rejects with the error that ended it, once and after the last chunk. */
  next(): Promise<IteratorResult<T, undefined>> {
    return new Promise((resolve, reject) => {
      this.#asks.push({ resolve, reject });
      this.#answer();
    });
  }

  get numWaiting(): number {
    return this.#out.length;
  }

  /** Resolves when a chunk was fetched, or none will be. */
  room(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#ended) return resolve();
      this.#roomy = resolve;
    });
  }

  #answer(): void {
    while (this.#asks.length && (this.#out.length || this.#ended)) {
      const { resolve, reject } = this.#asks.shift()!;
      const error = this.#error;
      if (this.#out.length) {
        resolve({ done: false, value: this.#out.shift()! });
        this.#roomy?.();
      } else if (error !== undefined) {
        this.#error = undefined;
        reject(error);
      } else resolve({ done: true, value: undefined });
    }
  }
}
