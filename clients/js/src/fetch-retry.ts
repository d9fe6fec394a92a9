/** `fetch` with retries, by the rules of HTTP. */
import { PLATFORM } from "./clock.js";
import { reservation, serverHint } from "./fetch-hints.js";
import { announcedWait, errorOutcome, idempotencyOf, responseOutcome } from "./fetch-rules.js";
import type { QuietPermit } from "./quiet-period.js";
import type { QuietPeriods } from "./quiet-periods.js";
import { RetryError } from "./retry.js";
import { call, type CallOptions, type PolicyLike, type RetryAttempt, type Turns } from "./retry-call.js";
import { type AttemptOutcome, defaultSettings } from "./retry-machine.js";
import { attempt, type Ended } from "./retry-wait.js";

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
   * Sends the number of the attempt, from 1, in the header `x-retry-attempt`. To another origin it makes browsers ask the server
   * before each request (a CORS preflight), unless they have asked already. Default: false.
   */
  readonly attemptHeader?: boolean;
  /**
   * Takes a 403 that says when to return, or that nothing of a rate limit remains, for throttled, and a 413 with `Retry-After` as
   * well, as APIs such as GitHub's mean it. Default: false, both are permanent.
   */
  readonly announcedWaits?: boolean;
  /**
   * Returns headers with fresh credentials after a response with 401 or 403, which replace those of the same name, or nothing if
   * no credentials are available. The request is then sent again with them immediately, once per call, if its body can be sent
   * again. The refresh is part of the attempt and limited by its remaining time; if the attempt has no time limit, neither has
   * the refresh. What it throws ends the call. Default: 401 and 403 are permanent.
   */
  readonly refreshCredentials?: (denied: DeniedRequest) => Fresh | PromiseLike<Fresh>;
  /** Lets calls wait together while their server asks for quiet. Default: a hint changes the wait of its own call alone. */
  readonly quiet?: QuietPeriods;
  /** The function that sends a request. Default: the platform's `fetch`. */
  readonly fetch?: (input: RequestInfo | URL, init: RequestInit) => Promise<Response>;
}

/** Headers with fresh credentials, if there are any. */
type Fresh = RequestInit["headers"] | null | void;

/** A request that the server has denied, for the function that returns fresh credentials. */
export interface DeniedRequest {
  readonly url: string;
  readonly method: string;
  /** The headers that were sent: they show which credentials were denied. */
  readonly headers: Headers;
  /** The response: its status, 401 or 403, and headers such as `WWW-Authenticate`. Its body is the caller's. */
  readonly response: Response;
  /** Is aborted with the caller's signal, and when the time of the attempt is over. */
  readonly signal: AbortSignal;
}

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
  const { signal: given, ...rest } = init;
  const { body } = init;
  const hasBody = body !== undefined && body !== null;
  const headers = new Headers(init.headers ?? (isRequest ? input.headers : undefined));
  // A copy, so that no attempt differs from the others. Any `init` resets the referrer of a Request.
  const { referrer, referrerPolicy } = (isRequest ? input : init) as Request;
  const own = { referrer, referrerPolicy, ...rest, headers };
  // Arguments that are wrong fail here, and not again in every attempt. A Request is used up even by one that has another body.
  const stands = body instanceof ReadableStream ? new ReadableStream() : "";
  const request = new Request(isRequest ? input.clone() : input, hasBody ? { ...own, body: stands } : own);
  request.body?.cancel().catch(() => {});
  const signal = (given === undefined && isRequest ? input.signal : given) ?? undefined;
  let idempotency = idempotencyOf(request.method, request.headers);
  if (idempotency === "none" && options.idempotencyKeys) {
    // The draft requires a structured-field string, which is quoted.
    const key = `"${uuid()}"`;
    [headers, request.headers].forEach((headers) => headers.set("idempotency-key", key));
    // With `mode: "no-cors"` browsers drop it.
    idempotency = idempotencyOf(request.method, request.headers);
  }
  const mayRepeat = idempotency !== "none" || options.idempotent === true;
  const isOnce = (hasBody && !isReplayable(body)) || !/^https?:/.test(request.url);
  const send = options.fetch ?? ((input, init) => fetch(input, init));
  const settings = options.policy?.settings ?? defaultSettings();
  const find = () => options.quiet?.turns(request, settings, clock);
  let period = find();
  const turns: Turns<QuietPermit> = {
    turn: async (latest, signal) => period?.turn(latest, signal) ?? {},
    wouldReject: (after, latest) => period?.wouldReject(after, latest) ?? false,
    record: (permit) => period?.record(permit, met),
    release: (permit) => period?.release(permit),
  };
  let { refreshCredentials } = options;
  /** The headers of the last attempt. */
  let sent = headers;
  /** What the last attempt says about the server, whether or not the request may be sent again; one of another origin, nothing. */
  let met: AttemptOutcome = { kind: "success" };
  let token: string | undefined;
  /** Whether the last response announces a wait: then it says nothing about the credentials. */
  let isLimited = false;

  const run = ({ number, signal }: RetryAttempt) => {
    sent = new Headers(headers);
    if (options.attemptHeader) {
      sent.set("x-retry-attempt", String(number));
    }
    if (token !== undefined) {
      sent.set("stagger-reservation-token", token);
      token = undefined;
    }
    return send(isRequest ? input.clone() : request.url, { ...own, headers: sent, signal });
  };
  const judge = (ended: Ended<Response>): AttemptOutcome => {
    let outcome: AttemptOutcome;
    let wasNotProcessed: boolean;
    if ("value" in ended) {
      const { status, headers, redirected, url } = ended.value;
      const hint = serverHint(headers, clock.wall());
      const announced = options.announcedWaits ? announcedWait(status, headers, hint) : undefined;
      isLimited = announced !== undefined;
      outcome = announced ?? responseOutcome(status, headers, idempotency, hint);
      // Admission control rejects a request before anything reads it; the server of a redirect has read it.
      const isReserved = hint?.kind === "reserved" && !redirected;
      token = isReserved ? reservation(headers)?.token : undefined;
      wasNotProcessed = isReserved && (status === 429 || status === 503);
      const isFromElsewhere = redirected && !url.startsWith(`${new URL(request.url).origin}/`);
      met = isFromElsewhere && outcome.kind !== "success" ? { kind: "not-processed" } : outcome;
    } else {
      const { outcome: found, isUnprocessed } = errorOutcome(ended.error);
      // If redirects are followed, the connection that failed may not be that of the request.
      wasNotProcessed = isUnprocessed && request.redirect !== "follow";
      outcome = found.kind === "not-processed" && (isOnce || !wasNotProcessed) ? { kind: "failed", failure: "transient" } : found;
      met = outcome;
    }
    if (outcome.kind === "failed" && (isOnce || !(mayRepeat || wasNotProcessed))) {
      return { kind: "unsafe", failure: outcome.failure };
    }
    return outcome;
  };
  const renew = async (response: Response, limitMs: number): Promise<AttemptOutcome> => {
    const refresh = refreshCredentials;
    refreshCredentials = undefined;
    const denied = { url: request.url, method: request.method, headers: sent, response };
    const ended = await attempt(clock, limitMs, signal, async (signal) => refresh?.({ ...denied, signal }), undefined);
    if ("error" in ended && !ended.isTimeout) {
      throw ended.error;
    }
    const fresh = "value" in ended ? ended.value : undefined;
    if (!fresh) {
      return { kind: "permanent" };
    }
    new Headers(fresh).forEach((value, name) => [headers, request.headers].forEach((headers) => headers.set(name, value)));
    // Other credentials have another quiet period.
    period = find();
    return { kind: "not-processed" };
  };
  /** Returns whether fresh credentials may help: what the server of a redirect denies may have been processed before it. */
  const mayRenew = ({ status, redirected }: Response) =>
    (status === 401 || status === 403) && !isLimited && refreshCredentials && !isOnce && (mayRepeat || !redirected);
  const operation = {
    run,
    judge,
    renew: (response: Response, limitMs: number) => (mayRenew(response) ? renew(response, limitMs) : undefined),
    discard,
    errorOf,
    turns: options.quiet && turns,
  };
  const end = await call(operation, { settings }, options, signal);
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
  const types = [ArrayBuffer, Blob, FormData, URLSearchParams];
  return typeof body === "string" || ArrayBuffer.isView(body) || types.some((type) => body instanceof type);
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
