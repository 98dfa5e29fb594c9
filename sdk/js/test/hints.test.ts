/** What a gateway says of its pace. */

import { expect, test } from "vitest";

import { parseHint } from "../src/index.js";

const [numTokens, serverMs, nextMs] = [undefined, undefined, undefined];
const nothing = { numTokens, serverMs, nextMs };

test.each([
  ["pace n=3 t=18233 next=44", { numTokens: 3, serverMs: 18233, nextMs: 44 }],
  ["pace t=0 next=44.5", { numTokens, serverMs: 0, nextMs: 44.5 }],
  ["pace n=x t= next=-1", nothing],
  ["pace n=0x10 t=inf next=nan", nothing],
  ["pace n=1=2 more", nothing],
  ["pace  next=7   n=2 n=3", { numTokens: 3, serverMs, nextMs: 7 }],
  ["pace ", nothing],
  ["ping", undefined],
  ["pacer n=1", undefined],
  ["", undefined],
])("%j", (comment, hint) => {
  expect(parseHint(comment)).toEqual(hint);
});
