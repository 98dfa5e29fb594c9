// @vitest-environment happy-dom
/** `paceline/dom`: text into a page's element, at its pace and as text. */

import { expect, test } from "vitest";

import { playInto, TextWriter } from "../src/dom.js";
import { type Delta, delta, HandClock, HandMotion, settle, Source } from "./hand.js";

function playing(options: object = {}) {
  const element = document.createElement("p");
  const [source, clock] = [new Source<Delta>(), new HandClock()];
  const done = playInto(element, source, { clock, motion: new HandMotion(), ...options });
  done.catch(() => undefined);
  return { element, source, clock, done };
}

test("chunks are written at their pace, the first one at once, until all is there", async () => {
  const { element, source, clock, done } = playing();
  source.send(delta("one two three"));
  await settle();
  expect(element.textContent).toBe("o");
  const lengths = new Set<number>();
  for (let burst = 0; burst < 10; burst++) {
    source.send(delta(" four five six"));
    for (let step = 0; step < 10; step++) {
      await clock.pass(10);
      lengths.add(element.textContent!.length);
    }
  }
  expect(lengths.size).toBeGreaterThan(50);
  source.send(delta("", "stop"));
  source.end();
  await clock.pass(150);
  await done;
  expect(element.textContent).toBe("one two three" + " four five six".repeat(10));
});

test("model text is text, never HTML", async () => {
  const { element, source, done } = playing({ preset: "off" });
  source.send(delta('<img src=x onerror="alert(1)"> <b>&amp;</b>', "stop"));
  source.end();
  await done;
  expect(element.children.length).toBe(0);
  expect(element.textContent).toBe('<img src=x onerror="alert(1)"> <b>&amp;</b>');
});

test("an error comes after the text, and an abort closes the request", async () => {
  const broken = playing();
  broken.source.send(delta("half an answer"));
  broken.source.end(new Error("cut"));
  await broken.clock.pass(150);
  await expect(broken.done).rejects.toThrow("cut");
  expect(broken.element.textContent).toBe("half an answer");

  const leaving = new AbortController();
  const left = playing({ signal: leaving.signal });
  left.source.send(delta("half an answer"));
  await settle();
  leaving.abort();
  await expect(left.done).rejects.toBe(leaving.signal.reason);
  expect(left.source.controller.signal.aborted).toBe(true);
});

test("strings, chunks of one's own, and what was shown", async () => {
  const element = document.createElement("p");
  const shown: { word: string }[] = [];
  const source = new Source<{ word: string }>();
  const chunks = [{ word: "one" }, { word: " two" }];
  source.send(...chunks);
  source.end();
  await playInto(element, source, {
    textOf: ({ word }) => word,
    onShown: (one) => shown.push(one),
  });
  expect([element.textContent, shown]).toEqual(["one two", chunks]);
  const strings = new Source<string>();
  strings.send("!");
  strings.end();
  await playInto(element, strings, "off");
  expect(element.textContent).toBe("one two!");
});

test("what else is in the element stays where it is, and no node grows without end", () => {
  const element = document.createElement("p");
  const writer = new TextWriter(element);
  writer.write("before ");
  const image = element.appendChild(document.createElement("img"));
  writer.write("after");
  writer.write("");
  expect([...element.childNodes].indexOf(image)).toBe(1);
  expect(element.textContent).toBe("before after");
  for (let at = 0; at < 1000; at++) writer.write("0123456789");
  expect(element.childNodes.length).toBeGreaterThan(5);
  expect(element.childNodes.length).toBeLessThan(15);
});
