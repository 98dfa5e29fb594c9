/**
 * Everything the SDK throws.
 *
 *     PacelineError
 *     ├── ApiError                an answer that refuses: `status`, `type`, `code`, `param`, …
 *     │   ├── BadRequestError     400, 413, 415, 422: the request is wrong
 *     │   ├── AuthenticationError 401, 403
 *     │   ├── NotFoundError       404: no such model or address
 *     │   ├── OverloadedError     429, 503: come back later (`retryAfterS`)
 *     │   └── ServerError         every other 5xx
 *     ├── ConnectError            no answer at all: unreachable, or too slow
 *     └── StreamError             a stream that began and did not end well; the text came first
 *         ├── IncompleteStreamError   it ended, but a choice has no finish
 *         ├── ConnectionCutError      the connection broke
 *         ├── StreamErrorEvent        the server said what is wrong, within the stream
 *         └── BadStreamError          an event that cannot be read
 *
 * A request that the caller aborts rejects with the reason of the signal, as `fetch` does.
 */

import { isObject } from "./json.js";

export interface ErrorDetails {
  readonly requestId?: string | null;
  readonly cause?: unknown;
}

/** The root. `requestId` names the request in the gateway's records, where there is one. */
export class PacelineError extends Error {
  override readonly name: string = "PacelineError";
  readonly requestId: string | null;

  constructor(message: string, { requestId = null, cause }: ErrorDetails = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.requestId = requestId;
  }
}

export interface ApiErrorDetails extends ErrorDetails {
  readonly status: number;
  readonly type?: string | null;
  readonly code?: string | number | null;
  readonly param?: string | null;
  readonly retryAfterS?: number | null;
}

/** The server refused, and said why in OpenAI's form. */
export class ApiError extends PacelineError {
  override readonly name: string = "ApiError";
  readonly status: number;
  readonly type: string | null;
  readonly code: string | number | null;
  readonly param: string | null;
  /** Seconds after which another try may do. */
  readonly retryAfterS: number | null;

  constructor(message: string, details: ApiErrorDetails) {
    super(message, details);
    this.status = details.status;
    this.type = details.type ?? null;
    this.code = details.code ?? null;
    this.param = details.param ?? null;
    this.retryAfterS = details.retryAfterS ?? null;
  }
}

/** The request is wrong. */
export class BadRequestError extends ApiError {
  override readonly name: string = "BadRequestError";
}

/** The key is missing, unknown or not allowed this. */
export class AuthenticationError extends ApiError {
  override readonly name: string = "AuthenticationError";
}

/** No such model or address. */
export class NotFoundError extends ApiError {
  override readonly name: string = "NotFoundError";
}

/** Too much at this time. */
export class OverloadedError extends ApiError {
  override readonly name: string = "OverloadedError";
}

/** The server failed. */
export class ServerError extends ApiError {
  override readonly name: string = "ServerError";
}

/** No answer at all. */
export class ConnectError extends PacelineError {
  override readonly name: string = "ConnectError";
}

/** A stream that began and did not end well. All text that arrived was given out before. */
export class StreamError extends PacelineError {
  override readonly name: string = "StreamError";
}

/** The stream ended, but a choice has no finish: its text is cut short. */
export class IncompleteStreamError extends StreamError {
  override readonly name: string = "IncompleteStreamError";
}

/** The connection broke within the stream. */
export class ConnectionCutError extends StreamError {
  override readonly name: string = "ConnectionCutError";
}

/** An error event within the stream. `error` is what it said. */
export class StreamErrorEvent extends StreamError {
  override readonly name: string = "StreamErrorEvent";
  readonly error: Readonly<Record<string, unknown>>;
  readonly type: string | null;
  readonly code: unknown;

  constructor(message: string, error: Readonly<Record<string, unknown>>, details?: ErrorDetails) {
    super(message, details);
    this.error = error;
    this.type = text(error["type"]);
    this.code = error["code"] ?? null;
  }
}

/** An event that is no JSON of the kind we asked for. Never skipped: what it said is lost. */
export class BadStreamError extends StreamError {
  override readonly name: string = "BadStreamError";
}

const BY_STATUS: Readonly<Record<number, typeof ServerError>> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: AuthenticationError,
  404: NotFoundError,
  413: BadRequestError,
  415: BadRequestError,
  422: BadRequestError,
  429: OverloadedError,
  503: OverloadedError,
};

/** The error that an answer with this status and body (parsed, if it was JSON) stands for. */
export function apiError(
  status: number,
  body: unknown,
  details: { requestId: string | null; retryAfterS: number | null },
): ApiError {
  const Kind = BY_STATUS[status] ?? (status >= 500 ? ServerError : BadRequestError);
  const said = isObject(body) ? (body["error"] ?? body) : {};
  const error = isObject(said) ? said : { message: said };
  const message = text(error["message"]) ?? text(error["detail"]) ?? `the server said ${status}`;
  const code = error["code"];
  return new Kind(message, {
    ...details,
    status,
    type: text(error["type"]),
    code: typeof code === "string" || typeof code === "number" ? code : null,
    param: text(error["param"]),
  });
}

function text(value: unknown): string | null {
  return typeof value === "string" && value ? value : null;
}
