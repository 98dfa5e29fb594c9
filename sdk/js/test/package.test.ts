/** What is published: packed, installed in an empty project, used from there. And its weight. */

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { bundledBytes, CORE } from "../scripts/size.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const empty = mkdtempSync(join(tmpdir(), "paceline-js-"));

function run(program: string, args: string[], cwd: string): string {
  try {
    return execFileSync(program, args, {
      cwd,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  } catch (error) {
    throw new Error(`${program}: ${(error as { stdout: string }).stdout}`, { cause: error });
  }
}

beforeAll(() => {
  if (!existsSync(join(ROOT, "dist", "index.js"))) throw new Error("npm run build comes first");
  const [packed] = JSON.parse(run("npm", ["pack", "--json", "--pack-destination", empty], ROOT));
  writeFileSync(join(empty, "package.json"), '{"private": true}');
  run("npm", ["install", "--offline", "--no-audit", "--no-fund", packed.filename], empty);
}, 60_000);

afterAll(() => rmSync(empty, { recursive: true, force: true }));

/** By subpath: what to import, and a use of it that prints `used`. */
const USES: Record<string, { names: string; code: string; used: string }> = {
  paceline: {
    names: "SseParser, Pacer, smooth, SmoothStream, Client",
    code: `
      const parser = new SseParser();
      const [event] = parser.feed("data: hello\\n\\n");
      const pacer = new Pacer("silky");
      pacer.push(event.data, 0, { numTokens: 1 });
      console.log(pacer.take(0)[0].text, typeof smooth, typeof SmoothStream, typeof Client);`,
    used: "hello function function function\n",
  },
  "paceline/core": {
    names: "SseParser, Pacer",
    code: `
      const [event] = new SseParser().feed("data: hello\\n\\n");
      const pacer = new Pacer({ drainMs: 0 });
      pacer.push(event.data, 0, { numTokens: 1 });
      console.log(pacer.take(0)[0].text);`,
    used: "hello\n",
  },
  "paceline/ai-sdk": {
    names: "smoothStream",
    code: `
      const { readable, writable } = smoothStream({ delayInMs: null })({ tools: {} });
      const writer = writable.getWriter();
      void writer.write({ type: "text-delta", id: "1", text: "hello" });
      readable.getReader().read().then(({ value }) => console.log(value.text));`,
    used: "hello\n",
  },
  "paceline/react": {
    names: "useSmoothText",
    code: `
      const Message = () => createElement("p", null, useSmoothText("hello").text);
      console.log(renderToString(createElement(Message)));`,
    used: "<p>hello</p>\n",
  },
  "paceline/inspector": {
    names: "record",
    code: "console.log(record({ keepText: true }).recordings.length);",
    used: "0\n",
  },
  "paceline/dom": {
    names: "playInto",
    code: "console.log(playInto.name);",
    used: "playInto\n",
  },
};

/** React is the page's own; nothing but `paceline/react` needs it. */
const REACT = {
  mjs: `import { createElement } from "react";
    import { renderToString } from "react-dom/server";\n`,
  cjs: `const { createElement } = require("react");
    const { renderToString } = require("react-dom/server");\n`,
};

function installReact(): void {
  for (const name of ["react", "react-dom", "scheduler"]) {
    const to = join(empty, "node_modules", name);
    if (!existsSync(to)) symlinkSync(join(ROOT, "node_modules", name), to);
  }
}

describe.each(Object.entries(USES))("%s", (path, { names, code, used }) => {
  const withReact = path === "paceline/react";
  const prelude = (kind: "mjs" | "cjs") => (withReact ? REACT[kind] : "");
  const name = path.replace("/", "-");

  beforeAll(() => {
    if (withReact) installReact();
  });

  test("is imported as a module", () => {
    const file = `${name}.mjs`;
    const text = `${prelude("mjs")}import { ${names} } from "${path}";${code}`;
    writeFileSync(join(empty, file), text);
    expect(run("node", [file], empty)).toBe(used);
  });

  test("is required by CommonJS", () => {
    const file = `${name}.cjs`;
    writeFileSync(
      join(empty, file),
      `${prelude("cjs")}const { ${names} } = require("${path}");${code}`,
    );
    expect(run("node", [file], empty)).toBe(used);
  });
});

test("types are found both ways, on every path", () => {
  const code = `import { Pacer, type PacerStats } from "paceline";
    import { Pacer as CorePacer, type PacerOptions } from "paceline/core";
    import { smoothStream } from "paceline/ai-sdk";
    import { playInto } from "paceline/dom";
    import { Inspector, record } from "paceline/inspector";
    import { useSmoothText } from "paceline/react";
    export const stats: PacerStats = new Pacer({ unit: "word" }).stats;
    export const core = (options: Partial<PacerOptions>) => new CorePacer(options);
    export const text: string = useSmoothText("hello", { streamKey: 1 }).text;
    export const all = [smoothStream({ chunking: "line" }), playInto, Inspector, record];
    // @ts-expect-error no such unit
    new Pacer({ unit: "line" });
    // @ts-expect-error the core knows no preset by name
    new CorePacer("silky");
    // @ts-expect-error no such chunking
    smoothStream({ chunking: "letter" });\n`;
  for (const name of ["use.mts", "use.cts"]) writeFileSync(join(empty, name), code);
  const options = { module: "nodenext", target: "es2022", strict: true, noEmit: true };
  const config = JSON.stringify({ compilerOptions: options, files: ["use.mts", "use.cts"] });
  writeFileSync(join(empty, "tsconfig.json"), config);
  run(join(ROOT, "node_modules", ".bin", "tsc"), [], empty);
}, 30_000);

test("the README's examples hold for the types", () => {
  const free = [
    "model",
    "messages",
    "element",
    "response",
    "stream",
    "signal",
    "url",
    "streamText",
  ];
  const globals = free.map((name) => `declare const ${name}: any;\n`).join("");
  const chunk = "{ choices: { delta: { content?: string | null } }[] }";
  const create = `create(body: object): Promise<AsyncIterable<${chunk}>>`;
  const openai = `declare const openai: { chat: { completions: { ${create} } } };\n`;
  writeFileSync(join(empty, "globals.d.ts"), globals + openai);
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, block]) => block!);
  expect(blocks.length).toBeGreaterThanOrEqual(6);
  for (const [at, block] of blocks.entries()) writeFileSync(join(empty, `readme-${at}.mts`), block);
  const files = ["globals.d.ts", ...blocks.map((_, at) => `readme-${at}.mts`)];
  const lib = ["es2022", "dom", "dom.iterable", "dom.asynciterable"];
  const options = { module: "nodenext", target: "es2022", lib, strict: true, noEmit: true };
  const config = join(empty, "tsconfig.readme.json");
  writeFileSync(config, JSON.stringify({ compilerOptions: { ...options, types: [] }, files }));
  run(join(ROOT, "node_modules", ".bin", "tsc"), ["-p", config], empty);
}, 30_000);

test("the hook says that it is for clients, first of all", () => {
  for (const file of ["react.js", "react.cjs"])
    expect(readFileSync(join(ROOT, "dist", file), "utf8")).toMatch(/^"use client"/);
});

test("it holds what it says and brings no other package", () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  expect(manifest.dependencies).toBeUndefined();
  expect(manifest.peerDependenciesMeta).toEqual({ react: { optional: true } });
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

test("the core stays within 3 KiB", async () => {
  // 3.0 kB, and room for a zlib that packs otherwise.
  const { gzipped } = await bundledBytes(CORE);
  expect(gzipped).toBeLessThanOrEqual(3 * 1024);
});

test("a page that takes the parser alone pays for it alone", async () => {
  const { gzipped } = await bundledBytes('export { SseParser } from "./src/index";');
  expect(gzipped).toBeLessThanOrEqual(800);
});
