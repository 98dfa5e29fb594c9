import { fileURLToPath } from "node:url";

import { defineConfig } from "vitest/config";

const own = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** The tests in a browser lie with the project's others; what they import is this package's. */
export default defineConfig(({ mode }) => ({
  root: own("../../tests/browser"),
  resolve: {
    alias: {
      "playwright-core": own("node_modules/playwright-core"),
      esbuild: own("node_modules/esbuild"),
    },
  },
  test: {
    include: [mode === "bench" ? "**/*.bench.ts" : "**/*.test.ts"],
    sequence: { shuffle: mode !== "bench" },
    testTimeout: 20_000,
  },
}));
