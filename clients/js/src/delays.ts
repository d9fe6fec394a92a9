/**
 * The delays of a policy, to the nanosecond those of `stagger-core` for the same seed.
 *
 * The timers of JavaScript count milliseconds: {@link timerMs} rounds up, so that no attempt is made before its time.
 */
import { bits, draw, float, greatest, least, LONGEST, MAX_U64, MILLISECOND, Purpose, whole } from "./numbers.js";
import type { Policy } from "./policy.js";
import { baseOf, factorOf, type Jitter, jitterOf, localBaseOf, type Settings, throttledBaseOf } from "./settings.js";

/** What an attempt failed for: which base applies. */
export type FailureKind = "transient" | "throttled" | "local";

/** A drawn delay and the end of its interval, in nanoseconds, and the value that the next delay is computed from. */
export interface Drawn {
  readonly delay: bigint;
  readonly longest: bigint;
  readonly carry: number;
}

/** Returns the value that the delay of retry 1 is computed from. */
export function firstCarry(settings: Settings): number {
  return float(baseOf(settings));
}

/**
 * Draws the delay of retry `n` (from 1) from 64 random bits. `carry` is what the previous delay carried on; for the first
 * one {@link firstCarry}. `undefined`: there is no retry.
 */
export function nextDelay(
  settings: Settings,
  carry: number,
  n: number,
  kind: FailureKind,
  random: bigint,
): Drawn | undefined {
  const jitter = jitterOf(settings);
  const first = firstCarry(settings);
  const limit = settings.cap ?? LONGEST;
  // With added time, the cap is applied to the delay.
  const [cap, last] = jitter.kind === "add" ? [float(LONGEST), limit] : [float(limit), MAX_U64];
  const other = kind === "throttled" ? throttledBaseOf(settings) : localBaseOf(settings);
  const atKind = (ceiling: number) =>
    kind === "transient" ? ceiling : Math.min(cap, ceiling * factorOf(other, first));
  if (jitter.kind === "decorrelated") {
    const base = atKind(first);
    const longest = whole(Math.max(Math.min(cap, 3 * Math.max(carry, base)), base));
    const delay = draw(whole(base), longest, random);
    return { delay, longest, carry: Number(delay) };
  }
  let ceiling: bigint;
  let next = carry;
  switch (settings.backoff) {
    case "stop":
      return undefined;
    case "list":
      ceiling = settings.delays[Math.min(n, settings.delays.length) - 1] ?? 0n;
      break;
    default:
      ceiling = whole(atKind(carry));
      if (settings.backoff === "linear") {
        next = Math.min(cap, carry + float(settings.step));
      } else if (settings.backoff === "exponential") {
        next = Math.min(cap, carry * settings.multiplier);
      }
  }
  const [lo, hi] = interval(ceiling, settings);
  return { delay: least(draw(lo, hi, random), last), longest: least(hi, last), carry: next };
}

/** Returns the interval inside a ceiling. */
function interval(ceiling: bigint, settings: Settings): [bigint, bigint] {
  const floor = settings.backoff === "uniform" ? settings.min : settings.floor;
  const jitter: Jitter = settings.backoff === "zero" ? { kind: "full" } : jitterOf(settings);
  let lo = 0n;
  let hi = ceiling;
  switch (jitter.kind) {
    case "none":
      lo = ceiling;
      break;
    case "equal":
      lo = ceiling / 2n;
      break;
    case "share": {
      const part = least(whole(Number(ceiling) * (jitter.share / 1_000_000)), ceiling);
      [lo, hi] = [ceiling - part, ceiling + part];
      break;
    }
    case "add":
      [lo, hi] = [ceiling, least(ceiling + jitter.length, LONGEST)];
      break;
  }
  return [greatest(lo, floor), greatest(hi, floor)];
}

/**
 * Returns how many waits in a row hints that are followed exactly have shortened, with this one: from 1 to 3, and then 0 again. At 0
 * the wait is the larger of what the server has `asked` for and the `drawn` delay, so that a server which asks for the next
 * attempt at once, again and again, causes no tight loop.
 */
export function countShortened(before: number, asked: bigint, drawn: bigint): number {
  return asked < drawn ? (before + 1) % 4 : 0;
}

/**
 * Yields the delays of the call whose key is `seed`, in nanoseconds: `max-attempts − 1` of them, or an endless series
 * without that limit.
 *
 * @param seed A number of 64 bits.
 */
export function* delays(policy: Policy, seed: bigint): Generator<bigint, void, void> {
  const { settings } = policy;
  let carry = firstCarry(settings);
  const last = settings.maxAttempts ?? Infinity;
  for (let n = 1; n < last; n += 1) {
    // After 2^32 delays a list, the only backoff that uses the number, starts over.
    const number = n % 2 ** 32;
    const drawn = nextDelay(settings, carry, number, "transient", bits(seed & MAX_U64, 0, number, Purpose.Delay));
    if (!drawn) {
      return;
    }
    carry = drawn.carry;
    yield drawn.delay;
  }
}

/**
 * Returns the wait before the first action of an episode, for the call whose key is `seed`: uniform on `[0, spread]`, in
 * nanoseconds.
 *
 * @param seed A number of 64 bits.
 */
export function firstSpread(policy: Policy, seed: bigint): bigint {
  return draw(0n, policy.settings.spread, bits(seed & MAX_U64, 0, 0, Purpose.Spread));
}

/** Returns a length for a timer, in whole milliseconds, rounded up. */
export function timerMs(nanos: bigint): number {
  return Number((nanos + MILLISECOND - 1n) / MILLISECOND);
}
