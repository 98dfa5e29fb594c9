/** One stream, shown twice: on the left as it comes, on the right paced. Text is shown as text. */

import { playInto, TextWriter } from "../sdk/js/dist/dom.js";
import { chunkText, PRESETS } from "../sdk/js/dist/index.js";
import { Inspector } from "../sdk/js/dist/inspector.js";
import { sources } from "./sources.js";

const form = document.querySelector("#ask");
const [raw, smooth, said, stop, curves] = [
  "raw",
  "smooth",
  "said",
  "stop",
  "curves",
].map((id) => document.getElementById(id));
const known = await sources((why) => (said.textContent = why));
fill(form.elements.source, Object.keys(known));
fill(form.elements.preset, Object.keys(PRESETS));
form.elements.preset.value = "balanced";

let leaving;
stop.addEventListener("click", () => leaving.abort());

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  leaving?.abort();
  const mine = (leaving = new AbortController());
  for (const element of [raw, smooth, curves]) element.replaceChildren();
  said.textContent = "";
  stop.disabled = false;
  try {
    await play(mine.signal);
    said.textContent = "Both are complete.";
  } catch (error) {
    if (mine !== leaving) return;
    said.textContent = mine.signal.aborted
      ? "Stopped."
      : `${error.name}: ${error.message}`;
  }
  stop.disabled = true;
});

async function play(signal) {
  const { source, prompt, preset, unit } = form.elements;
  const stream = await known[source.value](prompt.value, signal);
  const inspector = new Inspector();
  curves.append(inspector.element);
  const writer = new TextWriter(raw);
  const onArrival = (chunk) => {
    inspector.hooks.onArrival(chunk);
    writer.write(chunkText(chunk));
  };
  const { onShown } = inspector.hooks;
  const options = {
    preset: preset.value,
    unit: unit.value,
    signal,
    onArrival,
    onShown,
  };
  await playInto(smooth, stream, options);
}

function fill(select, names) {
  for (const name of names) select.append(new Option(name, name));
}
