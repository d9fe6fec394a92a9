/** A budget that allows a share of the calls. */
import { nanos } from "./clock.js";
import { SECOND } from "./numbers.js";
import type { RetryBudget } from "./retry-budget.js";
import { compact } from "./text.js";

export interface WindowBudgetOptions {
  /** How long a call counts, in milliseconds: 1,000 to 60,000. Default 10 s. */
  readonly ttlMs?: number;
  /** How many retries each call allows, from 0 to 1. Default 0.2. */
  readonly ratio?: number;
  /** How many retries per second are allowed in addition: a whole number. Default 10. */
  readonly minPerSecond?: number;
}

const MILLION = 1_000_000n;
const SLOTS = 10;
/** The largest count of a slot. */
const FULL = 2 ** 27 - 1;

/** A count over the last ten slots of time. */
class Slots {
  readonly #slots = Array.from({ length: SLOTS }, () => ({ slot: 0n, count: 0 }));

  /** Counts one more in a slot; does nothing if that slot is outdated. */
  add(slot: bigint): void {
    const own = this.#begin(slot);
    if (own.slot === slot) {
      own.count = Math.min(own.count + 1, FULL);
    }
  }

  /** Counts one less in a slot, if it is not yet outdated. */
  takeBack(slot: bigint): void {
    const own = this.#at(slot);
    if (own.slot === slot && own.count > 0) {
      own.count -= 1;
    }
  }

  /** Returns the count over the slots that still count in `slot`. */
  sum(slot: bigint): number {
    return this.#slots.reduce((sum, own) => (own.slot > slot - BigInt(SLOTS) ? sum + own.count : sum), 0);
  }

  /** Lets the slots before `slot` begin, so that nothing is counted in one of them later. */
  close(slot: bigint): void {
    for (let before = slot < SLOTS ? 0n : slot - BigInt(SLOTS) + 1n; before < slot; before += 1n) {
      this.#begin(before);
    }
  }

  /** Returns the newest slot that has begun. */
  newest(): bigint {
    return this.#slots.reduce((newest, { slot }) => (slot > newest ? slot : newest), 0n);
  }

  #begin(slot: bigint): { slot: bigint; count: number } {
    const own = this.#at(slot);
    if (own.slot < slot) {
      own.slot = slot;
      own.count = 0;
    }
    return own;
  }

  #at(slot: bigint): { slot: bigint; count: number } {
    return this.#slots[Number(slot % BigInt(SLOTS))] as { slot: bigint; count: number };
  }
}

/**
 * Bounds the retries by a share of the calls over a sliding window, plus a minimum per second: the `Window` of `stagger-core`.
 *
 * ```text
 * retry: retries(ttl) + 1 ≤ ratio · calls(ttl) + minPerSecond · ttl; otherwise it is rejected
 * ```
 *
 * The share is exact in millionths. The window has ten slots of a tenth of the ttl: a call or retry counts for between nine
 * tenths of the ttl and the whole. N calls in the window cause at most `⌊ratio · N + minPerSecond · ttl⌋` retries, however many
 * fail, and it recovers with time. With little traffic the minimum dominates: by default a page has 100 retries in 10 s without
 * any call that succeeds, so set it to 0 or 1 for clients of which there are many.
 *
 * Source: Finagle, `RetryBudget`. Differs from it in: a share above 1 is rejected.
 */
export class WindowBudget implements RetryBudget {
  readonly #ttl: bigint;
  readonly #ratio: bigint;
  readonly #minimum: bigint;
  readonly #calls = new Slots();
  readonly #retries = new Slots();
  /** The slot of the latest requested retry: once a slot is over, it is over. */
  #latest = 0n;

  /** @throws RangeError names every problem at once, with its values and how to fix it. */
  constructor({ ttlMs = 10_000, ratio = 0.2, minPerSecond = 10 }: WindowBudgetOptions = {}) {
    const found = [];
    if (!(ttlMs >= 1_000 && ttlMs <= 60_000)) {
      const shown = ttlMs >= 0 && ttlMs < Infinity ? compact(nanos(ttlMs)) : ttlMs;
      found.push(`window ${shown} is outside the range of this budget, 1s to 60s: change it`);
    }
    if (!(ratio >= 0 && ratio <= 1)) {
      found.push(`share ${ratio * 100}% is outside 0% to 100%: use at most 1`);
    }
    if (!(Number.isInteger(minPerSecond) && minPerSecond >= 0 && minPerSecond < 2 ** 32)) {
      found.push(`minPerSecond is ${minPerSecond}: use a whole number from 0`);
    }
    if (found.length > 0) {
      throw new RangeError(found.join("; "));
    }
    this.#ttl = nanos(ttlMs);
    // In millionths, as milliseconds are nanoseconds.
    this.#ratio = nanos(ratio);
    this.#minimum = BigInt(minPerSecond) * this.#ttl;
  }

  /** Returns how many retries were available at the last call or requested retry. */
  get available(): number {
    const [calls, retries] = [this.#calls.newest(), this.#retries.newest()];
    const slot = calls > retries ? calls : retries;
    return Math.max(0, this.#allowed(slot) - this.#retries.sum(slot));
  }

  onFirstAttempt(now: bigint): void {
    this.#calls.add(this.#slot(now));
  }

  tryAcquire(_: unknown, now: bigint): number | undefined {
    const at = this.#slot(now);
    const slot = at > this.#latest ? at : this.#latest;
    this.#latest = slot;
    this.#retries.close(slot);
    if (this.#retries.sum(slot) >= this.#allowed(slot)) {
      return undefined;
    }
    this.#retries.add(slot);
    return Number(slot);
  }

  record(): void {}

  release(permit: number): void {
    this.#retries.takeBack(BigInt(permit));
  }

  /** Returns how many retries the calls in the window allow. */
  #allowed(slot: bigint): number {
    // One sum, so that two halves make a whole.
    const share = BigInt(this.#calls.sum(slot)) * this.#ratio * SECOND;
    return Number((share + this.#minimum * MILLION) / (MILLION * SECOND));
  }

  #slot(now: bigint): bigint {
    const slot = now / (this.#ttl / BigInt(SLOTS));
    return slot > 0n ? slot : 0n;
  }
}
