/**
 * Streams saved with their timings, in the format of the project's recordings: a line of JSON for the
 * request, and one for each read: `t_s`, seconds since the request was sent, and `data`.
 *
 *     const recorder = record();
 *     const client = new Client(url, { fetch: recorder.fetch });     // or openai's
 *     …
 *     const text = String(recorder.recordings[0]);
 */

import { systemClock, type Clock } from "./clock.js";
import { isObject } from "./json.js";

export interface RecordOptions {
  /** Keeps texts; usually letters and digits are replaced, and what would tell them. */
  readonly keepText?: boolean | undefined;
  /** What requests go through; the global one if not said. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  readonly clock?: Clock | undefined;
}

/** Strings under these are no text of anybody's. */
const KEPT = new Set(
  ["id", "object", "model", "role", "type", "code", "finish_reason", "stop_reason"].concat([
    "system_fingerprint",
    "service_tier",
    "param",
    "name",
  ]),
);

/** Numbers under these spell the text: how many there are is kept. */
const SPELLING = new Set(["token_ids", "prompt_token_ids", "bytes"]);

/** One answer: what was asked, and what was read when. As a string, the lines of its file. */
export class Recording {
  readonly request: Readonly<Record<string, unknown>>;
  readonly reads: { readonly t_s: number; readonly data: string }[] = [];

  constructor(request: Record<string, unknown>) {
    this.request = request;
  }

  toString(): string {
    return [this.request, ...this.reads].map((line) => `${JSON.stringify(line)}\n`).join("");
  }
}

export function record(options?: RecordOptions): Recorder {
  return new Recorder(options);
}

export class Recorder {
  readonly recordings: Recording[] = [];
  readonly #keepText: boolean;
  readonly #fetch: typeof globalThis.fetch;
  readonly #clock: Clock;

  constructor({ keepText = false, fetch, clock }: RecordOptions = {}) {
    this.#keepText = keepText;
    this.#fetch = fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.#clock = clock ?? systemClock;
  }

  /** `fetch`, which notes every stream of events that it brings. */
  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const beganMs = this.#clock.nowMs();
    const response = await this.#fetch(input, init);
    const kind = response.headers.get("content-type") ?? "";
    if (!response.body || !kind.startsWith("text/event-stream")) return response;
    const body = parsed(typeof init?.body === "string" ? init.body : "");
    const recording = new Recording({
      kind: "request",
      body: this.#keepText ? body : withoutText(body),
    });
    this.recordings.push(recording);
    const taped = response.body.pipeThrough(this.#tap(recording, beganMs));
    const { status, statusText, headers } = response;
    return new Response(taped, { status, statusText, headers });
  };

  /** Passes everything on as it is, and notes it. */
  #tap(recording: Recording, beganMs: number): TransformStream<Uint8Array, Uint8Array> {
    const decoder = new TextDecoder();
    let open = "";
    const note = (data: string) => {
      if (data) recording.reads.push({ t_s: (this.#clock.nowMs() - beganMs) / 1000, data });
    };
    return new TransformStream({
      transform: (bytes, controller) => {
        controller.enqueue(bytes);
        open += decoder.decode(bytes, { stream: true });
        // What is replaced must be whole: the beginning of a line is noted with its end.
        const end = this.#keepText ? open.length : open.lastIndexOf("\n") + 1;
        note(this.#keepText ? open : eventsWithoutText(open.slice(0, end)));
        open = open.slice(end);
      },
      flush: () => note(this.#keepText ? open : eventsWithoutText(open)),
    });
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Whole lines of a stream of events, with every text in them replaced. */
function eventsWithoutText(lines: string): string {
  return lines.replace(/^(data: ?)(.*?)(\r?)$/gm, (_, field: string, data: string, end: string) => {
    const value = parsed(data);
    const said = isObject(value) ? JSON.stringify(withoutText(value)) : data;
    return field + (data === "[DONE]" || isObject(value) ? said : replaced(data)) + end;
  });
}

/** The same value with the letters and digits of its texts replaced, as many as they were. */
function withoutText(value: unknown, key = ""): unknown {
  if (typeof value === "string") return KEPT.has(key) ? value : replaced(value);
  if (Array.isArray(value))
    return value.map((one) => (SPELLING.has(key) ? 0 : withoutText(one, key)));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, withoutText(one, name)]),
  );
}

function replaced(text: string): string {
  return text
    .replace(/\p{Script=Han}/gu, "字")
    .replace(/(?!字)\p{Lu}/gu, "X")
    .replace(/(?![字X])\p{L}/gu, "x")
    .replace(/\p{N}/gu, "0");
}
