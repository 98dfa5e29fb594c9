/** The demo page, as it is served: raw beside smooth, complete, without complaints. */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { chromeOrSkip, launch } from "./chrome.js";
import { ended, type Fleet, said, startFleet } from "./fleet.js";

const chrome = chromeOrSkip();
const SERVE = fileURLToPath(
  new URL("../../web_demo/serve.mjs", import.meta.url),
);
/** Where to put pictures of it, for whoever wants to look. */
const PICTURES = process.env["DEMO_PICTURES"];

describe.skipIf(!chrome)("the demo page", () => {
  let browser: Browser;
  let fleet: Fleet;
  let server: ChildProcess;
  let address: string;

  beforeAll(async () => {
    if (!chrome) return;
    [browser, fleet] = await Promise.all([
      launch(chrome),
      startFleet("http://127.0.0.1"),
    ]);
    server = spawn(
      process.execPath,
      [SERVE, "--port", "0", "--gateway", fleet.gateway],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    address = await said(server, /(http\S+)/);
  }, 30_000);

  afterAll(async () => {
    await browser?.close();
    if (server) await ended(server);
    await fleet?.stop();
  });

  test.each(["gateway: m", "made here: 4 tokens every 150 ms"])(
    "shows a stream, %s",
    async (from) => {
      const page = await browser.newPage({
        viewport: { width: 1000, height: 760 },
      });
      const complaints: string[] = [];
      page.on("pageerror", (error) => complaints.push(String(error)));
      page.on(
        "console",
        (one) => one.type() === "error" && complaints.push(one.text()),
      );
      await page.goto(address);
      await page.selectOption("[name=source]", from);
      await page.click("text=start");
      await expect
        .poll(async () => (await page.textContent("#smooth"))!.length, {
          timeout: 10_000,
        })
        .toBeGreaterThan(150);
      if (PICTURES) {
        mkdirSync(PICTURES, { recursive: true });
        await page.waitForTimeout(1500);
        await page.screenshot({
          path: `${PICTURES}/${from.split(":", 1)[0]}.png`,
        });
      }
      const [raw, smooth] = await page.evaluate(() =>
        ["raw", "smooth"].map(
          (id) => document.getElementById(id)!.textContent!,
        ),
      );
      expect(raw!.startsWith(smooth!)).toBe(true);
      const [text, curves] = await Promise.all(
        ["#smooth", "#curves > *"].map((one) =>
          page.locator(one).boundingBox(),
        ),
      );
      expect(curves!.y + curves!.height).toBeLessThanOrEqual(text!.y);
      await page.click("#stop");
      await expect.poll(() => page.textContent("#said")).toBe("Stopped.");
      expect(await page.locator("#curves polyline").count()).toBe(2);
      expect(complaints).toEqual([]);
      await page.close();
    },
  );

  test("says that the gateway which it was told of is not there", async () => {
    const lone = spawn(
      process.execPath,
      [SERVE, "--port", "0", "--gateway", "http://127.0.0.1:9"],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    const page = await browser.newPage();
    await page.goto(await said(lone, /(http\S+)/));
    await expect
      .poll(() => page.textContent("#said"))
      .toBe("no gateway answers at http://127.0.0.1:9");
    await page.close();
    await ended(lone);
  });

  test.each([
    [["--port", "x"], "--port x: must be 0 to 65535"],
    [["--gateway", "127.0.0.1:8080"], "must begin with http://"],
    [["--gatway", "x"], "Unknown option '--gatway'"],
    [["--port", "taken"], "is in use; choose another"],
  ])("names a mistake, %j, in one line", (options, says) => {
    const { port } = new URL(address);
    const args = options.map((one) => (one === "taken" ? port : one));
    const ran = spawnSync(process.execPath, [SERVE, ...args], {
      encoding: "utf8",
      timeout: 10_000,
    });
    expect(ran.status).toBe(1);
    expect(ran.stderr).toContain(says);
    expect(ran.stderr.trim().split("\n")).toHaveLength(1);
  });

  test("serves what it is made of, and nothing else", async () => {
    for (const path of [
      "Makefile",
      "sdk/js/package.json",
      "web_demo/../Makefile",
      "web_demo/%2e%2e/Makefile",
    ])
      expect((await fetch(address + path)).status).toBe(404);
    expect((await fetch(`${address}sdk/js/dist/index.js`)).status).toBe(200);
  });
});
