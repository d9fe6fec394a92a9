/** Calls a function again until it succeeds. */
import { nanos } from "./clock.js";
import type { FailureKind } from "./delays.js";
import { LONGEST } from "./numbers.js";
import { call, type CallOptions, type PolicyLike, type RetryAttempt, type RetryStop } from "./retry-call.js";
import type { AttemptOutcome, RetryStopReason } from "./retry-machine.js";
import type { Ended } from "./retry-wait.js";

/** What is known about a failed attempt that may be retried. */
export interface Failure {
  /** Which base of the policy applies. Default `transient`. */
  readonly kind?: FailureKind;
  /** How long the server asks to wait, in milliseconds. Negative values and NaN are ignored. */
  readonly retryAfterMs?: number | undefined;
}

export interface RetryOptions extends CallOptions {
  /** Ends the call at once, also while it waits: `retry` rejects with the reason of the signal. */
  readonly signal?: AbortSignal;
  /**
   * Returns whether an attempt with this error may be followed by another, or what is known about the failure. What it throws
   * ends the call. Default: every error but an `AbortError`, which is not a failure of the server.
   */
  readonly when?: (error: unknown, attempt: number) => boolean | Failure;
}

const SENTENCES: Readonly<Record<RetryStopReason, string>> = {
  permanent: "the failure is permanent",
  unsafe_to_retry: "it may have been carried out, or cannot be made again",
  attempts: "every attempt was used",
  elapsed: "max-elapsed left no room for another attempt",
  deadline: "the deadline left no room for another attempt",
  hint: "the server asked not to come back, or not soon enough",
  budget: "this client's own retry budget is used up",
  exhausted: "the schedule has no further delay",
  nested: "an outer layer is already retrying",
  quiet: "the server asked all of this client's calls to wait longer than this one may",
};

/** A call has ended without a success: says why, and has the error of the last attempt as its `cause`. */
export class RetryError extends Error {
  readonly reason: RetryStopReason;
  /** How many attempts were made. */
  readonly attempts: number;
  /** How long the call took, in milliseconds. */
  readonly elapsedMs: number;
  /** With the reason `quiet`: when the server takes calls again, as far as is known. */
  readonly retryInMs: number | undefined;

  constructor({ reason, attempts, elapsedMs, error, retryInMs }: RetryStop) {
    super(`${SENTENCES[reason]} (attempts: ${attempts}, ${Math.round(elapsedMs)} ms)${described(error)}`, { cause: error });
    this.reason = reason;
    this.attempts = attempts;
    this.elapsedMs = elapsedMs;
    this.retryInMs = retryInMs;
  }

  override get name(): string {
    return "RetryError";
  }
}

/**
 * Calls `fn` until it succeeds: the `Retrier` of stagger. The first attempt is made at once unless the policy has a spread;
 * retry `n` waits for delay `n` of the policy, to the nanosecond that of the same seed in Rust, rounded up to milliseconds.
 *
 * An attempt fails if `fn` throws, if its promise is rejected, or if it takes longer than `timeoutMs`; then its signal is
 * aborted, and what it still returns is dropped.
 *
 * @param fn Makes one attempt. Pass its signal on, or an attempt that timed out goes on beside the next one.
 * @param policy When to retry; `parsePolicy` makes one. Default: that of the profile `default`, four attempts with full
 * jitter from 100 ms to 30 s.
 * @throws RetryError if no attempt succeeds; the reason of the signal if it is aborted; RangeError if a limit is no length of
 * time.
 */
export async function retry<T>(
  fn: (attempt: RetryAttempt) => T | PromiseLike<T>,
  policy?: PolicyLike,
  options: RetryOptions = {},
): Promise<T> {
  const { when = isNoAbort, signal } = options;
  const judge = (ended: Ended<T>, attempt: number): AttemptOutcome =>
    "value" in ended ? { kind: "success" } : outcome(when(ended.error, attempt));
  const end = await call({ run: fn, judge }, policy, options, signal);
  if ("stop" in end) {
    throw new RetryError(end.stop);
  }
  return end.value;
}

function isNoAbort(error: unknown): boolean {
  return nameOf(error) !== "AbortError";
}

function nameOf(error: unknown): unknown {
  return (error as { readonly name?: unknown } | null | undefined)?.name;
}

function outcome(failure: boolean | Failure): AttemptOutcome {
  if (!failure) {
    return { kind: "permanent" };
  }
  const { kind = "transient", retryAfterMs = NaN } = failure === true ? {} : failure;
  if (!(retryAfterMs >= 0)) {
    return { kind: "failed", failure: kind };
  }
  const wait = retryAfterMs < Number(LONGEST) / 1e6 ? nanos(retryAfterMs) : LONGEST;
  return { kind: "failed", failure: kind, hint: { kind: "at-least", wait } };
}

/** Returns the text of an error of any type, also of one that throws when it is converted. */
function described(error: unknown): string {
  if (error === undefined) {
    return "";
  }
  try {
    const text = String(error);
    return `: ${text.length > 200 ? `${text.slice(0, 200)}…` : text}`;
  } catch {
    return "";
  }
}
