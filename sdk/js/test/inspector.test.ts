// @vitest-environment happy-dom
/** The inspector: what its curves say, and that it draws them. */

import { expect, test } from "vitest";

import { Curves } from "../src/curves.js";
import { playInto } from "../src/dom.js";
import { Inspector } from "../src/inspector.js";
import { type Delta, delta, HandClock, HandMotion, Source } from "./hand.js";

test("delays and gaps follow from what arrived and what was shown", () => {
  const curves = new Curves();
  curves.arrive(10, 100);
  curves.show(4, 100);
  curves.show(6, 150);
  curves.arrive(5, 200);
  curves.show(5, 300);
  expect(curves.figures()).toEqual({
    numArrived: 15,
    numShown: 15,
    meanDelayMs: (6 * 50 + 5 * 100) / 15,
    maxDelayMs: 100,
    p95GapMs: 150,
    maxGapMs: 150,
  });
});

test("what is older than the window is forgotten, but not how much there was", () => {
  const curves = new Curves(1000);
  for (let atMs = 0; atMs <= 10_000; atMs += 10) {
    curves.arrive(1, atMs);
    curves.show(1, atMs);
  }
  expect(curves.arrived.length).toBeLessThanOrEqual(102);
  expect(curves.figures()).toMatchObject({ numArrived: 1001, numShown: 1001, maxDelayMs: 0 });
});

test("it draws both curves of a stream, says its figures, and then rests", async () => {
  const [source, clock] = [new Source<Delta>(), new HandClock()];
  const inspector = new Inspector({ clock });
  document.body.append(inspector.element);
  const element = document.createElement("p");
  const options = { clock, motion: new HandMotion(), ...inspector.hooks };
  const done = playInto(element, source, options);
  for (let burst = 0; burst < 10; burst++) {
    source.send(delta(" one two three"));
    await clock.pass(100);
  }
  source.send(delta("", "stop"));
  source.end();
  await clock.pass(500);
  await done;
  const lines = [...inspector.element.querySelectorAll("polyline")];
  const [arrived, shown] = lines.map((line) => line.getAttribute("points")!.split(" ").length);
  expect(arrived).toBe(2 * 10 - 1);
  expect(shown).toBeGreaterThan(2 * arrived!);
  expect(inspector.element.textContent).toContain("arrived 140 · shown 140 characters");
  expect(inspector.figures.maxDelayMs).toBeLessThanOrEqual(400);
  expect(clock.numTimers).toBe(0);
  inspector.close();
  expect(document.body.contains(inspector.element)).toBe(false);
});
