/** Builds `bench/NAME.ts` and runs it: `node scripts/bench.mjs NAME`. */

import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const [, , name = ""] = process.argv;
const root = fileURLToPath(new URL("..", import.meta.url));
const outfile = `${root}/dist-bench/${name}.mjs`;
await build({
  entryPoints: [`${root}/bench/${name}.ts`],
  outfile,
  bundle: true,
  packages: "external",
  platform: "node",
  format: "esm",
  target: "es2022",
  external: ["../scripts/*"],
});
process.env["NODE_ENV"] ??= "production"; // React is measured as pages have it
await import(outfile);
