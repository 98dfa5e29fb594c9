// What the scripts share: where to ask, what to ask, and how to tell of a failure.

export const { GATEWAY, WORKER, KEY } = process.env;

export const WEATHER = {
  type: "object",
  properties: {
    city: { type: "string" },
    days: { type: "integer", minimum: 2 },
    unit: { type: "string", enum: ["celsius", "fahrenheit"] },
  },
  required: ["city", "days", "unit"],
};

/** Sets what goes wrong at the simulated worker from now on. */
export async function setFaults(...faults) {
  const body = JSON.stringify({ faults });
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${WORKER}/sim/faults`, { method: "POST", headers, body });
  if (!answer.ok) throw new Error(await answer.text());
}

/** What `ask` fails with, as the client tells it; null if it does not fail. */
export async function failure(ask) {
  try {
    await ask();
    return null;
  } catch (error) {
    const { name } = error.constructor;
    return { name, status: error.status ?? null, code: error.code ?? null, message: error.message };
  }
}

/** All that an asynchronous iterable yields; what came before it fails is in `into`. */
export async function all(iterable, into = []) {
  for await (const item of iterable) into.push(item);
  return into;
}

/** Runs the checks in turn and prints their results as one JSON object, each under its name. */
export async function report(checks) {
  const results = {};
  for (const [name, check] of Object.entries(checks)) results[name] = await check();
  console.log(JSON.stringify(results));
}
