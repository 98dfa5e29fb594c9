/** The cases that every language passes: the very files that the Python tests read. */

import { readFileSync } from "node:fs";

const FOLDER = new URL("../../../tests/vectors/", import.meta.url);

/** The cases of one file, under their names. */
export function cases<Case extends { name: string }>(file: string): [string, Case][] {
  const vectors = JSON.parse(readFileSync(new URL(file, FOLDER), "utf8")) as { cases: Case[] };
  return vectors.cases.map((one) => [one.name, one]);
}
