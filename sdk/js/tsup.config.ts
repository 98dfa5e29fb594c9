import { readFile, writeFile } from "node:fs/promises";

import { defineConfig } from "tsup";

const CLIENT = '"use client";\n';

export default defineConfig({
  entry: ["index", "core", "ai-sdk", "react", "dom", "inspector"].map((name) => `src/${name}.ts`),
  format: ["esm", "cjs"],
  target: "es2022",
  dts: true,
  clean: true,
  splitting: true,
  silent: true,
  async onSuccess() {
    // A directive counts in the first place only, and the CommonJS build writes before it.
    const required = await readFile("dist/react.cjs", "utf8");
    await writeFile("dist/react.cjs", CLIENT + required);
  },
});
