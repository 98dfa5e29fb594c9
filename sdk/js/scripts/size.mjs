/** Prints what parts of the package weigh on a page: bundled, minified, gzipped. */

import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * Bytes of what `contents` imports from the sources, or from a folder's packages, after a bundler
 * and gzip.
 *
 * @param {string} contents
 */
export async function bundledBytes(contents, resolveDir = root) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir, loader: "ts" },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    write: false,
    external: ["react", "react-dom"],
  });
  const bundle = outputFiles[0]?.contents ?? new Uint8Array();
  return { minified: bundle.length, gzipped: gzipSync(bundle, { level: 9 }).length };
}

/** What a page takes that asks for no more than to read a stream and to smooth it. */
export const CORE = 'export { SseParser, Pacer } from "./src/core";';

/** What a page may take; React is there anyway. */
const TAKEN = {
  "paceline/core": CORE,
  "SseParser alone": 'export { SseParser } from "./src/index";',
  "SseParser, Pacer": 'export { SseParser, Pacer } from "./src/index";',
  smooth: 'export { smooth } from "./src/index";',
  "paceline/dom": 'export { playInto } from "./src/dom";',
  "paceline/react": 'export { useSmoothText } from "./src/react";',
  "paceline/ai-sdk": 'export { smoothStream } from "./src/ai-sdk";',
};

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const [name, contents] of Object.entries(TAKEN))
    console.log(name, JSON.stringify(await bundledBytes(contents)));
