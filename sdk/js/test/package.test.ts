/** What is published: packed, installed in an empty project, used from there. And its weight. */

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, expect, test } from "vitest";

import { bundledBytes, CORE } from "../scripts/size.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const empty = mkdtempSync(join(tmpdir(), "paceline-js-"));

function run(program: string, args: string[], cwd: string): string {
  return execFileSync(program, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

beforeAll(() => {
  if (!existsSync(join(ROOT, "dist", "index.js"))) throw new Error("npm run build comes first");
  const [packed] = JSON.parse(run("npm", ["pack", "--json", "--pack-destination", empty], ROOT));
  writeFileSync(join(empty, "package.json"), '{"private": true}');
  run("npm", ["install", "--offline", "--no-audit", "--no-fund", packed.filename], empty);
}, 60_000);

afterAll(() => rmSync(empty, { recursive: true, force: true }));

const USE = `
  const parser = new SseParser();
  const [event] = parser.feed("data: hello\\n\\n");
  const pacer = new Pacer("silky");
  pacer.push(event.data, 0, { numTokens: 1 });
  console.log(pacer.take(0)[0].text, typeof smooth, typeof SmoothStream, typeof Client);
`;
const USED = "hello function function function\n";

test("it is imported as a module", () => {
  const names = "SseParser, Pacer, smooth, SmoothStream, Client";
  writeFileSync(join(empty, "use.mjs"), `import { ${names} } from "paceline";${USE}`);
  expect(run("node", ["use.mjs"], empty)).toBe(USED);
});

test("it is required by CommonJS", () => {
  const names = "SseParser, Pacer, smooth, SmoothStream, Client";
  writeFileSync(join(empty, "use.cjs"), `const { ${names} } = require("paceline");${USE}`);
  expect(run("node", ["use.cjs"], empty)).toBe(USED);
});

test("its types are found both ways", () => {
  const code = `import { Pacer, type PacerStats } from "paceline";
    export const stats: PacerStats = new Pacer({ unit: "word" }).stats;
    // @ts-expect-error no such unit
    new Pacer({ unit: "line" });\n`;
  for (const name of ["use.mts", "use.cts"]) writeFileSync(join(empty, name), code);
  const options = { module: "nodenext", target: "es2022", strict: true, noEmit: true };
  const config = JSON.stringify({ compilerOptions: options, files: ["use.mts", "use.cts"] });
  writeFileSync(join(empty, "tsconfig.json"), config);
  run(join(ROOT, "node_modules", ".bin", "tsc"), [], empty);
}, 30_000);

test("it holds what it says and brings no other package", () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  expect(manifest.dependencies).toBeUndefined();
  expect(manifest.sideEffects).toBe(false);
  const project = readFileSync(join(ROOT, "..", "..", "pyproject.toml"), "utf8");
  expect(project).toContain(`version = "${manifest.version}"`);
});

test("the lock names no registry", () => {
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  const packages = Object.entries<{ resolved?: string; integrity?: string }>(lock.packages);
  for (const [name, { resolved, integrity }] of packages) {
    expect(resolved).toBeUndefined();
    if (name) expect(integrity).toMatch(/^sha512-/);
  }
});

test("the core stays small", async () => {
  const { gzipped } = await bundledBytes(CORE);
  expect(gzipped).toBeLessThanOrEqual(4800);
});

test("a page that takes the parser alone pays for it alone", async () => {
  const { gzipped } = await bundledBytes('export { SseParser } from "./src/index";');
  expect(gzipped).toBeLessThanOrEqual(1000);
});
