/** Rules run over a stream under a clock that jumps from event to event. */

import { Pacer } from "../src/index.js";
import { type Peer, PEERS } from "./peers.js";
import { byToken, type Rule, type ShownTo, type Stream, textOf } from "./streams.js";

/** `Pacer`. Throws Error if the text that came out is not what went in. */
export function ours(stream: Stream): number[] {
  const pacer = new Pacer();
  for (const { atMs, text, numTokens } of stream.bursts)
    pacer.push(text, atMs, { numTokens, cargo: text });
  pacer.finish(stream.endMs);
  const times: number[] = [];
  let shown = "";
  for (const [atMs, { text, tokens }] of pacer.takeTimed(Infinity)) {
    shown += text;
    for (let token = tokens[0]; token < tokens[1]; token++) times.push(atMs);
  }
  if (shown !== textOf(stream)) throw new Error(`${stream.name}: the text changed`);
  return times;
}

/** A peer, told of every arrival and woken whenever it asks to be. */
export function played(stream: Stream, peer: Peer): ShownTo[] {
  const numChars = textOf(stream).length;
  const shownTo: ShownTo[] = [];
  let nowMs = 0;
  const note = () => {
    if (peer.numShown > (shownTo.at(-1)?.[0] ?? 0)) shownTo.push([peer.numShown, nowMs]);
  };
  const wakeUntil = (endMs: number) => {
    while (peer.dueMs <= endMs && peer.numShown < numChars) {
      nowMs = Math.max(nowMs, peer.dueMs);
      peer.wake(nowMs);
      note();
    }
  };
  for (const { atMs, text } of stream.bursts) {
    wakeUntil(atMs - 1e-6);
    nowMs = atMs;
    peer.arrive(text, atMs);
    note();
  }
  wakeUntil(stream.endMs - 1e-6);
  nowMs = stream.endMs;
  peer.end(nowMs);
  note();
  wakeUntil(Number.MAX_SAFE_INTEGER);
  return shownTo;
}

export function ofPeer(make: () => Peer): Rule {
  return (stream) => byToken(stream, played(stream, make()));
}

export const RULES: Readonly<Record<string, Rule>> = {
  ours,
  ...Object.fromEntries(Object.entries(PEERS).map(([name, make]) => [name, ofPeer(make)])),
};
