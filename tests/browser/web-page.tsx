/** The page of the bench: one stream twice, as it comes and smooth, and what was painted when. */

import { chunkText, Client, type Unit } from "paceline";
import { playInto } from "paceline/dom";
import { useSmoothText } from "paceline/react";
import { useState } from "react";
import { createRoot } from "react-dom/client";

/** What is on show in one frame, in characters. */
export interface Frame {
  readonly atMs: number;
  readonly raw: number;
  readonly smooth: number;
}

export interface Measured {
  readonly frames: Frame[];
  readonly numLongFrames: number;
  readonly same: boolean;
}

declare global {
  interface Window {
    measure(base: string, how: "react" | Unit): Promise<Measured>;
  }
}

/** A growing text as an application would show it: paragraphs, each with its own element. */
function Paragraphs({ text }: { text: string }) {
  const paragraphs = text.split("\n");
  return paragraphs.map((paragraph, at) => <p key={at}>{paragraph}</p>);
}

window.measure = async (base, how) => {
  document.body.replaceChildren();
  const [raw, smooth] = ["raw", "smooth"].map((id): HTMLElement => {
    const element = document.createElement("div");
    element.id = id;
    element.style.cssText = "width: 45%; float: left; white-space: pre-wrap";
    return document.body.appendChild(element);
  }) as [HTMLElement, HTMLElement];
  let length = 0;
  const lengthOf = (element: HTMLElement) =>
    element === smooth && how === "react"
      ? length
      : element.textContent!.length;

  const frames: Frame[] = [];
  let over = false;
  // Looked at right after the frame, when every callback of it has run.
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = ({ data: atMs }) =>
    frames.push({ atMs, raw: lengthOf(raw), smooth: lengthOf(smooth) });
  const look = (atMs: number) => {
    port2.postMessage(atMs);
    if (!over) requestAnimationFrame(look);
  };
  let numLongFrames = 0;
  const observer = new PerformanceObserver(
    (list) => (numLongFrames += list.getEntries().length),
  );
  observer.observe({ type: "long-animation-frame" });
  requestAnimationFrame(look);

  const client = new Client(`${base}/v1`, { retries: { most: 0 } });
  const stream = await client.stream({ model: "m", messages: [] }, "off");
  let text = "";
  const onArrival = (chunk: object) => {
    text += chunkText(chunk);
    raw.textContent = text;
  };
  if (how !== "react") await playInto(smooth, stream, { onArrival, unit: how });
  else {
    await new Promise<void>((resolve, reject) => {
      let grow: ((text: string, isStreaming: boolean) => void) | undefined;
      function Message() {
        const [{ text, isStreaming }, set] = useState({
          text: "",
          isStreaming: true,
        });
        grow = (text, isStreaming) => set({ text, isStreaming });
        const shown = useSmoothText(text, { isStreaming });
        length = shown.text.length;
        if (shown.status === "done") resolve();
        return <Paragraphs text={shown.text} />;
      }
      createRoot(smooth).render(<Message />);
      void (async () => {
        await new Promise((mounted) => setTimeout(mounted, 100));
        for await (const chunk of stream) {
          onArrival(chunk);
          grow!(text, true);
        }
        grow!(text, false);
      })().catch(reject);
    });
  }
  await new Promise((resolve) => setTimeout(resolve, 100));
  over = true;
  observer.disconnect();
  port1.close();
  return { frames, numLongFrames, same: lengthOf(smooth) === text.length };
};
