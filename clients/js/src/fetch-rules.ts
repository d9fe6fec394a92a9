/** The rules of HTTP: which responses may be followed by another attempt, and which requests may be sent again. */
import type { FailureKind } from "./delays.js";
import { type ReadHeaders, shouldRetry } from "./fetch-hints.js";
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

/** Errors of Node that prove that no connection was made. Those of the system calls `connect` and `getaddrinfo` do, too. */
const NOT_SENT = ["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ENETDOWN", "EADDRNOTAVAIL", "UND_ERR_CONNECT_TIMEOUT"];
/** A resource of the process, or of its system, is exhausted. */
const LOCAL = ["EMFILE", "ENFILE", "ENOBUFS", "EADDRNOTAVAIL"];
/** What another attempt would meet again. */
const PERMANENT = [
  "ENOTFOUND",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  // Messages of errors without a code.
  "redirect count exceeded",
  "unexpected redirect",
  "unknown scheme",
  "URL scheme must be a HTTP(S) scheme",
  "bad port",
];

/**
 * Classifies an error of `fetch`, and says whether it proves that the server has not processed the request, unless a redirect
 * had been followed. Browsers say nothing beyond their `TypeError`; in Node its cause does, by a code, or by its message.
 */
export function errorOutcome(error: unknown): { readonly outcome: AttemptOutcome; readonly isUnprocessed: boolean } {
  const { cause, name } = (error ?? {}) as { readonly cause?: unknown; readonly name?: unknown };
  if (name === "AbortError") {
    // Neither the caller's signal nor a time limit: the browser has stopped loading, or `fetch` is the caller's own.
    return { outcome: { kind: "permanent" }, isUnprocessed: false };
  }
  const told = (cause ?? {}) as Partial<Record<"code" | "message" | "syscall", unknown>>;
  const message = String(told.message);
  const code = String(told.code ?? message);
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
  const outcome: AttemptOutcome = PERMANENT.includes(code)
    ? { kind: "permanent" }
    : failed(LOCAL.includes(code) ? "local" : "transient");
  return { outcome, isUnprocessed };
}
