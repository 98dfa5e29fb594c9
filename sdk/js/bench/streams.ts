/** What is paced in the bench, and how a rule's work is told: the time of every token. */

export interface Burst {
  readonly atMs: number;
  readonly text: string;
  readonly numTokens: number;
}

export interface Stream {
  readonly name: string;
  readonly bursts: readonly Burst[];
  readonly endMs: number;
}

/** That so many characters (UTF-16 units) were on show from then on. */
export type ShownTo = readonly [numChars: number, atMs: number];

/** A way to pace a stream: a stream in, the time of every token out. */
export type Rule = (stream: Stream) => number[];

export const textOf = ({ bursts }: Stream): string => bursts.map(({ text }) => text).join("");

export const numTokensOf = ({ bursts }: Stream): number =>
  bursts.reduce((sum, { numTokens }) => sum + numTokens, 0);

/**
 * Times by characters → times by token: a token is there when its last character is. A burst's
 * characters are shared out evenly among its tokens.
 */
export function byToken({ bursts }: Stream, shownTo: readonly ShownTo[]): number[] {
  const times: number[] = [];
  let position = 0;
  let index = 0;
  for (const { text, numTokens } of bursts) {
    for (let number = 1; number <= numTokens; number++) {
      const end = position + Math.round((text.length * number) / numTokens);
      while (shownTo[index]![0] < end) index++;
      times.push(shownTo[index]![1]);
    }
    position += text.length;
  }
  return times;
}
