/** Pacers by the names of presets and units, their options checked. */

import { type CoreOptions, DEFAULTS, type PacerOptions, type Unit } from "./options.js";
import { Markup } from "./markup.js";
import { Pacer as CorePacer } from "./pacer.js";
import { Words } from "./words.js";

export type Preset = "realtime" | "balanced" | "silky" | "off";

/** Options that differ from the usual or from a preset; or the name of a preset. */
export type Pacing = (Partial<PacerOptions> & { readonly preset?: Preset }) | Preset;

const UNITS: readonly Unit[] = ["grapheme", "token", "word"];

const BALANCED: PacerOptions = { ...DEFAULTS, unit: "token", enabled: true };

export const PRESETS: Readonly<Record<Preset, PacerOptions>> = {
  realtime: { ...BALANCED, maxDelayMs: 150, minDelayMs: 50 },
  balanced: BALANCED,
  silky: { ...BALANCED, maxDelayMs: 600, minDelayMs: 200 },
  off: { ...BALANCED, enabled: false },
};

/** A `Pacer` that takes what `optionsFor` does. */
export class Pacer extends CorePacer {
  constructor(pacing?: Pacing) {
    super(optionsFor(pacing));
  }
}

/** Whole options. Throws RangeError for a preset that is none and values that no pacer could keep. */
export function optionsFor(pacing: Pacing = {}): PacerOptions & Pick<CoreOptions, "cuts"> {
  const { preset = "balanced", ...own } = typeof pacing === "string" ? { preset: pacing } : pacing;
  if (!Object.hasOwn(PRESETS, preset))
    throw new RangeError(`no preset '${preset}'; there are ${Object.keys(PRESETS).join(", ")}`);
  const options: Record<string, unknown> = { ...PRESETS[preset] };
  for (const name in options) {
    const value: unknown = (own as Record<string, unknown>)[name] ?? options[name];
    if (name.endsWith("Ms") && !((value as number) >= 0 && (value as number) < Infinity))
      throw new RangeError(`${name} must be 0 or more milliseconds, not ${value}`);
    options[name] = value;
  }
  const unit = options["unit"] as Unit;
  if (!UNITS.includes(unit))
    throw new RangeError(`unit must be one of ${UNITS.join(", ")}, not ${unit}`);
  const whole = options as unknown as PacerOptions;
  return { ...whole, cuts: () => (unit === "word" ? new Words() : new Markup()) };
}
