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
  /** How long an event may be, a character counting as one. */
  maxEventBytes?: number;
  /** Told every comment, without its colon and one space, before the event it stands before. */
  onComment?: (comment: string) => void;
}

/** Bytes (or text) in any pieces to events; the pieces do not matter. */
export class SseParser {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #max: number;
  readonly #onComment: ((comment: string) => void) | undefined;
  #started = false;
  #mark = false; // a byte-order mark opened the stream
  #numBytes = 0;
  #lastByte = 0;
  #endsInCr = false;
  #line = "";
  #length = 0; // of the event so far, its line ends included
  #open = false; // a line of an event has come, the blank line has not
  #data: string[] = [];
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
    const text = this.#decoded(data);
    // The LF of a CRLF whose CR ended the last read belongs to that line.
    let start = this.#endsInCr && text[0] === "\n" ? 1 : 0;
    if (text) this.#endsInCr = text.endsWith("\r");
    const lineEnd = /\r\n?|\n/g;
    lineEnd.lastIndex = start;
    for (let found; (found = lineEnd.exec(text)); start = lineEnd.lastIndex) {
      const line = this.#line + text.slice(start, found.index);
      this.#line = "";
      this.#grow(lineEnd.lastIndex - start);
      if (line) this.#read(line);
      else {
        const event = this.#dispatch();
        if (event) yield event;
      }
    }
    this.#line += text.slice(start);
    this.#grow(text.length - start);
  }

  /** Whether the stream, if it ended here, would end within an event. */
  get incomplete(): boolean {
    // A last byte of several is text, read or kept back by the decoder; a mark alone is none.
    const inText = this.#lastByte > 127 && !(this.#mark && this.#numBytes === 3);
    return this.#open || this.#line !== "" || inText;
  }

  #decoded(data: Uint8Array | string): string {
    let text = data as string;
    if (typeof data !== "string") {
      text = this.#decoder.decode(data, { stream: true });
      this.#numBytes += data.length;
      this.#lastByte = data.at(-1) ?? this.#lastByte;
    }
    if (text && !this.#started) {
      this.#started = true;
      this.#mark = text[0] === "\ufeff";
      if (this.#mark) return text.slice(1);
    }
    return text;
  }

  #grow(length: number): void {
    this.#length += length;
    if (this.#length > this.#max) throw new SseError(`an event is longer than ${this.#max} bytes`);
  }

  #read(line: string): void {
    this.#open = true;
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (!colon) this.#onComment?.(value);
    else if (name === "data") this.#data.push(value);
    else if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    // More digits are no wait, nor a number in every language.
    else if (name === "retry" && /^\d{1,15}$/.test(value)) this.#retryMs = +value;
  }

  #dispatch(): SseEvent | undefined {
    const [data, event, retryMs] = [this.#data, this.#event || "message", this.#retryMs];
    this.#open = false;
    this.#length = 0;
    this.#data = [];
    this.#event = "";
    this.#retryMs = null;
    return data.length ? { data: data.join("\n"), event, id: this.#id, retryMs } : undefined;
  }
}
