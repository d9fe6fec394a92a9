/** Retry budgets: they bound the retries of all calls together. */
import type { FailureKind } from "./delays.js";
import { least } from "./numbers.js";
import { decimal } from "./text.js";

/** What an outcome says about the server: it answered, it is in trouble, or nothing. */
export type ServerHealth = "healthy" | "ailing" | "unknown";

/**
 * A bound on the retries of all calls that share it: {@link TokenBudget}, `WindowBudget`, {@link SuccessRateBudget}, or your own.
 * Points in time are in nanoseconds.
 */
export interface RetryBudget {
  /** Counts the first attempt of a call, which is never rejected. */
  onFirstAttempt?(now: bigint): void;
  /** Charges a retry after a failure of this kind. Returns the permit, or `undefined` if the retry is rejected. */
  tryAcquire(kind: FailureKind, now: bigint): number | undefined;
  /** Records how an attempt ended. `permit` is that of a retry, and `undefined` for a first attempt. */
  record(permit: number | undefined, health: ServerHealth): void;
  /** Returns the charge of a retry that was never made. */
  release(permit: number): void;
}

export interface TokenBudgetOptions {
  /** The maximum number of tokens. Default 500. */
  readonly capacity?: number;
  /** The number of tokens at the start. Default: the capacity. */
  readonly initial?: number;
  /** The cost of a retry, for all failures or by their kind. Default 5. */
  readonly cost?: number | Readonly<Partial<Record<FailureKind, number>>>;
  /** What a success puts back, also a fraction of a token. Default 5. */
  readonly reward?: number;
  /**
   * When the reward is put back: `every-success`, the default, or `last-cost`, the rule of the AWS SDKs, by which a successful
   * retry returns its own cost, and a successful first attempt the reward.
   */
  readonly refund?: "every-success" | "last-cost";
  /** Tokens that are added evenly over time, from the first requested retry on. Default: none. */
  readonly refill?: { readonly tokens: number; readonly perMs: number };
}

/** One token: tokens are kept in millionths, so that fractions add up exactly. */
const WHOLE = 1_000_000;
/** The largest number of tokens or of milliseconds: that of 32 bits, so that sums of millionths are exact. */
const LARGEST = 0xffff_ffff;

/**
 * A token bucket, the `Tokens` of `stagger-core`: every retry takes tokens, every success puts tokens back.
 *
 * ```text
 * retry:   tokens ≥ cost(kind)  →  tokens −= cost(kind); otherwise the retry is rejected
 * success: tokens = min(capacity, tokens + reward)
 * ```
 *
 * However many calls fail: retries · cost ≤ initial tokens + refill + rewards. With the default numbers, failing calls cause
 * at most 100 retries, and each success allows one more. A smaller reward bounds retries to a share of the successes:
 * `{ cost: 5, reward: 0.5 }` allows one retry for ten successes.
 */
export class TokenBudget implements RetryBudget {
  #millionths: number;
  /** Up to when the refill has been counted. */
  #refilled: bigint | undefined;
  readonly #capacity: number;
  readonly #reward: number;
  readonly #costs: Readonly<Record<FailureKind, number>>;
  readonly #refill: { readonly amount: bigint; readonly per: bigint } | undefined;
  readonly #returnsLastCost: boolean;

  /** @throws RangeError names every problem at once, with its values and how to fix it. */
  constructor(options: TokenBudgetOptions = {}) {
    const { capacity = 500, cost = 5, reward = 5, refund = "every-success", refill } = options;
    const { initial = capacity } = options;
    const costs = { transient: 5, throttled: 5, local: 5 };
    for (const kind of ["transient", "throttled", "local"] as const) {
      costs[kind] = typeof cost === "number" ? cost : (cost[kind] ?? 5);
    }
    const dearest = Math.max(costs.transient, costs.throttled, costs.local);
    const outside = Object.entries({ capacity, initial, reward, ...costs, ...refill }).filter(
      ([, value]) => !(value >= 0 && value <= LARGEST),
    );
    if (outside.length > 0) {
      throw new RangeError(outside.map(([name, value]) => `${name} is ${value}: use a number from 0 to ${LARGEST}`).join("; "));
    }
    const shown = (tokens: number) => decimal(BigInt(millionths(tokens)), 6);
    const problems: [boolean, string][] = [
      [capacity === 0, "capacity is 0, so every retry would be rejected: use at least the cost of a retry"],
      [
        initial > capacity,
        `initial ${shown(initial)} is above capacity ${shown(capacity)}: lower initial or raise capacity`,
      ],
      [
        capacity > 0 && dearest > capacity,
        `cost ${shown(dearest)} is above capacity ${shown(capacity)}, so that retry would always be rejected: lower the ` +
          "cost or raise capacity",
      ],
      [dearest === 0, "every cost is 0, so no retry would be rejected: use 1 or more, or leave out the budget"],
      [refill?.perMs === 0, "the refill period is 0s, so no retry would be rejected: use a longer period"],
    ];
    const found = problems.filter(([isWrong]) => isWrong).map(([, sentence]) => sentence);
    if (found.length > 0) {
      throw new RangeError(found.join("; "));
    }
    this.#capacity = millionths(capacity);
    this.#millionths = millionths(initial);
    this.#reward = millionths(reward);
    this.#costs = {
      transient: millionths(costs.transient),
      throttled: millionths(costs.throttled),
      local: millionths(costs.local),
    };
    this.#returnsLastCost = refund === "last-cost";
    // Milliseconds in millionths are nanoseconds.
    this.#refill = refill && { amount: BigInt(millionths(refill.tokens)), per: BigInt(millionths(refill.perMs)) };
  }

  /** Returns the number of tokens. A refill is applied when a retry is requested, and visible from then on. */
  get tokens(): number {
    return this.#millionths / WHOLE;
  }

  tryAcquire(kind: FailureKind, now: bigint): number | undefined {
    this.#applyRefill(now);
    const cost = this.#costs[kind];
    if (this.#millionths < cost) {
      return undefined;
    }
    this.#millionths -= cost;
    return cost;
  }

  record(permit: number | undefined, health: ServerHealth): void {
    if (health === "healthy") {
      this.#deposit(this.#returnsLastCost && permit !== undefined ? permit : this.#reward);
    }
  }

  release(permit: number): void {
    this.#deposit(permit);
  }

  #deposit(amount: number): void {
    this.#millionths = Math.min(this.#capacity, this.#millionths + amount);
  }

  #applyRefill(now: bigint): void {
    if (!this.#refill) {
      return;
    }
    const last = this.#refilled;
    if (last === undefined || now < last) {
      this.#refilled = last ?? now;
      return;
    }
    const { amount, per } = this.#refill;
    const capacity = BigInt(this.#capacity);
    const earned = ((now - last) * amount) / per;
    this.#deposit(Number(least(earned, capacity)));
    // The time that it took to earn them, rounded up: the remainder of a millionth is neither lost nor invented.
    const took = amount === 0n ? 0n : (earned * per + amount - 1n) / amount;
    this.#refilled = earned >= capacity ? now : last + took;
  }
}

function millionths(number: number): number {
  return Math.round(number * WHOLE);
}

export interface SuccessRateBudgetOptions {
  /** The share of the last attempts that must have succeeded: more than 0, at most 1. Default 0.9. */
  readonly share?: number;
  /** How many attempts count: 1 to 64. Default 50. */
  readonly last?: number;
}

/**
 * Rejects retries while too few of the last attempts succeeded: the `SuccessRate` of `stagger-core`.
 *
 * ```text
 * retry: failed of the last attempts ≤ ⌊(1 − share) · last⌋; otherwise the retry is rejected
 * ```
 *
 * Attempts that were never made count as successes. It recovers with first attempts that succeed, not with time.
 */
export class SuccessRateBudget implements RetryBudget {
  /** The last attempts, the newest in the lowest bit: 0 for a failure. */
  #attempts: bigint;
  #failed = 0;
  readonly #last: number;
  readonly #tolerated: number;

  /** @throws RangeError names every problem at once, with its values and how to fix it. */
  constructor({ share = 0.9, last = 50 }: SuccessRateBudgetOptions = {}) {
    const found = [];
    const part = millionths(share);
    if (!(part <= WHOLE)) {
      found.push(`share ${share * 100}% is above 100%: use at most 1`);
    }
    if (!(part > 0)) {
      found.push("share 0% is always reached, so no retry would be rejected: use more, like 0.9");
    }
    if (!(Number.isInteger(last) && last >= 1 && last <= 64)) {
      found.push(`${last} recent attempts are outside the range of 1 to 64: use 50`);
    }
    if (found.length > 0) {
      throw new RangeError(found.join("; "));
    }
    this.#last = last;
    this.#attempts = (1n << BigInt(last)) - 1n;
    this.#tolerated = Math.floor(((WHOLE - part) * last) / WHOLE);
  }

  /** Returns how many more attempts may fail before retries are rejected. */
  get available(): number {
    return Math.max(0, this.#tolerated - this.#failed);
  }

  tryAcquire(): number | undefined {
    return this.#failed <= this.#tolerated ? 0 : undefined;
  }

  record(_: number | undefined, health: ServerHealth): void {
    if (health === "unknown") {
      return;
    }
    const isOldestFailed = (this.#attempts >> BigInt(this.#last - 1)) & 1n ? 0 : 1;
    const isFailed = health === "ailing" ? 1 : 0;
    this.#failed += isFailed - isOldestFailed;
    this.#attempts = BigInt.asUintN(this.#last, (this.#attempts << 1n) | BigInt(1 - isFailed));
  }

  release(): void {}
}
