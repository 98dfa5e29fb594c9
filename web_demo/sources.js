/** Streams for the demo: a server's, or one that is made here and needs none. */

import { Client, NotFoundError } from "../sdk/js/dist/index.js";

const TEXT = `A river begins where rain and melting snow gather: in a spring, at the foot of a glacier, in a bog. It takes the steepest way, and where the way is even it winds, for the outer bank of a bend is worn away and the inner one grows.

What it carries it sorts by weight. Boulders stay in the mountains, gravel comes to rest at their foot, sand on the plains, and the finest mud in the sea. So a river builds the land that it later crosses; deltas and flood plains are its own work, and so is the fertile soil on which people have settled since they began to sow.`;

/**
 * Where a stream may come from: this page's own server, if it stands before a gateway, or here.
 * `complain` is told of a gateway that should be there and is not.
 */
export async function sources(complain) {
  const made = { "made here: 4 tokens every 150 ms": () => bursts(150, 4) };
  const client = new Client(new URL("/v1", location.href).href, {
    retries: { most: 0 },
  });
  try {
    const [model] = await client.models();
    return {
      [`gateway: ${model}`]: (prompt, signal) =>
        asked(client, model, prompt, signal),
      ...made,
    };
  } catch (error) {
    if (!(error instanceof NotFoundError)) complain(error.message);
    return made;
  }
}

/** Its own pacing is off, since the page shows both. */
function asked(client, model, prompt, signal) {
  const messages = [{ role: "user", content: prompt }];
  const body = {
    model,
    messages,
    max_tokens: 400,
    stream_options: { include_usage: true },
  };
  return client.stream(body, { preset: "off", signal });
}

/** What a speculating engine sends: passes of one token to as many as it drafted. */
async function* bursts(passMs, mostTokens) {
  const tokens = TEXT.match(/\s*\S{1,5}/g);
  for (let at = 0; at < tokens.length;) {
    const numTokens = 1 + Math.floor(Math.random() * (2 * mostTokens - 1));
    const content = tokens.slice(at, at + numTokens).join("");
    at += numTokens;
    yield { choices: [{ index: 0, delta: { content }, finish_reason: null }] };
    await new Promise((resolve) => setTimeout(resolve, passMs));
  }
  yield { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
}
