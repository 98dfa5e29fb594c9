/**
 * Server-sent events, from bytes or text: bounded, linear, and the same at any split of the stream.
 *
 * Lines end at CR, LF or CRLF and nowhere else. Each read is looked at once; what is not yet a line
 * is kept unread, so that an event of a mebibyte in small reads costs no more than in one.
 *
 * Source: WHATWG HTML, "Server-sent events", parsing and interpreting an event stream.
 */

/** An event that grows past this is refused: memory per stream stays bounded. */
export const MAX_EVENT_BYTES = 16 * 2 ** 20;
/** The byte-order mark that may open a stream. */
const MARK = "\ufeff";

/** The stream cannot be read as server-sent events. */
export class SseError extends Error {
  override name = "SseError";
}

/** One dispatched event. `event` is "message" where the stream names none. */
export interface SseEvent {
  data: string;
  event: string;
  id: string | null;
  retryMs: number | null;
}

export interface SseParserOptions {
  /** How long an event may be, a character counting as one and line ends as none. */
  maxEventBytes?: number;
  /** Told every comment, without its colon and one space, before the event it stands before. */
  onComment?: (comment: string) => void;
}

/** Bytes (or text) in any pieces to events; the pieces do not matter. */
export class SseParser {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #max: number;
  readonly #onComment: ((comment: string) => void) | undefined;
  /** Passed over if the next text begins with it: a byte-order mark, or the LF of a CRLF. */
  #skipped = MARK;
  #numBytes = 0;
  #last: number | string = 0; // a byte, or a character
  #line = "";
  #length = 0; // of the event so far
  #data = "";
  #event = "";
  #id: string | null = null;
  #retryMs: number | null = null;

  constructor({ maxEventBytes = MAX_EVENT_BYTES, onComment }: SseParserOptions = {}) {
    this.#max = maxEventBytes;
    this.#onComment = onComment;
  }

  /** The events that `data` completes. Throws SseError if one passes the bound. */
  feed(data: Uint8Array | string): SseEvent[] {
    return [...this.events(data)];
  }

  /** The same one by one, so that comments are told between events; to be taken to its end. */
  *events(data: Uint8Array | string): Generator<SseEvent, void, undefined> {
    const texts = this.#decoded(data).split(/\r\n?|\n/);
    for (const [number, text] of texts.entries()) {
      if (number) {
        if (this.#line) this.#read();
        else yield* this.#dispatch();
        this.#line = "";
      }
      this.#line += text;
      this.#length += text.length;
      if (this.#length > this.#max)
        throw new SseError(`an event is longer than ${this.#max} bytes`);
    }
  }

  /** Whether the stream, if it ended here, would end within an event. */
  get incomplete(): boolean {
    // A last byte of several is text, read or kept back by the decoder; a mark alone is none.
    return this.#length > 0 || (+this.#last > 127 && this.#numBytes > 0);
  }

  #decoded(data: Uint8Array | string): string {
    const text = typeof data === "string" ? data : this.#decoder.decode(data, { stream: true });
    this.#numBytes += data.length;
    this.#last = data.at(-1) ?? this.#last;
    if (!text) return text;
    const skips = text[0] === this.#skipped;
    if (skips && this.#skipped === MARK) this.#numBytes -= 3;
    this.#skipped = text.endsWith("\r") ? "\n" : "";
    return skips ? text.slice(1) : text;
  }

  /** The event that a blank line completes, unless it has no data. */
  #dispatch(): SseEvent[] {
    const data = this.#data;
    const event = {
      data: data.slice(0, -1),
      event: this.#event || "message",
      id: this.#id,
      retryMs: this.#retryMs,
    };
    this.#data = this.#event = "";
    this.#retryMs = null;
    this.#length = 0;
    return data ? [event] : [];
  }

  #read(): void {
    const [name] = this.#line.split(":", 1);
    const value = this.#line.slice(name!.length + 1).replace(/^ /, "");
    if (!name) this.#onComment?.(value);
    else if (name === "data") this.#data += value + "\n";
    else if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    // More digits are no wait, nor a number in every language.
    else if (name === "retry" && /^\d{1,15}$/.test(value)) this.#retryMs = +value;
  }
}
