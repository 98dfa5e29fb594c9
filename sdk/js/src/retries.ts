/**
 * When a request is asked again. Pure: the caller waits.
 *
 * Only before the first byte of an answer, and only for what another try may mend: no connection,
 * and answers that say "later". A server's `Retry-After` is obeyed; one that asks for more patience
 * than `longestMs` is not waited for, and its error is the result.
 */

import { ApiError, ConnectError } from "./errors.js";

/** Up to `most` further tries, after `firstMs`, twice that, … less up to a half by chance. */
export interface Retries {
  readonly most: number;
  readonly firstMs: number;
  readonly longestMs: number;
}

export const RETRIES: Retries = { most: 2, firstMs: 500, longestMs: 30_000 };

const WORTH_ANOTHER_TRY = [408, 409, 429, 502, 503, 504];

/** How long to wait after try `number` (from 0) failed so; undefined to let it be. */
export function retryAfterMs(
  { most, firstMs, longestMs }: Retries,
  number: number,
  error: unknown,
  random: () => number,
): number | undefined {
  if (number >= most) return;
  if (error instanceof ApiError) {
    if (!WORTH_ANOTHER_TRY.includes(error.status)) return;
    if (error.retryAfterS !== null) {
      const askedMs = error.retryAfterS * 1000;
      return askedMs <= longestMs ? askedMs : undefined;
    }
  } else if (!(error instanceof ConnectError)) return;
  return Math.min(longestMs, firstMs * 2 ** number) * (1 - random() / 2);
}
