/** The page of the tests: streams into elements, by the DOM helper and by React. */

import { Client, chunkText, type Chunk, type ChatStream } from "paceline";
import { playInto } from "paceline/dom";
import { useSmoothText } from "paceline/react";
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";

/** What a test sees of one stream. */
interface Told {
  arrived: string;
  numArrived: number;
  ended: string;
  renders: string[];
}

declare global {
  interface Window {
    told: Record<string, Told>;
    play(id: string, base: string, body?: object): void;
    playReact(id: string, base: string): void;
    leave(id: string): void;
  }
}

window.told = {};
const leaving: Record<string, () => void> = {};
window.leave = (id) => leaving[id]!();

function told(id: string): Told {
  return (window.told[id] = {
    arrived: "",
    numArrived: 0,
    ended: "",
    renders: [],
  });
}

const ask = {
  model: "m",
  messages: [{ role: "user", content: "Tell me about rivers." }],
};

/** Its own pacing off: what is tested paces. */
function stream(
  base: string,
  body: object,
  signal: AbortSignal,
): Promise<ChatStream> {
  const client = new Client(`${base}/v1`, { retries: { most: 0 } });
  return client.stream({ ...ask, ...body }, { preset: "off", signal });
}

function note(of: Told) {
  return (chunk: Chunk) => {
    of.arrived += chunkText(chunk);
    of.numArrived++;
  };
}

/** With the helper. */
window.play = (id, base, body = {}) => {
  const of = told(id);
  const element = document.body.appendChild(document.createElement("p"));
  element.id = id;
  const gone = new AbortController();
  leaving[id] = () => gone.abort();
  void (async () => {
    try {
      const source = await stream(base, body, gone.signal);
      await playInto(element, source, {
        signal: gone.signal,
        onArrival: note(of),
      });
      of.ended = "done";
    } catch (error) {
      of.ended = (error as Error).name;
    }
  })();
};

/** The whole text again and again, as chat hooks give it, through `useSmoothText`. */
window.playReact = (id, base) => {
  const of = told(id);
  const page = document.body.appendChild(document.createElement("div"));
  const gone = new AbortController();
  const root = createRoot(page);
  leaving[id] = () => {
    root.unmount();
    gone.abort();
  };
  let grow: (text: string, isStreaming: boolean) => void = () => undefined;

  function Message() {
    const [{ text, isStreaming }, set] = useState({
      text: "",
      isStreaming: true,
    });
    grow = (text, isStreaming) => set({ text, isStreaming });
    const shown = useSmoothText(text, { isStreaming });
    of.renders.push(shown.text);
    if (shown.status === "done") of.ended = "done";
    return <p id={id}>{shown.text}</p>;
  }

  root.render(
    <StrictMode>
      <Message />
    </StrictMode>,
  );
  void (async () => {
    try {
      for await (const chunk of await stream(base, {}, gone.signal)) {
        note(of)(chunk);
        grow(of.arrived, true);
      }
      grow(of.arrived, false);
    } catch (error) {
      of.ended = (error as Error).name;
    }
  })();
};
