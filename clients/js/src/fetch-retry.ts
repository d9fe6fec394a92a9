/** `fetch` with retries, by the rules of HTTP. */
import { PLATFORM } from "./clock.js";
import { reservation, serverHint } from "./fetch-hints.js";
import { errorMeaning, idempotencyOf, responseOutcome } from "./fetch-rules.js";
import type { QuietPermit } from "./quiet-period.js";
import { quietKey, QuietPeriods } from "./quiet-periods.js";
import { RetryError } from "./retry.js";
import { call, type CallOptions, type PolicyLike, type RetryAttempt } from "./retry-call.js";
import { type AttemptOutcome, defaultSettings } from "./retry-machine.js";
import type { Ended } from "./retry-wait.js";

export interface FetchRetryOptions extends CallOptions {
  /** When to retry; `parsePolicy` makes one. Default: that of the profile `default`. */
  readonly policy?: PolicyLike;
  /** Declares that the request may be sent more than once, whatever its method. */
  readonly idempotent?: boolean;
  /**
   * Adds an `Idempotency-Key` to a request that needs one: a UUID, equal in every attempt. It works only if the server implements
   * it. Default: false.
   */
  readonly idempotencyKeys?: boolean;
  /**
   * Lets the calls of a target wait while its server asks for quiet, or `false`: each call follows its own hints. Default: one
   * for all calls of the page; none if `clock` is given.
   */
  readonly quiet?: QuietPeriods | false;
  /** Calls with this key wait together. Default: those to one origin with the same credentials. */
  readonly quietKey?: string;
  /** The function that sends a request. Default: the platform's `fetch`. */
  readonly fetch?: (input: RequestInfo | URL, init: RequestInit) => Promise<Response>;
}

const PAGE = /* @__PURE__ */ new QuietPeriods();

/** A response that was not a success, where an error is needed. */
export class StatusError extends Error {
  constructor(
    readonly status: number,
    readonly url: string,
  ) {
    super(`the server responded with status ${status}`);
  }

  override get name(): string {
    return "StatusError";
  }
}

/**
 * Sends a request like `fetch`, and again if that can succeed and is safe: after 408, 425, 429, most of 5xx and lost
 * connections, for GET, HEAD, OPTIONS, TRACE, PUT, DELETE and requests with an `Idempotency-Key`. `Retry-After` and other hints
 * are followed up to the `max-hint` of the policy. An attempt ends with the headers of its response: `timeoutMs` does not
 * limit its body, and a body that breaks off is not retried.
 *
 * The bodies of responses that are followed by another attempt are cancelled. The caller gets the last response, whatever its
 * status.
 *
 * @param init As for `fetch`. Its signal, or that of a `Request`, ends the call at once, and the body of the response.
 * @throws RetryError if no attempt got a response, or a limit ended the call during a wait; the reason of the signal if it is
 * aborted; TypeError if the arguments are no request.
 */
export async function fetchRetry(
  input: RequestInfo | URL,
  init: RequestInit = {},
  options: FetchRetryOptions = {},
): Promise<Response> {
  const clock = options.clock ?? PLATFORM;
  const isRequest = typeof Request === "function" && input instanceof Request;
  // Arguments that are wrong fail here, and not again in every attempt. The body is not touched.
  const { body, signal: given, ...head } = init;
  const hasBody = body !== undefined && body !== null;
  const request = new Request(isRequest ? input.clone() : input, hasBody ? { ...head, body: "" } : head);
  const signal = (given === undefined && isRequest ? input.signal : given) ?? undefined;
  const headers = new Headers(init.headers ?? (isRequest ? input.headers : undefined));
  let idempotency = idempotencyOf(request.method, headers);
  if (idempotency === "none" && options.idempotencyKeys) {
    headers.set("idempotency-key", uuid());
    idempotency = "key";
  }
  const mayRepeat = idempotency !== "none" || options.idempotent === true;
  const isOnce = (hasBody && !isReplayable(body)) || !/^https?:/.test(request.url);
  const send = options.fetch ?? ((input, init) => fetch(input, init));
  const quiet = options.quiet ?? (options.clock ? false : PAGE);
  const settings = options.policy?.settings ?? defaultSettings();
  const period = quiet ? quiet.turns(options.quietKey ?? quietKey(request, headers), settings, clock) : undefined;
  /** What the last attempt has met, whether or not the request may be sent again. */
  let met: AttemptOutcome = { kind: "success" };
  let token: string | undefined;

  const run = ({ signal }: RetryAttempt) => {
    const own = new Headers(headers);
    if (token !== undefined) {
      own.set("stagger-reservation-token", token);
      token = undefined;
    }
    return send(isRequest ? input.clone() : input, { ...init, headers: own, signal });
  };
  const judge = (ended: Ended<Response>): AttemptOutcome => {
    let outcome: AttemptOutcome;
    let wasNotProcessed: boolean;
    if ("value" in ended) {
      const { status, headers, redirected } = ended.value;
      const hint = serverHint(headers, clock.wall());
      outcome = responseOutcome(status, headers, idempotency, hint);
      // Admission control rejects a request before anything reads it; the server of a redirect has read it.
      const isReserved = hint?.kind === "reserved" && !redirected;
      token = isReserved ? reservation(headers)?.token : undefined;
      wasNotProcessed = isReserved && (status === 429 || status === 503);
    } else {
      const meaning = errorMeaning(ended.error);
      outcome = meaning === "permanent" ? { kind: "permanent" } : { kind: "failed", failure: "transient" };
      // If redirects are followed, the connection that failed may not be that of the request.
      wasNotProcessed = meaning === "not-sent" && request.redirect !== "follow";
    }
    met = outcome;
    if (outcome.kind === "failed" && (isOnce || !(mayRepeat || wasNotProcessed))) {
      return { kind: "unsafe", failure: outcome.failure };
    }
    return outcome;
  };
  const turns = period && { ...period, record: (permit: QuietPermit) => period.record(permit, met) };
  const end = await call({ run, judge, discard, errorOf, turns }, { settings }, options, signal);
  if (!("stop" in end)) {
    return end.value;
  }
  if (end.last) {
    return end.last;
  }
  throw new RetryError(end.stop);
}

/** Lets go of the connection of a response whose body nobody reads. */
function discard(response: Response): void {
  // A body that is locked or has failed is nobody's either.
  response.body?.cancel().catch(() => {});
}

function errorOf(response: Response): StatusError {
  return new StatusError(response.status, response.url);
}

/** Returns whether a body can be sent again: a stream, or an iterator, is used up. */
function isReplayable(body: NonNullable<RequestInit["body"]>): boolean {
  return (
    typeof body === "string" ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body) ||
    body instanceof Blob ||
    body instanceof FormData ||
    body instanceof URLSearchParams
  );
}

/** Returns a random UUID of version 4. `crypto.randomUUID` is missing in pages without TLS. */
function uuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const hex = [...bytes].map((byte, at) => {
    const value = at === 6 ? (byte & 0x0f) | 0x40 : at === 8 ? (byte & 0x3f) | 0x80 : byte;
    return value.toString(16).padStart(2, "0");
  });
  return hex.join("").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
