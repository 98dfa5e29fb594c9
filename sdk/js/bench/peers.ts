/**
 * The usual rules for showing a stream, written anew from what is known of them, at their defaults.
 *
 * They are for comparison in kind: a claim about a product would need its own code. The AI SDK's
 * (`real-ai-sdk.ts`) and assistant-ui's (`real-assistant-ui.ts`) are run as they are; the latter's
 * rule stands here for machines that cannot install it. Sources, on GitHub: assistant-ui/assistant-ui
 * `useSmooth.ts`, ChatGPTNextWeb/NextChat `app/utils/chat.ts`, coder/mux `SmoothTextEngine.ts`,
 * posit-dev/shinychat pull request 411, LibreChat-AI/agents `src/llm/stream/smoother.ts`,
 * lobehub/lobe-ui `useSmoothStreamContent.ts`, open-webui/open-webui `src/lib/apis/streaming`,
 * huggingface/chat-ui `src/lib/utils/messageUpdates.ts`.
 *
 * Each is told what arrives and is woken at the times it asks for; `numShown` is how many characters
 * are on show.
 */

export interface Peer {
  readonly numShown: number;
  /** When it wants to be woken; Infinity for never. */
  readonly dueMs: number;
  arrive(text: string, nowMs: number): void;
  end(nowMs: number): void;
  wake(nowMs: number): void;
}

export const FRAME_MS = 1000 / 60;

/** A rule that works in ticks, from what is received and not shown. */
abstract class Ticking implements Peer {
  numShown = 0;
  dueMs = 0;
  protected text = "";
  protected ended = false;
  readonly #everyMs: number;

  constructor(everyMs = FRAME_MS) {
    this.#everyMs = everyMs;
  }

  get backlog(): number {
    return this.text.length - this.numShown;
  }

  arrive(text: string, _nowMs: number): void {
    this.text += text;
  }

  end(_nowMs: number): void {
    this.ended = true;
  }

  wake(nowMs: number): void {
    this.dueMs = nowMs + this.#everyMs;
    this.numShown += Math.min(this.backlog, Math.max(0, this.tick(nowMs)));
  }

  /** How many characters more are shown in this tick. */
  protected abstract tick(nowMs: number): number;
}

/** Everything as it arrives. */
export class PassThrough implements Peer {
  numShown = 0;
  readonly dueMs = Infinity;

  arrive(text: string): void {
    this.numShown += text.length;
  }

  end(): void {}
  wake(): void {}
}

/** assistant-ui `useSmooth`: a character takes min(5 ms, 250 ms / backlog). */
export class Proportional extends Ticking {
  #bankedMs = 0;

  protected tick(): number {
    if (!this.backlog) return (this.#bankedMs = 0);
    this.#bankedMs += FRAME_MS;
    const eachMs = Math.min(5, 250 / this.backlog);
    const count = Math.min(this.backlog, Math.floor(this.#bankedMs / eachMs));
    this.#bankedMs -= count * eachMs;
    return count;
  }
}

/** NextChat: a sixtieth of the backlog each frame, and all at the end. */
export class Sixtieth extends Ticking {
  protected tick(): number {
    if (this.ended) return this.backlog;
    return this.backlog && Math.max(1, Math.round(this.backlog / 60));
  }
}

/** A typewriter: a character every 5 ms on frames, never faster. */
export class Typewriter extends Ticking {
  #bankedMs = 0;

  protected tick(): number {
    if (!this.backlog) return (this.#bankedMs = 0);
    this.#bankedMs += FRAME_MS;
    const count = Math.min(this.backlog, Math.floor(this.#bankedMs / 5));
    this.#bankedMs -= count * 5;
    return count;
  }
}

/** mux: 72 to 420 characters a second, as drains what is over 60 in 250 ms; all at the end. */
export class Budget extends Ticking {
  #banked = 0;

  protected tick(): number {
    const { backlog } = this;
    if (this.ended || backlog > 1024) return backlog;
    const perSecond = Math.min(420, Math.max(72, (backlog - 60) / 0.25));
    this.#banked = backlog ? this.#banked + (perSecond * FRAME_MS) / 1000 : 0;
    if (this.#banked < 2) return 0;
    const count = Math.min(48, Math.floor(this.#banked));
    this.#banked -= count;
    return count;
  }
}

/** shinychat: 2 % of the backlog a frame, 30 characters a second at least, every 50 ms. */
export class TwoPercent extends Ticking {
  #perTick = 0;

  constructor() {
    super(50);
  }

  override end(): void {
    this.ended = true;
    this.#perTick = Math.ceil(this.backlog / 8); // 400 ms, a straight line
  }

  protected tick(): number {
    if (this.ended) return this.#perTick;
    return Math.ceil(Math.max(1.5, this.backlog * (1 - 0.98 ** 3)));
  }
}

/** LibreChat: every 25 ms a tenth of the backlog, four characters at least, to a boundary. */
export class TenthToBoundary extends Ticking {
  #perTick = 0;

  constructor() {
    super(25);
  }

  override end(): void {
    this.ended = true;
    this.#perTick = Math.ceil(this.backlog / 10);
  }

  protected tick(): number {
    const count = this.ended ? this.#perTick : Math.max(4, Math.ceil(this.backlog / 10));
    const ahead = this.text.slice(this.numShown + count, this.numShown + count + 64);
    const boundary = ahead.search(/[ .,!?;:]/);
    return boundary < 0 ? count : count + boundary + 1;
  }
}

/**
 * lobe-ui, balanced, simplified: commits every 64 ms at the measured rate, corrected towards a lag
 * of 120 ms, 18 to 132 characters a second; after 360 ms of silence to 280, to be done in 520 ms.
 */
export class ClampedRate extends Ticking {
  #perSecond = 72;
  #lastMs = 0;
  #banked = 0;

  constructor() {
    super(64);
  }

  override arrive(text: string, nowMs: number): void {
    super.arrive(text, nowMs);
    const sinceMs = Math.max(1, nowMs - this.#lastMs);
    this.#perSecond += ((text.length / sinceMs) * 1000 - this.#perSecond) * 0.2;
    this.#lastMs = nowMs;
  }

  protected tick(nowMs: number): number {
    const settling = nowMs - this.#lastMs > 360;
    const lag = 0.12 * this.#perSecond;
    const wanted = settling ? this.backlog / 0.52 : this.#perSecond + (this.backlog - lag);
    const perSecond = Math.min(settling ? 280 : 132, Math.max(18, wanted));
    this.#banked = this.backlog ? this.#banked + perSecond * 0.064 : 0;
    const count = Math.floor(this.#banked);
    this.#banked -= count;
    return count;
  }
}

/** Open WebUI: a delta of five characters or more in random pieces of one to three, 5 ms each. */
export class RandomPieces implements Peer {
  numShown = 0;
  dueMs = Infinity;
  #pieces: number[] = [];
  #seed = 1;

  arrive(text: string, nowMs: number): void {
    if (text.length < 5) this.#pieces.push(text.length);
    else
      for (let left = text.length; left > 0;) {
        const size = Math.min(left, 1 + Math.floor(this.#random() * 3));
        this.#pieces.push(size);
        left -= size;
      }
    if (this.dueMs === Infinity) this.wake(nowMs);
  }

  end(): void {}

  wake(nowMs: number): void {
    const size = this.#pieces.shift();
    this.numShown += size ?? 0;
    this.dueMs = size === undefined ? Infinity : nowMs + 5;
  }

  /** A linear congruential generator: the same pieces in every run. */
  #random(): number {
    this.#seed = (this.#seed * 1664525 + 1013904223) % 2 ** 32;
    return this.#seed / 2 ** 32;
  }
}

/**
 * Hugging Face chat-ui (2026): words; after each a pause of its length over the rate: 1.1 of what
 * arrives (a mean over 1 s), 0.3 characters/ms at least, and what the nearest deadline, 400 ms
 * after the arrival, asks for. Pauses are 5 to 80 ms.
 */
export class ArrivalRate implements Peer {
  numShown = 0;
  dueMs = Infinity;
  #words: { size: number; deadlineMs: number }[] = [];
  #open = "";
  #rate = 0.3;
  #lastMs = 0;
  #freeMs = -Infinity;

  arrive(text: string, nowMs: number): void {
    const sinceMs = nowMs - this.#lastMs;
    if (sinceMs > 0) {
      const weight = 1 - Math.exp(-sinceMs / 1000);
      this.#rate += (text.length / sinceMs - this.#rate) * weight;
    }
    this.#lastMs = nowMs;
    this.#open += text;
    // A word is whole when the next one begins.
    for (let cut; (cut = this.#open.search(/(?<=\s)\S/)) > 0; this.#open = this.#open.slice(cut))
      this.#queue(cut, nowMs);
    if (this.#open.length > 64) this.#flush(nowMs);
    this.#plan(nowMs);
  }

  end(nowMs: number): void {
    this.#flush(nowMs);
    this.#plan(nowMs);
  }

  wake(nowMs: number): void {
    const word = this.#words.shift()!;
    this.numShown += word.size;
    const waiting = this.#words.reduce((sum, { size }) => sum + size, 0);
    const nearest = this.#words[0]?.deadlineMs ?? Infinity;
    const pressed = waiting / Math.max(1, nearest - nowMs);
    const rate = Math.max(1.1 * this.#rate, 0.3, pressed);
    this.#freeMs = nowMs + Math.min(80, Math.max(5, word.size / rate));
    this.#plan(nowMs);
  }

  #queue(size: number, nowMs: number): void {
    this.#words.push({ size, deadlineMs: nowMs + 400 });
  }

  #flush(nowMs: number): void {
    if (this.#open) this.#queue(this.#open.length, nowMs);
    this.#open = "";
  }

  #plan(nowMs: number): void {
    const [next] = this.#words;
    this.dueMs = next ? Math.max(nowMs, Math.min(this.#freeMs, next.deadlineMs)) : Infinity;
  }
}

export const ASSISTANT_UI_RULE = "assistant-ui's rule";

/** By the name of whose rule it is. */
export const PEERS: Readonly<Record<string, () => Peer>> = {
  "pass-through": () => new PassThrough(),
  [ASSISTANT_UI_RULE]: () => new Proportional(),
  "HF chat-ui": () => new ArrivalRate(),
  LibreChat: () => new TenthToBoundary(),
  "Open WebUI": () => new RandomPieces(),
  NextChat: () => new Sixtieth(),
  mux: () => new Budget(),
  shinychat: () => new TwoPercent(),
  "lobe-ui": () => new ClampedRate(),
  "typewriter 5 ms": () => new Typewriter(),
};
