/** The browser that is there: `$CHROME`, chromium or google-chrome. None is ever downloaded. */

import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

import { type Browser, chromium } from "playwright-core";

const NAMES = [
  "chromium",
  "chromium-browser",
  "google-chrome",
  "google-chrome-stable",
];

/** Its path; undefined if there is none. Throws Error where $CHROME names none. */
export function chromePath(env = process.env): string | undefined {
  const named = env["CHROME"];
  if (named && !existsSync(named))
    throw new Error(`CHROME is ${named}, which is not there`);
  if (named) return named;
  const folders = (env["PATH"] ?? "").split(delimiter);
  return NAMES.flatMap((name) =>
    folders.map((folder) => join(folder, name)),
  ).find(existsSync);
}

/**
 * The browser's path for tests; undefined means to skip, which is said. Under CI that would be a
 * test suite that tests nothing: then it throws.
 */
export function chromeOrSkip(): string | undefined {
  const path = chromePath();
  if (path) return path;
  const said = "no browser here (apt-get install chromium, or say CHROME=...)";
  if (process.env["CI"] === "true") throw new Error(said);
  console.warn(`\n*** ${said}: THE BROWSER TESTS ARE SKIPPED ***\n`);
  return;
}

export function launch(executablePath: string): Promise<Browser> {
  return chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
}
