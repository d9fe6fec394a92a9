/** The rules of HTTP: which responses may be followed by another attempt, and which requests may be sent again. */
import type { FailureKind } from "./delays.js";
import { isExhausted, namesWait, type ReadHeaders, shouldRetry } from "./fetch-hints.js";
import type { AttemptOutcome, ServerHint } from "./retry-machine.js";

/** Why a request may be sent more than once: by its method, by its `Idempotency-Key`, or because the application says so. */
export type Idempotency = "method" | "key" | "declared" | "none";

const IDEMPOTENT = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

export function idempotencyOf(method: string, headers: ReadHeaders): Idempotency {
  return headers.has("idempotency-key") ? "key" : IDEMPOTENT.includes(method.toUpperCase()) ? "method" : "none";
}

/** Classifies a response by its status and by `x-should-retry`, whether or not the request may be sent again. */
export function responseOutcome(
  status: number,
  headers: ReadHeaders,
  idempotency: Idempotency,
  hint: ServerHint | undefined,
): AttemptOutcome {
  const throttled = status === 429 || (status === 503 && hint !== undefined && hint.kind !== "do-not-retry");
  if (throttled) {
    return { kind: "failed", failure: "throttled", hint };
  }
  // The status of an opaque response is 0.
  if (status < 400) {
    return { kind: "success" };
  }
  const isPermanent = [501, 505, 506, 507, 508, 510, 511].includes(status) || status >= 600;
  const isTransient =
    status === 408 || status === 425 || (status === 409 && idempotency === "key") || (status >= 500 && !isPermanent);
  return isTransient || shouldRetry(headers)
    ? { kind: "failed", failure: "transient", hint }
    : { kind: "permanent" };
}

/**
 * Classifies a 403 or 413 that announces when to return: by a header of a delay, or a 403 by a rate limit of which nothing remains.
 * Returns `undefined` for any other response. Sources: GitHub's rate limits; RFC 9110, section 15.5.14.
 */
export function announcedWait(status: number, headers: ReadHeaders, hint: ServerHint | undefined): AttemptOutcome | undefined {
  if ((status !== 403 && status !== 413) || hint?.kind === "do-not-retry") {
    return undefined;
  }
  const isAnnounced = (hint && namesWait(headers)) || (status === 403 && isExhausted(headers));
  return isAnnounced ? { kind: "failed", failure: "throttled", hint } : undefined;
}

/**
 * Errors of Node that prove that no connection was made, and of Bun for a request that may not be sent twice. Those of the system
 * calls `connect` and `getaddrinfo` do, too. Deno sends any request again by itself if a connection that it reuses ends, so the
 * error of the second connection says nothing of the first.
 */
const NOT_SENT = [
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENETDOWN",
  "EADDRNOTAVAIL",
  "UND_ERR_CONNECT_TIMEOUT",
  // The lookup of the name failed.
  "ENOTFOUND",
  "ENODATA",
  "EAI_AGAIN",
];
/** A resource of the process, or of its system, is exhausted. */
const LOCAL = ["EMFILE", "ENFILE", "ENOBUFS", "EADDRNOTAVAIL"];
/** What another attempt would meet again. */
const PERMANENT = [
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "TooManyRedirects",
  // Messages of errors without a code.
  "redirect count exceeded",
  "unexpected redirect",
  "unknown scheme",
  "URL scheme must be a HTTP(S) scheme",
  "bad port",
];
/** The same in the messages of Deno, whose errors have no codes. */
const HOPELESS = /Maximum number of redirects|invalid peer certificate/;

type PlatformError = Partial<Record<"name" | "code" | "message" | "cause" | "syscall", unknown>>;

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/**
 * Classifies an error of `fetch`, and says whether it proves that the server has not processed the request, unless a redirect
 * had been followed. Browsers say nothing beyond their `TypeError`. In Node its cause says more, by a code or a message; in Deno
 * the messages of both do, and in Bun its own code.
 */
export function errorOutcome(error: unknown): { readonly outcome: AttemptOutcome; readonly isUnprocessed: boolean } {
  const own = (error ?? {}) as PlatformError;
  if (own.name === "AbortError") {
    // Neither the caller's signal nor a time limit: the browser has stopped loading, or `fetch` is the caller's own.
    return { outcome: { kind: "permanent" }, isUnprocessed: false };
  }
  const told = (own.cause ?? {}) as PlatformError;
  const message = text(told.message);
  const code = text(told.code) || message || text(own.code);
  const failed = (failure: FailureKind): AttemptOutcome => ({ kind: "failed", failure });
  if (code === "ERR_HTTP2_STREAM_ERROR") {
    // Of a server that goes away, undici does not tell which streams it excludes.
    const isRefused = message.endsWith(" NGHTTP2_REFUSED_STREAM");
    const isThrottled = message.endsWith(" NGHTTP2_ENHANCE_YOUR_CALM");
    return {
      outcome: isRefused ? { kind: "not-processed" } : failed(isThrottled ? "throttled" : "transient"),
      isUnprocessed: isRefused,
    };
  }
  const isUnprocessed =
    NOT_SENT.includes(code) ||
    told.syscall === "connect" ||
    told.syscall === "getaddrinfo" ||
    message.startsWith("Client network socket disconnected before secure TLS connection");
  const outcome: AttemptOutcome = PERMANENT.includes(code) || HOPELESS.test(`${text(own.message)} ${message}`)
    ? { kind: "permanent" }
    : failed(LOCAL.includes(code) ? "local" : "transient");
  return { outcome, isUnprocessed };
}
