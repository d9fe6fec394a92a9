/**
 * Decides about the attempts of one call: the `RetryMachine` of `stagger-core` with a budget as its guard. It reads no clock
 * and does no I/O; points in time and lengths are in nanoseconds.
 */
import { countShortened, type FailureKind, firstCarry, nextDelay } from "./delays.js";
import { bits, draw, greatest, least, LONGEST, MAX_U64, Purpose, SECOND } from "./numbers.js";
import { spreadAgain } from "./reconnect.js";
import type { RetryBudget, ServerHealth } from "./retry-budget.js";
import { type Settings, startOf } from "./settings.js";

/** Why a call ended without a success. */
export type RetryStopReason =
  | "permanent"
  | "unsafe_to_retry"
  | "attempts"
  | "elapsed"
  | "deadline"
  | "hint"
  | "budget"
  | "exhausted"
  | "nested"
  | "quiet";

/** What determined a delay; `transparent` is the immediate repeat of an attempt that was certainly not processed. */
export type DelaySource = "schedule" | "hint" | "transparent";

/** When the server asks for the next attempt: not before `wait` has passed, exactly then, or not at all. */
export type ServerHint =
  | { readonly kind: "at-least" | "reserved"; readonly wait: bigint }
  | { readonly kind: "do-not-retry" };

/**
 * What an attempt ended with. `unsafe`: it may have been carried out, and must not be carried out twice. `not-processed`: it was
 * certainly not carried out, and is repeated at once, once per call; the repeat is not counted.
 */
export type AttemptOutcome =
  | { readonly kind: "success" | "permanent" | "not-processed" }
  | { readonly kind: "unsafe"; readonly failure: FailureKind }
  | { readonly kind: "failed"; readonly failure: FailureKind; readonly hint?: ServerHint | undefined };

export type Decision =
  | { readonly kind: "retry"; readonly after: bigint; readonly source: DelaySource; readonly permit: number | undefined }
  | { readonly kind: "done" }
  | { readonly kind: "stop"; readonly reason: RetryStopReason };

/** The share of a hint over which clients are spread at least, in millionths. */
const DEFAULT_HINT_SPREAD = 500_000;
const MILLION = 1_000_000n;
const NO_ANSWER = { failure: "transient", hint: undefined } as const;

/** Returns the settings of `Policy::DEFAULT`, without the parser: a test compares them with the text of the profile. */
export function defaultSettings(): Settings {
  return { ...(startOf("exponential") as Settings), jitter: { kind: "full" }, maxHint: 30n * SECOND };
}

/** Returns what an outcome says about the health of the server. */
export function health(outcome: AttemptOutcome): ServerHealth {
  if ("failure" in outcome) {
    return outcome.failure === "local" ? "unknown" : "ailing";
  }
  return outcome.kind === "not-processed" ? "unknown" : "healthy";
}

export class RetryMachine {
  /** The number of the current or last attempt, from 1. */
  attempt = 0;
  /** The value that the next delay is computed from. */
  #carry: number;
  /** How many waits in a row exact hints have shortened. */
  #shortened = 0;
  /** The end of the interval of the last delay. */
  #longest: bigint;
  #start: bigint;
  /** How the one immediate repeat of the call stands. */
  #repeat: "unused" | "due" | "used" = "unused";

  /**
   * @param deadline The point in time at which the call ends.
   * @param isNested Whether an outer layer is already retrying.
   */
  constructor(
    private readonly settings: Readonly<Settings>,
    private readonly seed: bigint,
    start: bigint,
    readonly deadline: bigint | undefined,
    private readonly isNested = false,
  ) {
    this.#carry = firstCarry(settings);
    this.#longest = settings.spread;
    this.#start = start;
  }

  /** Returns the wait before the first attempt: uniform on `[0, spread]`, and never past the deadline. */
  spread(now: bigint): bigint {
    const longest = least(this.settings.spread, this.remaining(now) ?? MAX_U64);
    return draw(0n, longest, this.#bits(Purpose.Spread));
  }

  /** Returns how long the coming attempt may take: the time left until the deadline. */
  remaining(now: bigint): bigint | undefined {
    return this.deadline === undefined ? undefined : greatest(this.deadline - now, 0n);
  }

  /** Starts the next attempt. Returns false if the deadline has passed. */
  begin(now: bigint, budget?: RetryBudget): boolean {
    if (this.remaining(now) === 0n) {
      return false;
    }
    if (this.attempt === 0) {
      budget?.onFirstAttempt?.(now);
    }
    if (this.#repeat === "due") {
      this.#repeat = "used";
    } else {
      this.attempt += 1;
    }
    return true;
  }

  /**
   * Decides what to do after an attempt, in the order of `RetryMachine::decide`: questions without a side effect come first,
   * and the charge of the budget last.
   */
  decide(
    outcome: AttemptOutcome,
    permit: number | undefined,
    now: bigint,
    budget?: RetryBudget,
    isTooLate?: (after: bigint) => boolean,
  ): Decision {
    // A repeat keeps its permit, which `record` would settle.
    if (outcome.kind === "not-processed" && this.#repeat === "unused" && !this.#passedLimit(0n, now)) {
      this.#repeat = "due";
      return { kind: "retry", after: 0n, source: "transparent", permit };
    }
    budget?.record(permit, health(outcome));
    const { settings } = this;
    switch (outcome.kind) {
      case "success":
        return { kind: "done" };
      case "permanent":
        return stop("permanent");
      case "unsafe":
        return stop("unsafe_to_retry");
    }
    if (settings.maxAttempts !== null && this.attempt >= settings.maxAttempts) {
      return stop("attempts");
    }
    const { failure, hint } = outcome.kind === "failed" ? outcome : NO_ANSWER;
    const drawn = nextDelay(settings, this.#carry, this.attempt, failure, this.#bits(Purpose.Delay));
    if (!drawn) {
      return stop("exhausted");
    }
    if (this.isNested) {
      return stop("nested");
    }
    if (hint && (hint.kind === "do-not-retry" || (settings.maxHint !== null && hint.wait > settings.maxHint))) {
      return stop("hint");
    }
    this.#shortened = hint ? this.#shortened : 0;
    this.#carry = drawn.carry;
    this.#longest = drawn.longest;
    const after = hint ? least(this.#hinted(hint, drawn.longest, drawn.delay), LONGEST) : drawn.delay;
    const limit = this.#passedLimit(after, now);
    if (limit) {
      return stop(limit);
    }
    if (isTooLate?.(after)) {
      return stop("quiet");
    }
    let charged: number | undefined;
    if (budget) {
      charged = budget.tryAcquire(failure, now);
      if (charged === undefined) {
        return stop("budget");
      }
    }
    return { kind: "retry", after, source: hint ? "hint" : "schedule", permit: charged };
  }

  /** Returns the latest time at which an attempt may start: at the end of `max-elapsed`, but before the deadline. */
  latestStart(): bigint | undefined {
    const { maxElapsed } = this.settings;
    const limits = [maxElapsed === null ? undefined : this.#start + maxElapsed, this.deadline && this.deadline - 1n];
    return limits.reduce((latest, limit) => (latest === undefined || (limit !== undefined && limit < latest) ? limit : latest));
  }

  /** Returns another wait if the timer of the last one fired more than a second late; otherwise 0. */
  spreadAgain(late: bigint, now: bigint): bigint {
    let span = least(this.#longest, this.remaining(now) ?? MAX_U64);
    const { maxElapsed } = this.settings;
    if (maxElapsed !== null && this.#start + maxElapsed > now) {
      span = least(span, this.#start + maxElapsed - now);
    }
    return spreadAgain(late, span, this.#bits(Purpose.Again));
  }

  /** Returns which limit leaves no room for an attempt that starts `after` from now. */
  #passedLimit(after: bigint, now: bigint): "deadline" | "elapsed" | undefined {
    const { maxElapsed } = this.settings;
    if (this.deadline !== undefined && now + after >= this.deadline) {
      return "deadline";
    }
    return maxElapsed !== null && now + after - this.#start > maxElapsed ? "elapsed" : undefined;
  }

  #hinted(hint: ServerHint & { readonly wait: bigint }, longest: bigint, drawn: bigint): bigint {
    const { wait } = hint;
    const mode = this.settings.hint;
    const isExact = hint.kind === "reserved" || mode.kind === "exact";
    this.#shortened = isExact ? countShortened(this.#shortened, wait, drawn) : 0;
    if (isExact) {
      return this.#shortened > 0 ? wait : greatest(wait, drawn);
    }
    if (mode.kind === "clamp") {
      return least(greatest(wait, drawn), drawn + mode.above);
    }
    const share = (least(wait, MAX_U64) * BigInt(this.settings.hintSpread ?? DEFAULT_HINT_SPREAD)) / MILLION;
    return wait + draw(0n, greatest(longest, share), this.#bits(Purpose.Hint));
  }

  #bits(purpose: Purpose): bigint {
    return bits(this.seed, 0, this.attempt, purpose);
  }
}

function stop(reason: RetryStopReason): Decision {
  return { kind: "stop", reason };
}
