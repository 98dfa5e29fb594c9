/**
 * Whether pacing is of use at present: not in a tab that nobody sees (whose timers the browser slows
 * to one a second and less), nor for a reader who asked for reduced motion (WCAG 2.3.3).
 */

export interface Motion {
  readonly wanted: boolean;
  /** Calls back when `wanted` may have changed; what is returned ends that. */
  watch(changed: () => void): () => void;
}

export interface MotionOptions {
  /** Paces in hidden tabs too; usually text then comes through as it arrives. */
  readonly paceWhenHidden?: boolean | undefined;
  /** Paces in spite of `prefers-reduced-motion: reduce`. */
  readonly paceWithReducedMotion?: boolean | undefined;
}

/** Of the page that we are on, if any: without a document, as in a server, it is always wanted. */
export function pageMotion({ paceWhenHidden, paceWithReducedMotion }: MotionOptions): Motion {
  const page = globalThis as Partial<typeof globalThis>;
  const watched = paceWhenHidden ? undefined : page.document;
  const reduced = paceWithReducedMotion
    ? undefined
    : page.matchMedia?.("(prefers-reduced-motion: reduce)");
  return {
    get wanted() {
      return !reduced?.matches && watched?.visibilityState !== "hidden";
    },
    watch(changed) {
      watched?.addEventListener("visibilitychange", changed);
      reduced?.addEventListener("change", changed);
      return () => {
        watched?.removeEventListener("visibilitychange", changed);
        reduced?.removeEventListener("change", changed);
      };
    },
  };
}
