// Plays random streams through the TypeScript pacer, as it is built: JSON in, what was shown out.

import { readFileSync } from "node:fs";
import { ChunkPacer, Pacer } from "../../sdk/js/dist/index.js";

const options = ({ max_delay_ms: maxDelayMs, min_delay_ms: minDelayMs, drain_ms: drainMs, unit }) => ({
  maxDelayMs,
  minDelayMs,
  drainMs,
  unit,
});

function played(stream) {
  const pacer = new Pacer(options(stream.options));
  const shown = [];
  for (const step of stream.steps) {
    const { at, push, part, closes, hint, flush, abort } = step;
    shown.push(...pacer.takeTimed(at));
    if (push !== undefined) {
      const { lane, tokens: numTokens, token_texts: tokenTexts, final } = step;
      pacer.push(push, at, { lane, numTokens, tokenTexts, final });
    } else if (part !== undefined) pacer.part(part, at, closes);
    else if (hint) pacer.hint({ numTokens: hint.n, nextMs: hint.next });
    else if (flush) shown.push(...pacer.flush(at).map((piece) => [at, piece]));
    else if (abort) pacer.abort(at);
    else pacer.finish(at);
  }
  shown.push(...pacer.takeTimed(Infinity));
  return shown.map(([at, { lane, text, cargo }]) => (lane ? [at, lane, text] : [at, cargo]));
}

function playedChunks(stream) {
  const pacer = new ChunkPacer(options(stream.options));
  for (const { at, chunk } of stream.steps) pacer.push(chunk, at);
  pacer.finish(stream.steps.at(-1).at);
  return pacer.takeTimed(Infinity);
}

const { texts, chunks } = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify({ texts: texts.map(played), chunks: chunks.map(playedChunks) }));
