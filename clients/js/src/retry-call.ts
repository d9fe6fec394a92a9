/** Drives the attempts of one call: what `retry` and `fetchRetry` have in common. */
import { type Clock, nanos, PLATFORM } from "./clock.js";
import { timerMs } from "./delays.js";
import { MAX_U64, randomSeed } from "./numbers.js";
import type { RetryBudget } from "./retry-budget.js";
import {
  type AttemptOutcome,
  type DelaySource,
  defaultSettings,
  RetryMachine,
  type RetryStopReason,
} from "./retry-machine.js";
import { attempt, type Ended, wait } from "./retry-wait.js";
import type { Settings } from "./settings.js";

/** An attempt, for the function that makes it. */
export interface RetryAttempt {
  /** The number of the attempt, from 1. */
  readonly number: number;
  /** Is aborted with the caller's signal, and when the time of the attempt is over. */
  readonly signal: AbortSignal;
  /** The error of the attempt before. */
  readonly previousError: unknown;
}

/** A failed attempt that is followed by another. */
export interface RetryEvent {
  /** The number of the attempt that failed, from 1. */
  readonly attempt: number;
  readonly error: unknown;
  /** How long the wait before the next attempt is. */
  readonly delayMs: number;
  /** What determined it: the policy's `schedule`, the `hint` of a server, or nothing: a `transparent` repeat is made at once. */
  readonly source: DelaySource;
  /** How long the call has taken so far. */
  readonly elapsedMs: number;
}

/** A call that has ended without a success. */
export interface RetryStop {
  readonly reason: RetryStopReason;
  /** How many attempts were made. */
  readonly attempts: number;
  readonly elapsedMs: number;
  /** The error of the last attempt. */
  readonly error: unknown;
  /** With the reason `quiet`: when the server takes calls again, as far as is known. */
  readonly retryInMs: number | undefined;
}

/** A policy; `parsePolicy` makes one. */
export interface PolicyLike {
  readonly settings: Readonly<Settings>;
}

/** What all calls may be given. */
export interface CallOptions {
  /** How long each attempt may take, in milliseconds: more than 0. Default: no limit. */
  readonly timeoutMs?: number;
  /**
   * How long the call may take, in milliseconds from its start: no attempt starts then or later, and none lasts longer.
   * Default: no limit.
   */
  readonly deadlineMs?: number;
  /** Says that an outer layer is already retrying: the call then makes one attempt. Default: false. */
  readonly nested?: boolean;
  /** Bounds the retries of all calls that share it. Default: none. */
  readonly budget?: RetryBudget;
  /** Is called before each wait. What it throws ends the call. */
  readonly onRetry?: (event: RetryEvent) => void;
  /** Is called when the call ends without a success, unless it was aborted. What it throws ends the call as well. */
  readonly onStop?: (stop: RetryStop) => void;
  /** For reproducible delays: a number of 64 bits. Default: random. */
  readonly seed?: bigint;
  /** For tests. */
  readonly clock?: Clock;
}

/** What holds the calls of a target. Points in time are in nanoseconds. */
export interface Turns<P> {
  /** Waits for the turn of a call, and resolves with its permit, or with the time until its turn if that is too late. */
  turn(latest: bigint | undefined, signal: AbortSignal | undefined): Promise<{ permit?: P } | { retryIn: bigint }>;
  /** Returns whether an attempt that is due after this time would be rejected then. */
  wouldReject(after: bigint, latest: bigint | undefined): boolean;
  record(permit: P, outcome: AttemptOutcome): void;
  release(permit: P): void;
}

/** What a call does. */
export interface Operation<T, P = never> {
  run(attempt: RetryAttempt): T | PromiseLike<T>;
  /** Returns what the end of an attempt means. What it throws ends the call. */
  judge(ended: Ended<T>, attempt: number): AttemptOutcome;
  /** Does something about a value that is no success, as a part of its attempt. Resolves with what it means then, if that changes. */
  readonly renew?: (value: T, limitMs: number) => Promise<AttemptOutcome> | undefined;
  /** Lets go of a value that the caller does not receive. */
  readonly discard?: (value: T) => void;
  /** Returns the error that stands for a value which is no success. */
  readonly errorOf?: (value: T) => unknown;
  readonly turns?: Turns<P> | undefined;
}

/** How a call has ended: with a success; or with a value or an error that no attempt follows. */
export type CallEnd<T> = { readonly value: T } | { readonly stop: RetryStop; readonly last?: T };

/** The shortest wait that is spread again after the device slept. */
const SHORTEST_WATCHED_MS = 100;

/**
 * Makes attempts until one succeeds or the policy, the budget or a limit ends the call.
 *
 * @throws RangeError for a limit that is no length of time, and the reason of the signal as soon as it is aborted.
 */
export async function call<T, P>(
  operation: Operation<T, P>,
  policy: PolicyLike | undefined,
  options: CallOptions,
  signal: AbortSignal | undefined,
): Promise<CallEnd<T>> {
  const { budget, clock = PLATFORM, turns } = { ...options, turns: operation.turns };
  const timeoutMs = limit("timeoutMs", options.timeoutMs);
  const deadlineMs = limit("deadlineMs", options.deadlineMs);
  signal?.throwIfAborted();
  const now = () => nanos(clock.now());
  const start = now();
  const elapsedMs = () => Number(now() - start) / 1e6;
  const machine = new RetryMachine(
    policy?.settings ?? defaultSettings(),
    (options.seed ?? randomSeed()) & MAX_U64,
    start,
    deadlineMs === Infinity ? undefined : start + nanos(deadlineMs),
    options.nested,
  );
  let previousError: unknown;
  const stopped = (reason: RetryStopReason, error: unknown, retryIn?: bigint): RetryStop => {
    const retryInMs = retryIn === undefined ? undefined : timerMs(retryIn);
    const stop = { reason, attempts: machine.attempt, elapsedMs: elapsedMs(), error, retryInMs };
    options.onStop?.(stop);
    return stop;
  };
  /** Waits; a wait that the device has overslept is spread again, once. */
  const pause = async (length: bigint) => {
    const ms = timerMs(length);
    const lateMs = ms > 0 ? await wait(clock, ms, signal) : 0;
    const again = ms < SHORTEST_WATCHED_MS ? 0n : machine.spreadAgain(nanos(lateMs), now());
    if (again > 0n) {
      await wait(clock, timerMs(again), signal);
    }
  };
  /** The charge of the coming retry, until its attempt begins. */
  let uncommitted: number | undefined;
  try {
    await pause(machine.spread(start));
    for (;;) {
      const turn = turns && (await turns.turn(machine.latestStart(), signal));
      if (turn && "retryIn" in turn) {
        return { stop: stopped("quiet", previousError, turn.retryIn) };
      }
      let held = turn?.permit;
      /** A value that neither the caller has nor `discard`. */
      let unclaimed: { readonly value: T } | undefined;
      try {
        // A retry that is not made is not charged.
        signal?.throwIfAborted();
        if (!machine.begin(now(), budget)) {
          return { stop: stopped("deadline", previousError) };
        }
        const charge = uncommitted;
        uncommitted = undefined;
        const number = machine.attempt;
        const remaining = machine.remaining(now());
        const limitMs = Math.min(timeoutMs, remaining === undefined ? Infinity : timerMs(remaining));
        const begun = clock.now();
        const run = (signal: AbortSignal) => operation.run({ number, signal, previousError });
        const ended = await attempt(clock, limitMs, signal, run, operation.discard);
        const value = "value" in ended ? ended : undefined;
        unclaimed = value;
        let outcome = operation.judge(ended, number);
        if (held !== undefined) {
          turns?.record(held, outcome);
          held = undefined;
        }
        if (value && operation.renew && outcome.kind !== "success") {
          outcome = (await operation.renew(value.value, limitMs - (clock.now() - begun))) ?? outcome;
        }
        const isTooLate = (after: bigint) => turns?.wouldReject(after, machine.latestStart()) ?? false;
        const decision = machine.decide(outcome, charge, now(), budget, isTooLate);
        if (decision.kind === "done" && value) {
          unclaimed = undefined;
          return value;
        }
        previousError = value ? operation.errorOf?.(value.value) : (ended as { error: unknown }).error;
        if (decision.kind !== "retry") {
          // Only a value is a success.
          const stop = stopped(decision.kind === "stop" ? decision.reason : "permanent", previousError);
          unclaimed = undefined;
          return value ? { stop, last: value.value } : { stop };
        }
        uncommitted = decision.permit;
        unclaimed = undefined;
        if (value) {
          operation.discard?.(value.value);
        }
        const { after, source } = decision;
        options.onRetry?.({ attempt: number, error: previousError, delayMs: timerMs(after), source, elapsedMs: elapsedMs() });
        await pause(after);
      } finally {
        if (held !== undefined) {
          turns?.release(held);
        }
        if (unclaimed) {
          operation.discard?.(unclaimed.value);
        }
      }
    }
  } finally {
    if (uncommitted !== undefined) {
      budget?.release(uncommitted);
    }
  }
}

function limit(name: string, ms = Infinity): number {
  if (!(ms > 0)) {
    throw new RangeError(`${name} is ${ms}: use more than 0, or leave it out for no limit`);
  }
  return ms;
}
