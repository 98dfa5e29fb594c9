/**
 * A client of an OpenAI-compatible server, with hints from a Paceline gateway where it gives them.
 *
 *     const client = new Client("http://127.0.0.1:8080/v1");
 *     for await (const chunk of await client.stream({ model: "m", messages }))
 *       write(chunkText(chunk));
 *
 * Bodies are sent as they are given and chunks come as they were sent. The one place in the SDK
 * that knows `fetch`: its errors become ours here.
 */

import { type Chunk, ChunkReader, refusal, type Route, routeOf } from "./answers.js";
import { Call } from "./call.js";
import { type Clock, systemClock } from "./clock.js";
import { BadStreamError, ConnectError } from "./errors.js";
import { HINTS_HEADER } from "./hints.js";
import { jsonObject } from "./json.js";
import { type Arrived, SmoothChunks, type SmoothOptions, type Source } from "./openai.js";
import type { Preset } from "./presets.js";
import { RETRIES, type Retries, retryAfterMs } from "./retries.js";

/** How long a server may be silent, before and within an answer. */
export const TIMEOUT_MS = 600_000;

export interface ClientOptions {
  readonly apiKey?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly retries?: Partial<Retries> | undefined;
  readonly timeoutMs?: number | undefined;
  readonly fetch?: typeof fetch | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: (() => number) | undefined;
}

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
}

/** What is asked of the server, as it is sent. */
export type Body = Readonly<Record<string, unknown>>;

/** A paced stream of chunks that knows where its request went. */
export class ChatStream extends SmoothChunks<Chunk> {
  readonly route: Route;

  constructor(source: Source<Arrived<Chunk>>, options: SmoothOptions<Chunk>, route: Route) {
    super(source, options);
    this.route = route;
  }
}

export class Client {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #retries: Retries;
  readonly #timeoutMs: number;
  readonly #fetch: typeof fetch;
  readonly #clock: Clock;
  readonly #random: () => number;

  constructor(baseUrl: string, options: ClientOptions = {}) {
    const { apiKey, headers, retries, timeoutMs, clock, random } = options;
    this.#url = baseUrl.replace(/\/+$/, "");
    this.#headers = {
      "content-type": "application/json",
      [HINTS_HEADER]: "1",
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      ...headers,
    };
    this.#retries = { ...RETRIES, ...retries };
    this.#timeoutMs = timeoutMs ?? TIMEOUT_MS;
    this.#fetch = options.fetch ?? ((...asked) => fetch(...asked));
    this.#clock = clock ?? systemClock;
    this.#random = random ?? Math.random;
  }

  /** The names of the models that are served. Rejects with ApiError or ConnectError. */
  async models({ signal }: RequestOptions = {}): Promise<string[]> {
    const { data } = await this.#whole("/models", undefined, signal);
    const models: unknown[] = Array.isArray(data) ? data : [];
    return models.flatMap((model) => {
      const id = (model as { id?: unknown } | null)?.id;
      return id === undefined ? [] : [String(id)];
    });
  }

  /** One whole answer. Rejects with ApiError or ConnectError. */
  chat(body: Body, { signal }: RequestOptions = {}): Promise<Record<string, unknown>> {
    return this.#whole("/chat/completions", { ...body, stream: false }, signal);
  }

  /**
   * A streamed answer, paced; leaving its loop closes the request.
   *
   * `options` are those of `smooth`. Rejects with ApiError or ConnectError before the first chunk;
   * the iteration throws a StreamError, after the text that arrived.
   */
  async stream(body: Body, options: SmoothOptions<Chunk> | Preset = {}): Promise<ChatStream> {
    const given = typeof options === "string" ? { preset: options } : options;
    const numChoices = Number.isInteger(body["n"]) ? (body["n"] as number) : 1;
    const call = await this.#opened("/chat/completions", { ...body, stream: true }, given.signal);
    const pacing = { clock: this.#clock, ...given, numChoices };
    return new ChatStream(chunksOf(call, numChoices), pacing, routeOf(call.response.headers));
  }

  async #whole(
    path: string,
    body: Body | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Record<string, unknown>> {
    const call = await this.#opened(path, body, signal);
    const value = jsonObject(await call.text());
    if (value) return value;
    throw new BadStreamError("the answer is no JSON object", { requestId: call.requestId });
  }

  /** A good answer's head, after the tries it takes. */
  async #opened(
    path: string,
    body: Body | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Call> {
    for (let number = 0; ; number++) {
      try {
        return await this.#sent(path, body, signal);
      } catch (error) {
        const waitMs = retryAfterMs(this.#retries, number, error, this.#random);
        if (waitMs === undefined) throw error;
        await this.#sleep(waitMs, signal);
      }
    }
  }

  async #sent(
    path: string,
    body: Body | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Call> {
    const call = new Call(this.#clock, this.#timeoutMs, signal);
    await call.open((aborted) =>
      this.#fetch(this.#url + path, {
        method: body ? "POST" : "GET",
        headers: this.#headers,
        signal: aborted,
        ...(body ? { body: JSON.stringify(body) } : {}),
      }),
    );
    const { response } = call;
    if (response.ok) return call;
    const text = await call.text(ConnectError);
    throw refusal(response.status, response.headers, text, Date.now());
  }

  #sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const cancel = this.#clock.callAt(this.#clock.nowMs() + ms, () => {
        signal?.removeEventListener("abort", aborted);
        resolve();
      });
      const aborted = () => {
        cancel();
        reject(signal!.reason);
      };
      if (signal?.aborted) aborted();
      else signal?.addEventListener("abort", aborted, { once: true });
    });
  }
}

function chunksOf(call: Call, numChoices: number): Source<Arrived<Chunk>> {
  const { controller } = call;
  return { controller, [Symbol.asyncIterator]: () => chunks(call, numChoices) };
}

/** Chunks to the end of the stream; throws StreamError where it is not a good one. */
async function* chunks(
  call: Call,
  numChoices: number,
): AsyncGenerator<Arrived<Chunk>, void, undefined> {
  const { requestId } = call;
  let whole = false;
  try {
    const kind = call.response.headers.get("content-type") ?? "";
    if (!kind.startsWith("text/event-stream"))
      throw new BadStreamError(`asked for a stream, got ${kind || "no type"}`, { requestId });
    const reader = new ChunkReader(numChoices, requestId);
    for await (const bytes of call.reads()) {
      yield* reader.feed(bytes);
      if (reader.done) break;
    }
    reader.end();
    whole = true;
  } finally {
    if (whole) void call.drain();
    else call.close();
  }
}
