/**
 * Chat-completion chunks through a pacer: taken apart by choice and channel, put together again.
 *
 * A chunk may bring text of several choices, and in each of reasoning, answer and refusal: every
 * one is a lane. Where one chunk is shown in several pieces, the first carries its unknown fields,
 * each its own log-probabilities and token ids, the last the finish and the usage. A chunk that is
 * shown whole is passed on as the very object that came.
 *
 * Anything else keeps its place: strings are paced as text, the rest is passed on in order.
 */

import type { Piece } from "./cutting.js";
import { isObject } from "./json.js";
import { Pacer, type Hint, type PacerStats } from "./pacer.js";
import { optionsFor, type Pacing } from "./presets.js";

type Fields = Readonly<Record<string, unknown>>;

const REASONING = ["reasoning", "reasoning_content"]; // new and old vLLM; some servers send both
const IDENTITY = ["id", "object", "created", "model"];
const AT_THE_END = ["finish_reason", "stop_reason"];

/**
 * One lane's text in a chunk, or what a choice brings beside its texts (then no `keys`).
 *
 * `keys` are where the text stands: in the delta, or for plain completions in the choice. The
 * choice's token ids and log-probabilities belong to its last text (`ownsTokens`).
 */
class Segment {
  firstOfChoice = false;
  lastOfChoice = false;
  firstOfChunk = false;
  lastOfChunk = false;
  ownsTokens = false;
  numTokens: number | undefined;
  readonly data: Fields;
  readonly choice: Fields;
  readonly channel: string;
  readonly keys: readonly string[];
  readonly text: string;

  constructor(data: Fields, choice: Fields, found: Found = ["", [], ""]) {
    this.data = data;
    this.choice = choice;
    [this.channel, this.keys, this.text] = found;
  }
}

type Found = readonly [channel: string, keys: readonly string[], text: string];

/** A `Pacer` for chunks. Times are milliseconds, as there. */
export class ChunkPacer<T = unknown> {
  readonly #pacer: Pacer;
  readonly #enabled: boolean;
  readonly #seen = new Set<number>();
  readonly #finished = new Set<number>();
  readonly #numChoices: number;
  #completionTokens = 0;

  /** `numChoices` is how many choices were asked for. */
  constructor(pacing?: Pacing, numChoices = 1) {
    const options = optionsFor(pacing);
    this.#numChoices = numChoices;
    this.#pacer = new Pacer(options);
    this.#enabled = options.enabled;
  }

  /**
   * Takes a chunk that arrived at `nowMs`, with what the server said of its pace.
   *
   * `whole` keeps it as it is: for when nobody watches.
   */
  push(chunk: T, nowMs: number, hint?: Hint, whole = false): void {
    const asItIs = whole || !this.#enabled;
    if (hint) this.#pacer.hint(hint);
    if (typeof chunk === "string" && !asItIs)
      return this.#pacer.push(chunk, nowMs, { numTokens: hint?.numTokens });
    const choices = choicesOf(chunk);
    if (!choices) return this.#pacer.part(chunk, nowMs, null);
    const data = chunk as Fields;
    this.#note(choices);
    const counted = this.#count(data, hint);
    if (asItIs) return this.#pacer.part(chunk, nowMs, null);
    const segments = takeApart(data, choices);
    if (!segments.some((segment) => segment.text))
      return this.#pacer.part(chunk, nowMs, completes(data, choices));
    for (const segment of segments) this.#pushSegment(segment, nowMs, counted);
  }

  /** No more will come. */
  finish(nowMs: number): void {
    this.#pacer.finish(nowMs);
  }

  /** The chunks to be shown by `nowMs`, in order. */
  take(nowMs: number): T[] {
    return this.#pacer.take(nowMs).map(render<T>);
  }

  takeTimed(nowMs: number): [dueMs: number, chunk: T][] {
    return this.#pacer.takeTimed(nowMs).map(([dueMs, piece]) => [dueMs, render<T>(piece)]);
  }

  flush(nowMs: number): T[] {
    return this.#pacer.flush(nowMs).map(render<T>);
  }

  abort(nowMs: number): T[] {
    return this.#pacer.abort(nowMs).map(render<T>);
  }

  get nextDueMs(): number | undefined {
    return this.#pacer.nextDueMs;
  }

  /** How many pieces have not been taken. */
  get numWaiting(): number {
    return this.#pacer.numWaiting;
  }

  get stats(): PacerStats {
    return this.#pacer.stats;
  }

  /** Whether every choice that was seen or asked for has its finish. */
  get allFinished(): boolean {
    return this.#finished.size >= this.#numChoices && !this.incomplete;
  }

  /** Whether a choice has begun and not finished: an end here would be too early. */
  get incomplete(): boolean {
    return this.#seen.size !== this.#finished.size;
  }

  #pushSegment(segment: Segment, nowMs: number, counted: number | undefined): void {
    const { choice, text, lastOfChoice } = segment;
    const lane = `${indexOf(choice)}.`;
    const finishes = !!choice["finish_reason"];
    if (!segment.keys.length)
      return this.#pacer.part(segment, nowMs, finishes || bringsTools(choice) ? lane : null);
    this.#pacer.push(text, nowMs, {
      lane: lane + segment.channel,
      numTokens: segment.numTokens || counted,
      tokenTexts: tokenTexts(segment),
      cargo: segment,
      final: lastOfChoice && finishes,
    });
  }

  #note(choices: readonly Fields[]): void {
    for (const choice of choices) {
      this.#seen.add(indexOf(choice));
      // some servers send "" until the end
      if (choice["finish_reason"]) this.#finished.add(indexOf(choice));
    }
  }

  /** How many tokens this chunk brings, by the hint or by continuous usage. */
  #count({ usage }: Fields, hint: Hint | undefined): number | undefined {
    const total = isObject(usage) ? usage["completion_tokens"] : undefined;
    let brought: number | undefined;
    if (Number.isInteger(total)) {
      brought = (total as number) - this.#completionTokens;
      this.#completionTokens = total as number;
    }
    if (this.#seen.size !== 1) return; // several choices share these numbers
    return hint?.numTokens || brought;
  }
}

// -- chunks apart --------------------------------------------------------------------------------

/** A chunk's choices; undefined for what is no chunk. */
function choicesOf(chunk: unknown): Fields[] | undefined {
  const choices = isObject(chunk) ? chunk["choices"] : undefined;
  return Array.isArray(choices) && choices.every(isObject) ? choices : undefined;
}

function takeApart(data: Fields, choices: readonly Fields[]): Segment[] {
  const segments = choices.flatMap((choice) => {
    const ofChoice = textsOf(choice).map((found) => new Segment(data, choice, found));
    const owner = ofChoice.at(-1);
    if (owner) {
      owner.ownsTokens = true;
      owner.numTokens = numTokensOf(owner);
    }
    if (!owner || bringsTools(choice)) {
      const rest = new Segment(data, choice);
      rest.ownsTokens = !owner;
      ofChoice.push(rest);
    }
    ofChoice[0]!.firstOfChoice = ofChoice.at(-1)!.lastOfChoice = true;
    return ofChoice;
  });
  if (segments.length) segments[0]!.firstOfChunk = segments.at(-1)!.lastOfChunk = true;
  return segments;
}

/** (channel, keys, text) of each text, reasoning before the answer. */
function textsOf({ delta, text }: Fields): Found[] {
  if (!isObject(delta)) return isText(text) ? [["text", ["text"], text]] : [];
  const found: Found[] = [];
  const reasoning = REASONING.filter((key) => isText(delta[key]));
  if (reasoning.length) {
    const thought = delta[reasoning[0]!] as string;
    found.push(["reasoning", reasoning.filter((key) => delta[key] === thought), thought]);
  }
  if (isText(delta["content"])) found.push(["text", ["content"], delta["content"]]);
  if (isText(delta["refusal"])) found.push(["refusal", ["refusal"], delta["refusal"]]);
  return found;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function indexOf({ index }: Fields): number {
  return Number.isInteger(index) ? (index as number) : 0;
}

function bringsTools({ delta }: Fields): boolean {
  if (!isObject(delta)) return false;
  const { tool_calls: calls, audio } = delta;
  return Array.isArray(calls) ? calls.length > 0 || !!audio : !!(calls || audio);
}

/** Which lanes a chunk without text completes, for `Pacer.part`. */
function completes({ usage }: Fields, choices: readonly Fields[]): string | null {
  if (!choices.length) return usage ? "" : null;
  const ending = choices.find((choice) => choice["finish_reason"] || bringsTools(choice));
  if (!ending) return null;
  return choices.length === 1 ? `${indexOf(ending)}.` : "";
}

function logprobsKey({ channel }: Segment): string {
  return channel === "refusal" ? "refusal" : "content";
}

/** The chunk's log-probabilities, one entry a token of this lane's text. */
function entriesOf(segment: Segment): unknown[] | undefined {
  const { logprobs } = segment.choice;
  const entries = isObject(logprobs) ? logprobs[logprobsKey(segment)] : undefined;
  return Array.isArray(entries) && entries.length ? entries : undefined;
}

function numTokensOf(segment: Segment): number | undefined {
  const { token_ids: ids } = segment.choice;
  return (Array.isArray(ids) && ids.length) || entriesOf(segment)?.length;
}

function tokenTexts(segment: Segment): string[] | undefined {
  if (!segment.ownsTokens) return;
  return entriesOf(segment)?.map((entry) => (isObject(entry) ? String(entry["token"]) : ""));
}

// -- and together --------------------------------------------------------------------------------

/** The chunk that shows `piece`. */
function render<T>(piece: Piece): T {
  const { cargo: segment, text } = piece;
  if (!(segment instanceof Segment)) return (segment === undefined ? text : segment) as T;
  const first = segment.firstOfChunk && piece.first;
  const last = segment.lastOfChunk && piece.last;
  if (first && last && text === segment.text) return segment.data as T;
  const shown: Record<string, unknown> = {};
  for (const key in segment.data)
    if (IDENTITY.includes(key) || (key === "usage" ? last : first)) shown[key] = segment.data[key];
  shown["choices"] = [choiceOf(segment, piece)];
  return shown as T;
}

function choiceOf(segment: Segment, piece: Piece): Fields {
  const first = segment.firstOfChoice && piece.first;
  const last = segment.lastOfChoice && piece.last;
  const shown: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(segment.choice)) {
    if (AT_THE_END.includes(key)) {
      if (last || key === "finish_reason") shown[key] = last ? value : null;
    } else if (key === "token_ids") shown[key] = ofPiece(segment, value, piece);
    else if (key === "logprobs") shown[key] = logprobsOf(segment, value, piece);
    else if (key === "delta" && isObject(value))
      shown[key] = deltaOf(segment, value, piece.text, first, last);
    else if (segment.keys.includes(key)) shown[key] = piece.text;
    else if (key === "index" || first) shown[key] = value;
  }
  return shown;
}

/** The lane's text; the other lanes' are left to their own pieces. */
function deltaOf(
  segment: Segment,
  delta: Fields,
  text: string,
  first: boolean,
  last: boolean,
): Fields {
  const elsewhere = textsOf(segment.choice).flatMap(([, keys]) => keys);
  const shown: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(delta)) {
    if (segment.keys.includes(key)) shown[key] = text;
    else if (elsewhere.includes(key)) continue;
    else if (key === "tool_calls" || key === "audio" ? last : first) shown[key] = value;
  }
  return shown;
}

/** A list with an entry a token: those of the piece's tokens. Anything else: on the first. */
function ofPiece(segment: Segment, values: unknown, { first, tokens }: Piece): unknown {
  if (!segment.ownsTokens) return null;
  if (!segment.keys.length) return values;
  if (!Array.isArray(values) || values.length !== segment.numTokens) return first ? values : null;
  return values.slice(...tokens);
}

function logprobsOf(segment: Segment, logprobs: unknown, piece: Piece): unknown {
  const entries = entriesOf(segment);
  if (!isObject(logprobs) || !entries) return piece.first && segment.ownsTokens ? logprobs : null;
  const kept = ofPiece(segment, entries, piece);
  if (kept === null) return null;
  const name = logprobsKey(segment);
  const beside = Object.entries(logprobs).filter(
    ([key, value]) => key === name || value === null || piece.first,
  );
  return { ...Object.fromEntries(beside), [name]: kept };
}
