/** What a pacer can be told. Times are milliseconds. */

/** What is shown at a time: tokens where their number is known (else graphemes), or words. */
export type Unit = "grapheme" | "token" | "word";

const UNITS: readonly Unit[] = ["grapheme", "token", "word"];

/**
 * `maxDelayMs` bounds the delay that is ever added; the pacer spends what the stream's bursts ask
 * for, between `minDelayMs` and that. `drainMs` after the finish all is shown. `holdMs` bounds how
 * long an unfinished character, escape sequence or fence waits for its rest. `enabled: false`
 * passes everything on as it comes.
 */
export interface PacerOptions {
  readonly maxDelayMs: number;
  readonly minDelayMs: number;
  readonly drainMs: number;
  readonly holdMs: number;
  readonly unit: Unit;
  readonly enabled: boolean;
}

export type Preset = "realtime" | "balanced" | "silky" | "off";

/** Options that differ from the usual or from a preset; or the name of a preset. */
export type Pacing = (Partial<PacerOptions> & { readonly preset?: Preset }) | Preset;

const BALANCED: PacerOptions = {
  maxDelayMs: 400,
  minDelayMs: 100,
  drainMs: 150,
  holdMs: 100,
  unit: "token",
  enabled: true,
};

export const PRESETS: Readonly<Record<Preset, PacerOptions>> = {
  realtime: { ...BALANCED, maxDelayMs: 150, minDelayMs: 50 },
  balanced: BALANCED,
  silky: { ...BALANCED, maxDelayMs: 600, minDelayMs: 200 },
  off: { ...BALANCED, enabled: false },
};

/** Whole options. Throws RangeError for a preset that is none and values that no pacer could keep. */
export function optionsFor(pacing: Pacing = {}): PacerOptions {
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
  if (!UNITS.includes(options["unit"] as Unit))
    throw new RangeError(`unit must be one of ${UNITS.join(", ")}, not ${options["unit"]}`);
  return options as unknown as PacerOptions;
}
