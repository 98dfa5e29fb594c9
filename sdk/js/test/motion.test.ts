/** What a page says of motion, on a page of our own. */

import { afterEach, expect, test, vi } from "vitest";

import { pageMotion } from "../src/index.js";

class Page extends EventTarget {
  visibilityState = "visible";
}

class Query extends EventTarget {
  matches = false;
}

function page(): { document: Page; query: Query } {
  const [document, query] = [new Page(), new Query()];
  vi.stubGlobal("document", document);
  vi.stubGlobal("matchMedia", (asked: string) => {
    expect(asked).toBe("(prefers-reduced-motion: reduce)");
    return query;
  });
  return { document, query };
}

afterEach(() => vi.unstubAllGlobals());

test("without a page it is wanted", () => {
  expect(pageMotion({}).wanted).toBe(true);
});

test("a hidden page and reduced motion end it, and changes are told until told no more", () => {
  const { document, query } = page();
  const motion = pageMotion({});
  const changed = vi.fn();
  const unwatch = motion.watch(changed);
  expect(motion.wanted).toBe(true);
  document.visibilityState = "hidden";
  document.dispatchEvent(new Event("visibilitychange"));
  expect([motion.wanted, changed.mock.calls.length]).toEqual([false, 1]);
  document.visibilityState = "visible";
  query.matches = true;
  query.dispatchEvent(new Event("change"));
  expect([motion.wanted, changed.mock.calls.length]).toEqual([false, 2]);
  unwatch();
  query.dispatchEvent(new Event("change"));
  document.dispatchEvent(new Event("visibilitychange"));
  expect(changed).toHaveBeenCalledTimes(2);
});

test("each can be overruled", () => {
  const { document, query } = page();
  document.visibilityState = "hidden";
  query.matches = true;
  expect(pageMotion({ paceWhenHidden: true }).wanted).toBe(false);
  expect(pageMotion({ paceWithReducedMotion: true }).wanted).toBe(false);
  expect(pageMotion({ paceWhenHidden: true, paceWithReducedMotion: true }).wanted).toBe(true);
});
