/** The rules of HTTP: which responses may be followed by another attempt, and which requests may be sent again. */
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

/** Errors of Node that prove that nothing of a request was sent, unless a redirect had been followed. */
const NOT_SENT = [
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
];
/** What another attempt would meet again. */
const PERMANENT = [
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "ERR_TLS_CERT_ALTNAME_INVALID",
];

/** Returns what an error of `fetch` says beyond its `TypeError`: in Node its cause says more, in browsers nothing does. */
export function errorMeaning(error: unknown): "not-sent" | "permanent" | "unknown" {
  const { cause } = (error ?? {}) as { readonly cause?: unknown };
  const { code, message } = (cause ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  if (NOT_SENT.includes(String(code))) {
    return "not-sent";
  }
  // A loop of redirects; a scheme that is unknown.
  const isHopeless = message === "redirect count exceeded" || message === "unknown scheme";
  return isHopeless || PERMANENT.includes(String(code)) ? "permanent" : "unknown";
}
