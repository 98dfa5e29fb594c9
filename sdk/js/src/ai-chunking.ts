/** `chunking` as the AI SDK has it: text given out in lines, matches, segments, once they are whole. */

import { laneOf, type StreamPart, type TextPart } from "./ai-parts.js";

/** The first chunk of a text, which must be its beginning; none if it is not whole yet. */
export type ChunkDetector = (buffer: string) => string | undefined | null;

export type Chunking = "word" | "line" | RegExp | ChunkDetector | Intl.Segmenter;

/** One lane's text: where its chunks end, found as it arrives, and what was shown of the next. */
class Lane {
  numArrived = 0;
  unchunked = "";
  readonly ends: number[] = [];
  numShown = 0;
  gathered = "";
  last: TextPart | undefined;

  /** What has arrived is a chunk, whole or not. */
  close(): void {
    if (this.unchunked) this.ends.push(this.numArrived);
    this.unchunked = "";
  }
}

/** Chunks are found where text arrives, and given out when all of one was shown. */
export class Chunks {
  readonly #detect: ChunkDetector;
  readonly #lanes = new Map<string, Lane>();
  #open: Lane | undefined;

  /** Throws TypeError for a chunking that is none. */
  constructor(chunking: Exclude<Chunking, "word">) {
    this.#detect = detector(chunking);
  }

  /** Takes note of text that arrives; text of another lane ends the chunk. */
  arrive(part: TextPart): void {
    const lane = this.#lane(part);
    if (this.#open !== lane || lane.last?.providerMetadata !== part.providerMetadata)
      this.interrupt();
    this.#open = lane;
    lane.last = part;
    lane.unchunked += part.text;
    lane.numArrived += part.text.length;
    for (let chunk; lane.unchunked && (chunk = this.#detect(lane.unchunked));) {
      lane.unchunked = lane.unchunked.slice(chunk.length);
      lane.ends.push(lane.numArrived - lane.unchunked.length);
    }
  }

  /** Something else arrives: what is not whole need not be. */
  interrupt(): void {
    this.#open?.close();
    this.#open = undefined;
  }

  shown(part: TextPart): void {
    const lane = this.#lane(part);
    lane.gathered += part.text;
    lane.numShown += part.text.length;
  }

  /** The chunks of which all was shown. */
  whole(): StreamPart[] {
    return [...this.#lanes.values()].flatMap((lane) => {
      const out: StreamPart[] = [];
      while (lane.ends.length && lane.ends[0]! <= lane.numShown) {
        const numGiven = lane.numShown - lane.gathered.length;
        const text = lane.gathered.slice(0, lane.ends.shift()! - numGiven);
        lane.gathered = lane.gathered.slice(text.length);
        out.push({ ...lane.last!, text } as TextPart);
      }
      return out;
    });
  }

  /** What was shown of chunks that are not whole. */
  rest(): StreamPart[] {
    return [...this.#lanes.values()].flatMap((lane) => {
      const text = lane.gathered;
      lane.gathered = "";
      return text ? [{ ...lane.last!, text } as TextPart] : [];
    });
  }

  #lane(part: TextPart): Lane {
    const name = laneOf(part);
    let lane = this.#lanes.get(name);
    if (!lane) this.#lanes.set(name, (lane = new Lane()));
    return lane;
  }
}

function detector(chunking: Exclude<Chunking, "word">): ChunkDetector {
  if (chunking === "line") return matcher(/\n+/);
  if (chunking instanceof RegExp) return matcher(chunking);
  if (typeof chunking === "function") return checked(chunking);
  if (typeof chunking?.segment === "function") return segmenter(chunking);
  throw new TypeError(
    `chunking must be "word", "line", a RegExp, an Intl.Segmenter or a function, not ${chunking}`,
  );
}

/** What comes up to the end of the first match that holds something. */
function matcher(pattern: RegExp): ChunkDetector {
  // A global or sticky pattern would remember where it was in another text.
  const anew = new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ""));
  return (text) => {
    const match = anew.exec(text);
    return match?.[0] ? text.slice(0, match.index + match[0].length) : undefined;
  };
}

function checked(detect: ChunkDetector): ChunkDetector {
  return (text) => {
    const chunk = detect(text);
    if (chunk === undefined || chunk === null) return;
    if (!chunk || !text.startsWith(chunk))
      throw new TypeError(`chunking must return a beginning of its text, not '${chunk}'`);
    return chunk;
  };
}

/** The first segment, once another follows: one that touches the end may still grow. */
function segmenter(by: Intl.Segmenter): ChunkDetector {
  return (text) => {
    const first = by.segment(text).containing(0)?.segment;
    return first && first.length < text.length ? first : undefined;
  };
}
