/** Prints what the core weighs on a page: the parser and the pacer, bundled, minified, gzipped. */

import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * Bytes of what `contents` imports from the sources, after a bundler and gzip.
 *
 * @param {string} contents
 */
export async function bundledBytes(contents) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root, loader: "ts" },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    write: false,
  });
  const bundle = outputFiles[0]?.contents ?? new Uint8Array();
  return { minified: bundle.length, gzipped: gzipSync(bundle, { level: 9 }).length };
}

export const CORE = 'export { SseParser } from "./src/sse"; export { Pacer } from "./src/pacer";';

if (process.argv[1] === fileURLToPath(import.meta.url))
  console.log(JSON.stringify(await bundledBytes(CORE)));
