/**
 * A stream's text into an element of a page, paced and by frames. It is text, never HTML.
 *
 *     import { playInto } from "paceline/dom";
 *
 *     await playInto(element, stream);
 */

import { type Chunk, chunkText } from "./answers.js";
import { frameClock } from "./frames.js";
import { smooth, type SmoothOptions, type Source } from "./openai.js";
import type { Preset } from "./presets.js";

/** Longer text nodes are not appended to: a page lays out a node as a whole. */
const NODE_CHARS = 1024;

/** Writes at the end of an element. Whatever else is in it stays, and so does a selection. */
export class TextWriter {
  readonly #element: Node;
  #node: Text | undefined;

  constructor(element: Node) {
    this.#element = element;
  }

  write(text: string): void {
    if (!text) return;
    const node = this.#node;
    // Others may have moved the node, or appended something after it.
    if (node && node.length < NODE_CHARS && node === this.#element.lastChild) node.appendData(text);
    else this.#node = this.#element.appendChild(this.#element.ownerDocument!.createTextNode(text));
  }
}

export interface PlayOptions<T> extends SmoothOptions<T> {
  /** The text of a chunk; strings and chat-completion chunks (their first choice) are known. */
  readonly textOf?: ((chunk: T) => string) | undefined;
  /** Called with every chunk when its text was written. */
  readonly onShown?: ((chunk: T) => void) | undefined;
}

/**
 * Writes the text of `source` at the end of `element`; resolves when all was written.
 *
 * Rejects with the source's error after the text that arrived before it, and with the reason of
 * `signal`, which closes the request. Throws RangeError for options that no pacer could keep.
 */
export async function playInto<T>(
  element: Node,
  source: Source<T>,
  options: PlayOptions<T> | Preset = {},
): Promise<void> {
  const given: PlayOptions<T> = typeof options === "string" ? { preset: options } : options;
  const { textOf = textOfChunk, onShown, ...pacing } = given;
  const writer = new TextWriter(element);
  for await (const chunk of smooth(source, { clock: frameClock, ...pacing })) {
    writer.write(textOf(chunk));
    onShown?.(chunk);
  }
}

function textOfChunk(chunk: unknown): string {
  return typeof chunk === "string" ? chunk : chunkText(chunk as Chunk);
}
