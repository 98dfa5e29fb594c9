/** What comes back from a server, read without any I/O: statuses, headers, events. */

import {
  apiError,
  type ApiError,
  BadStreamError,
  IncompleteStreamError,
  StreamErrorEvent,
} from "./errors.js";
import { parseHint } from "./hints.js";
import { isObject, jsonObject } from "./json.js";
import { Arrived } from "./openai.js";
import type { Hint } from "./pacer.js";
import { SseError, SseParser } from "./sse.js";

export type Chunk = Record<string, unknown>;

/** Where a request went, as a Paceline gateway's headers say; null where they do not. */
export interface Route {
  readonly requestId: string | null;
  readonly pool: string | null;
  readonly workload: string | null;
  readonly serverTiming: string | null;
  readonly explain: Readonly<Record<string, unknown>> | null;
}

export function routeOf(headers: Headers): Route {
  const explain = headers.get("x-paceline-explain");
  return {
    requestId: headers.get("x-request-id"),
    pool: headers.get("x-paceline-pool"),
    workload: headers.get("x-paceline-workload"),
    serverTiming: headers.get("server-timing"),
    explain: explain ? jsonObject(explain) : null,
  };
}

/** The error that an answer other than 2xx stands for. `nowMs` is the time since the epoch. */
export function refusal(status: number, headers: Headers, body: string, nowMs: number): ApiError {
  return apiError(status, jsonObject(body) ?? {}, {
    requestId: headers.get("x-request-id"),
    retryAfterS: retryAfterS(headers.get("retry-after"), nowMs),
  });
}

/** Seconds to wait, from delta-seconds or an HTTP date (RFC 9110, 10.2.3); null if neither. */
export function retryAfterS(value: string | null, nowMs: number): number | null {
  if (!value) return null;
  if (/^\s*\d+\s*$/.test(value)) return Number(value);
  // Every form of an HTTP date names its day first; Date.parse alone would take numbers for years.
  const atMs = /^\s*[A-Za-z]{3}/.test(value) ? Date.parse(value) : NaN;
  return Number.isNaN(atMs) ? null : Math.max(0, (atMs - nowMs) / 1000);
}

/**
 * The bytes of an event stream → chunks with hints, to `[DONE]` or the end.
 *
 * Throws StreamErrorEvent for an error event and BadStreamError for one that cannot be read: to
 * skip it would lose what it said, and the rest would look whole.
 */
export class ChunkReader {
  done = false;
  readonly #parser = new SseParser({
    onComment: (comment) => (this.#hint = parseHint(comment) ?? this.#hint),
  });
  readonly #numChoices: number;
  readonly #requestId: string | null;
  readonly #finished = new Set<number>();
  #hint: Hint | undefined;

  constructor(numChoices: number, requestId: string | null) {
    this.#numChoices = numChoices;
    this.#requestId = requestId;
  }

  /**
   * The chunks that `data` completes, one by one, so that an error comes after what stands before
   * it. What follows `[DONE]` is dropped.
   */
  *feed(data: Uint8Array | string): Generator<Arrived<Chunk>, void, undefined> {
    try {
      for (const { event, data: raw } of this.#parser.events(data)) {
        const text = raw.trim();
        if (this.done || !text || text.startsWith(":")) continue;
        this.done = text === "[DONE]";
        if (this.done) continue;
        const hint = this.#hint;
        this.#hint = undefined;
        yield new Arrived(this.#chunk(event, text), hint);
      }
    } catch (error) {
      throw error instanceof SseError ? this.#bad(error.message) : error;
    }
  }

  /**
   * The stream ended. Throws IncompleteStreamError if it should not have: the finishes of all
   * choices are the answer's own word that it is whole.
   */
  end(): void {
    if (this.#finished.size < this.#numChoices)
      throw new IncompleteStreamError("the stream ended before its finish", {
        requestId: this.#requestId,
      });
  }

  #chunk(event: string, text: string): Chunk {
    const chunk = jsonObject(text);
    if (!chunk) throw this.#bad(`not a JSON object: ${text.slice(0, 100)}`);
    const { error, object, choices } = chunk;
    const fields = isObject(error) ? error : error ? {} : chunk;
    const fails = isObject(error) ? Object.keys(error).length > 0 : !!error;
    const isBare = !("choices" in chunk) && ("error" in chunk || object === "error");
    if (fails || isBare || event === "error") {
      const said = fields["message"] || (isObject(error) ? "" : error);
      const message = said || "the server reported an error";
      throw new StreamErrorEvent(String(message), fields, { requestId: this.#requestId });
    }
    if (choices != null && !(Array.isArray(choices) && choices.every(isObject)))
      throw this.#bad(`odd choices: ${text.slice(0, 100)}`);
    for (const { finish_reason: finish, index } of (choices ?? []) as Chunk[])
      if (finish) this.#finished.add(Number.isInteger(index) ? (index as number) : 0);
    return chunk;
  }

  #bad(message: string): BadStreamError {
    return new BadStreamError(message, { requestId: this.#requestId });
  }
}

/** The answer's text in a chunk, of its first choice; "" where it has none. */
export function chunkText(chunk: { readonly choices?: unknown }): string {
  const [choice] = Array.isArray(chunk.choices) ? (chunk.choices as unknown[]) : [];
  if (!isObject(choice)) return "";
  const { delta, text } = choice;
  return String((isObject(delta) ? delta["content"] : "") || text || "");
}
