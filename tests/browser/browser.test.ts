/**
 * The SDK as built, in Chromium: its logic under a clock that the tests move, against streams
 * written by hand, a recording, and a real gateway with a simulated worker.
 */

import type { Browser, Page } from "playwright-core";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
} from "vitest";

import { chromeOrSkip, launch } from "./chrome.js";
import { type Fleet, startFleet } from "./fleet.js";
import { recording } from "./recording.js";
import { type HandStream, Site } from "./site.js";

const chrome = chromeOrSkip();

let browser: Browser;
let site: Site;
let address: string;
let page: Page;
const complaints: string[] = [];

beforeAll(async () => {
  if (!chrome) return;
  site = await Site.open();
  [browser, address] = await Promise.all([
    launch(chrome),
    site.page("/page", "./page.tsx"),
  ]);
}, 30_000);

afterAll(async () => {
  await browser?.close();
  await site?.close();
});

beforeEach(async () => {
  if (!chrome) return;
  complaints.length = 0;
  page = await browser.newPage();
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (said) => {
    if (["error", "warning"].includes(said.type()))
      complaints.push(said.text());
  });
});

afterEach(async () => {
  await page?.context().close();
  expect(complaints).toEqual([]);
});

/** Opens the page with its clock stopped. */
async function opened(): Promise<void> {
  await page.clock.install({ time: 0 });
  await page.goto(address);
  await page.waitForFunction(() => !!window.play);
  await page.clock.pauseAt(60_000);
}

/** A stream written by hand into the element `id`. */
async function playing(
  id: string,
  how: "play" | "playReact" = "play",
): Promise<HandStream> {
  const asked = site.hand(id);
  await page.evaluate(([id, how, base]) => window[how](id, base), [
    id, how, `${site.origin}/${id}`,
  ] as const); // prettier-ignore
  return asked;
}

const event = (content: string, finish: string | null = null): string => {
  const choices = [{ index: 0, delta: { content }, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices })}\n\n`;
};
const DONE = event("", "stop") + "data: [DONE]\n\n";

const shown = (id: string) =>
  page.evaluate((id) => document.getElementById(id)!.textContent!, id);
const told = (id: string) => page.evaluate((id) => window.told[id]!, id);

/** Until the page has received so much; its clock stands still. */
async function arrived(id: string, numChars: number): Promise<void> {
  const polling = 5;
  await expect
    .poll(async () => (await told(id)).arrived.length, {
      interval: polling,
      timeout: 5000,
    })
    .toBe(numChars);
}

/** Writes bursts and moves the clock between them; what was on show every 20 ms. */
async function burst(
  id: string,
  stream: HandStream,
  text: string,
  times: number,
): Promise<string[]> {
  const seen: string[] = [];
  for (let number = 0; number < times; number++) {
    const before = (await told(id)).arrived.length;
    stream.write(event(text));
    await arrived(id, before + text.length);
    for (let step = 0; step < 5; step++) {
      seen.push(await shown(id));
      await page.clock.runFor(20);
    }
  }
  return seen;
}

const ended = (id: string) =>
  expect.poll(async () => (await told(id)).ended, {
    interval: 5,
    timeout: 5000,
  });

const WORDS = " one two three four";

describe.skipIf(!chrome)("a page whose clock the test moves", () => {
  beforeEach(opened);

  test("bursts come out evenly, the first of it at once, all soon after the end", async () => {
    const stream = await playing("a");
    const seen = await burst("a", stream, WORDS, 8);
    expect(seen[0]!.length).toBeGreaterThan(0);
    expect(new Set(seen).size).toBeGreaterThan(25);
    const whole = WORDS.repeat(8);
    for (const text of seen) expect(whole.startsWith(text)).toBe(true);
    stream.end(DONE);
    await arrived("a", whole.length);
    await expect
      .poll(async () => (await told("a")).numArrived, { interval: 5 })
      .toBe(9);
    await page.clock.runFor(170);
    expect(await shown("a")).toBe(whole);
    await ended("a").toBe("done");
  });

  test("reduced motion shows text as it arrives; the wish may change in the middle", async () => {
    await page.emulateMedia({ reducedMotion: "reduce" });
    const stream = await playing("a");
    stream.write(event(WORDS) + event(WORDS));
    await arrived("a", 2 * WORDS.length);
    expect(await shown("a")).toBe(WORDS.repeat(2));
    await page.emulateMedia({ reducedMotion: "no-preference" });
    await burst("a", stream, WORDS, 4);
    expect((await shown("a")).length).toBeLessThan(6 * WORDS.length);
    await page.emulateMedia({ reducedMotion: "reduce" });
    await expect.poll(() => shown("a"), { interval: 5 }).toBe(WORDS.repeat(6));
    stream.end(DONE);
    await ended("a").toBe("done");
  });

  test("a hidden tab gets everything without frames and timers, its end too", async () => {
    const stream = await playing("a");
    await burst("a", stream, WORDS, 3);
    expect((await shown("a")).length).toBeLessThan(3 * WORDS.length);
    await hide(true);
    expect(await shown("a")).toBe(WORDS.repeat(3));
    stream.write(event(WORDS));
    await arrived("a", 4 * WORDS.length);
    expect(await shown("a")).toBe(WORDS.repeat(4));
    stream.end(event(" end") + DONE);
    await ended("a").toBe("done");
    expect(await shown("a")).toBe(WORDS.repeat(4) + " end");
  });

  test("back in sight the pace is kept again", async () => {
    const stream = await playing("a");
    await hide(true);
    stream.write(event(WORDS));
    await arrived("a", WORDS.length);
    await hide(false);
    const seen = await burst("a", stream, WORDS, 5);
    expect(new Set(seen).size).toBeGreaterThan(15);
    stream.end(DONE);
    await page.clock.runFor(500);
    await ended("a").toBe("done");
  });

  test("a page that slept shows what it missed when it wakes, in order", async () => {
    const stream = await playing("a");
    await burst("a", stream, WORDS, 3);
    stream.write(event(WORDS));
    await arrived("a", 4 * WORDS.length);
    await page.clock.fastForward(60_000);
    await expect.poll(() => shown("a"), { interval: 5 }).toBe(WORDS.repeat(4));
    stream.end(DONE);
    await page.clock.runFor(200);
    await ended("a").toBe("done");
  });

  test("characters split between writes, and many events in one, come out the same", async () => {
    const text = "Ünïcödé 日本語 👨‍👩‍👧‍👦 🇪🇺 e\u0301 done";
    const bytes = new TextEncoder().encode(event(text) + event(text));
    const stream = await playing("a");
    for (const byte of bytes) {
      stream.write(Uint8Array.of(byte));
      await new Promise((resolve) => setImmediate(resolve)); // each a write of its own
    }
    await arrived("a", 2 * text.length);
    stream.end(event(text).repeat(20) + DONE);
    await arrived("a", 22 * text.length);
    for (let step = 0; step < 30; step++) {
      expect(await shown("a")).not.toContain("\ufffd");
      await page.clock.runFor(10);
    }
    await ended("a").toBe("done");
    expect(await shown("a")).toBe(text.repeat(22));
  });

  test("leaving closes the request, and nothing more is shown", async () => {
    const stream = await playing("a");
    await burst("a", stream, WORDS, 3);
    const before = await shown("a");
    await page.evaluate(() => window.leave("a"));
    expect(await stream.closed).toBe(false);
    await ended("a").toBe("AbortError");
    await page.clock.runFor(1000);
    expect(await shown("a")).toBe(before);
  });

  test("a cut connection is an error after the text that arrived", async () => {
    const stream = await playing("a");
    await burst("a", stream, WORDS, 2);
    stream.cut();
    await expect
      .poll(async () => (await page.clock.runFor(50), (await told("a")).ended))
      .toBe("ConnectionCutError");
    expect(await shown("a")).toBe(WORDS.repeat(2));
    expect(complaints.splice(0).join()).toContain("ERR_");
  });

  test("two streams on a page keep apart", async () => {
    const [a, b] = [await playing("a"), await playing("b", "playReact")];
    const [one, two] = [" alpha beta gamma", " vier fünf sechs"];
    for (let number = 0; number < 5; number++) {
      a.write(event(one));
      b.write(event(two));
      await arrived("a", one.length * (number + 1));
      await arrived("b", two.length * (number + 1));
      await page.clock.runFor(80);
    }
    a.end(DONE);
    await page.clock.runFor(200);
    await ended("a").toBe("done");
    expect((await told("b")).ended).toBe("");
    b.end(DONE);
    await expect
      .poll(async () => (await page.clock.runFor(50), (await told("b")).ended))
      .toBe("done");
    expect([await shown("a"), await shown("b")]).toEqual([
      one.repeat(5),
      two.repeat(5),
    ]);
  });

  test("React in strict mode: even, whole, and nothing left after unmounting", async () => {
    const stream = await playing("r", "playReact");
    const seen = await burst("r", stream, WORDS, 6);
    expect(new Set(seen).size).toBeGreaterThan(15);
    const { renders, arrived: all } = await told("r");
    for (const text of renders) expect(all.startsWith(text)).toBe(true);
    await page.evaluate(() => window.leave("r"));
    expect(await stream.closed).toBe(false);
    const { renders: after } = await told("r");
    await page.clock.runFor(1000);
    expect((await told("r")).renders.length).toBe(after.length);
  });

  test("React: all is there soon after the end", async () => {
    const stream = await playing("r", "playReact");
    await burst("r", stream, WORDS, 4);
    stream.end(DONE);
    await expect
      .poll(async () => (await page.clock.runFor(50), (await told("r")).ended))
      .toBe("done");
    expect(await shown("r")).toBe(WORDS.repeat(4));
  });

  test("model text is text", async () => {
    const stream = await playing("a");
    const html = '<img src="x" onerror="window.broken = true"><b>bold</b>';
    stream.end(event(html) + DONE);
    await arrived("a", html.length);
    await page.clock.runFor(500);
    await ended("a").toBe("done");
    expect(await shown("a")).toBe(html);
    expect(
      await page.evaluate(() => document.querySelectorAll("#a *").length),
    ).toBe(0);
    expect(await page.evaluate(() => "broken" in window)).toBe(false);
  });

  test("a recording of a real vLLM is replayed, in writes of any size", async () => {
    const reads = recording("ngram-k4.chat-2");
    const body = Buffer.from(reads.map(({ data }) => data).join(""));
    const stream = await playing("a");
    for (let at = 0, number = 0; at < body.length; number++) {
      const size = [1, 7, 100, 5000][number % 4]!;
      stream.write(body.subarray(at, at + size));
      at += size;
      if (number % 50 === 0) await page.clock.runFor(40);
    }
    stream.end();
    await expect
      .poll(async () => (await page.clock.runFor(50), (await told("a")).ended))
      .toBe("done");
    const { arrived: all } = await told("a");
    expect(all.length).toBeGreaterThan(300);
    expect(await shown("a")).toBe(all);
  });
});

describe.skipIf(!chrome)(
  "through a real gateway with a simulated worker",
  () => {
    let fleet: Fleet;

    beforeAll(async () => {
      if (chrome) fleet = await startFleet(site.origin);
    }, 30_000);

    afterAll(() => fleet?.stop());

    const asking = { max_tokens: 40, seed: 3 };

    async function direct(): Promise<string> {
      const messages = [{ role: "user", content: "Tell me about rivers." }];
      const answer = await fetch(`${fleet.worker}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "smollm2", messages, ...asking }),
      });
      return (await answer.json()).choices[0].message.content;
    }

    /** Lengths of the text on show, frame by frame. */
    async function watched(body: object): Promise<number[]> {
      await page.goto(address);
      await page.waitForFunction(() => !!window.play);
      return page.evaluate(
        ([base, body]) =>
          new Promise<number[]>((resolve) => {
            const lengths: number[] = [];
            window.play("a", base, body);
            const look = () => {
              lengths.push(document.getElementById("a")!.textContent!.length);
              if (window.told["a"]!.ended) resolve(lengths);
              else requestAnimationFrame(look);
            };
            look();
          }),
        [fleet.gateway, body] as const,
      );
    }

    test("the text is the worker's own, and is shown in many more steps than it came in", async () => {
      const [lengths, answer] = await Promise.all([watched(asking), direct()]);
      const { arrived: all, ended: how, numArrived } = await told("a");
      expect(how).toBe("done");
      expect(await shown("a")).toBe(all);
      expect(all).toBe(answer);
      expect(new Set(lengths).size).toBeGreaterThan(numArrived);
    });

    test("leaving stops the worker", async () => {
      await page.goto(address);
      await page.waitForFunction(() => !!window.play);
      await page.evaluate(
        (base) =>
          window.play("a", base, { min_tokens: 1000, max_tokens: 1000 }),
        fleet.gateway,
      );
      await expect
        .poll(async () => (await told("a")).numArrived)
        .toBeGreaterThan(3);
      await page.evaluate(() => window.leave("a"));
      await ended("a").toBe("AbortError");
      const running = async () =>
        /vllm:num_requests_running\{[^}]*\} (\S+)/.exec(
          await (await fetch(`${fleet.worker}/metrics`)).text(),
        )?.[1];
      await expect
        .poll(async () => Number(await running()), { timeout: 5000 })
        .toBe(0);
    });
  },
);

/** As a tab that is not seen: the page says so, and paints no frame. */
async function hide(hidden: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    const state = hidden ? "hidden" : "visible";
    Object.defineProperty(document, "visibilityState", {
      value: state,
      configurable: true,
    });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
}
