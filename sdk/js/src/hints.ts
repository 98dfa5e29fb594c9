/**
 * What a Paceline gateway says of its pace, in comments that other clients skip.
 *
 * With `x-paceline-hints: 1`, `: pace n=3 t=18233 next=44` stands before each event: `n` tokens in
 * it, `t` the gateway's clock and `next` the time to the next event, in milliseconds. Any may be
 * missing.
 */

import type { Hint } from "./pacer.js";

export const HINTS_HEADER = "x-paceline-hints";

/** The hint in an SSE comment; undefined for any other comment. What is no number is left out. */
export function parseHint(comment: string): Hint | undefined {
  if (!comment.startsWith("pace ")) return;
  const fields = new Map(
    comment.split(/\s+/).map((word) => [word.split("=", 1)[0], word.slice(word.indexOf("=") + 1)]),
  );
  const number = (name: string) => {
    const text = fields.get(name);
    const value = text && /^[\d.+e-]+$/i.test(text) ? Number(text) : NaN;
    return value >= 0 && value < Infinity ? value : undefined;
  };
  const tokens = number("n");
  return {
    numTokens: tokens === undefined ? undefined : Math.trunc(tokens),
    serverMs: number("t"),
    nextMs: number("next"),
  };
}
