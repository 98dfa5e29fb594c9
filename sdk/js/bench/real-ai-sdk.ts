/** The AI SDK's own `smoothStream`, its pauses on a clock that jumps. */

import { smoothStream } from "ai";

import { byToken, type ShownTo, type Stream } from "./streams.js";

interface Delta {
  type: "text-delta";
  id: string;
  text: string;
}

type Timer = { dueMs: number; resolve(): void };

/** Until all that can happen now has happened. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The time of every token. As in use, the stream ends with a part that is no text. */
export async function realAiSdk(stream: Stream): Promise<number[]> {
  const timers: Timer[] = [];
  let nowMs = 0;
  const delay = (ms: number | null) =>
    new Promise<void>((resolve) => timers.push({ dueMs: nowMs + (ms ?? 0), resolve }));
  const { readable, writable } = transform(delay);
  const shownTo: ShownTo[] = [];
  let numShown = 0;
  void readable.pipeTo(
    new WritableStream<Delta>({
      write({ text }) {
        numShown += text?.length ?? 0;
        shownTo.push([numShown, nowMs]);
      },
    }),
  );
  const writer = writable.getWriter();
  const passTo = async (endMs: number) => {
    await settled();
    for (let timer; (timer = timers[0]) && timer.dueMs <= endMs; await settled()) {
      timers.shift();
      nowMs = timer.dueMs;
      timer.resolve();
    }
    nowMs = Math.max(nowMs, Math.min(endMs, stream.endMs));
  };
  for (const { atMs, text } of stream.bursts) {
    await passTo(atMs);
    void writer.write({ type: "text-delta", id: "1", text });
  }
  await passTo(stream.endMs);
  void writer.write({ type: "text-end", id: "1" } as unknown as Delta);
  await passTo(Infinity);
  return byToken(stream, shownTo);
}

/** CPU alone: the same stream without a pause. */
export async function aiSdkWithoutPauses({ bursts }: Stream): Promise<void> {
  const { readable, writable } = transform(() => Promise.resolve());
  const read = readable.pipeTo(new WritableStream());
  const writer = writable.getWriter();
  for (const { text } of bursts) void writer.write({ type: "text-delta", id: "1", text });
  await writer.close();
  await read;
}

function transform(delay: (ms: number | null) => Promise<void>): TransformStream<Delta, Delta> {
  const make = smoothStream({ _internal: { delay } });
  return make({ tools: {} }) as unknown as TransformStream<Delta, Delta>;
}
