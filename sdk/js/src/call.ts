/** One request and its answer: bounded in time, closed by its controller, with our errors. */

import type { Clock } from "./clock.js";
import { ConnectError, ConnectionCutError } from "./errors.js";

/** After the word that the stream is over, its connection is read to the end for this long. */
const DRAIN_MS = 1000;

type Kind = typeof ConnectError | typeof ConnectionCutError;

export class Call {
  /** Aborting it closes the request. */
  readonly controller = new AbortController();
  response!: Response;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #signal: AbortSignal | undefined;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  constructor(clock: Clock, timeoutMs: number, signal: AbortSignal | undefined) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#signal = signal;
    if (signal?.aborted) this.#abort();
    else signal?.addEventListener("abort", this.#abort);
  }

  /** Sends it; the head is then in `response`. Rejects with ConnectError. */
  async open(send: (signal: AbortSignal) => Promise<Response>): Promise<void> {
    try {
      this.response = await this.#within(send(this.controller.signal), ConnectError, "no answer");
    } catch (error) {
      this.close();
      throw error;
    }
  }

  get requestId(): string | null {
    return this.response.headers.get("x-request-id");
  }

  /** The whole body. */
  async text(kind: Kind = ConnectionCutError): Promise<string> {
    try {
      return await this.#within(this.response.text(), kind, "the answer was cut");
    } finally {
      this.close();
    }
  }

  /** The body as it comes. Throws ConnectionCutError. */
  async *reads(): AsyncGenerator<Uint8Array, void, undefined> {
    const reader = (this.#reader = this.response.body?.getReader());
    if (!reader) return;
    for (;;) {
      const read = this.#within(reader.read(), ConnectionCutError, "the answer was cut");
      const { done, value } = await read;
      if (done) return;
      yield value;
    }
  }

  /** Lets go of the connection, for another request if the rest comes soon. */
  async drain(): Promise<void> {
    const cancel = this.#clock.callAt(this.#clock.nowMs() + DRAIN_MS, this.#abort);
    try {
      while (this.#reader && !(await this.#reader.read()).done);
    } catch {
      // nothing more is wanted of it
    } finally {
      cancel();
      this.close();
    }
  }

  /** Ends the request, if it has not ended. */
  close(): void {
    this.#signal?.removeEventListener("abort", this.#abort);
    this.controller.abort();
  }

  readonly #abort = (): void => this.controller.abort(this.#signal?.reason);

  async #within<T>(work: Promise<T>, Kind: Kind, message: string): Promise<T> {
    let silent = false;
    const cancel = this.#clock.callAt(this.#clock.nowMs() + this.#timeoutMs, () => {
      silent = true;
      this.controller.abort();
    });
    try {
      return await work;
    } catch (error) {
      if (this.#signal?.aborted) throw this.#signal.reason;
      const why = silent ? `silent for ${this.#timeoutMs} ms` : reasonOf(error);
      const requestId = (this.response as Response | undefined) ? this.requestId : null;
      throw new Kind(`${message}: ${why}`, { cause: error, requestId });
    } finally {
      cancel();
    }
  }
}

/** `fetch failed` says nothing; Node keeps what happened in the cause. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as { cause?: { message?: string }; message?: string };
  return cause?.message || message || String(error);
}
