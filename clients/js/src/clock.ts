/** Time and timers. */

/** The time and the timers of the platform. */
export interface Clock {
  /** Returns milliseconds of a clock that is not set. */
  now(): number;
  /** Returns milliseconds of a clock that goes on while the device sleeps. */
  wall(): number;
  setTimeout(callback: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

/** Timers fire at once beyond this number of milliseconds. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const PLATFORM: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer) => clearTimeout(timer as number),
};

/** Returns milliseconds as whole nanoseconds. */
export function nanos(ms: number): bigint {
  return BigInt(Math.round(ms * 1e6));
}
