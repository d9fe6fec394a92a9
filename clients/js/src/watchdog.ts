/** Time limits that do not count time in which the page did not run. */
import { type Clock, LONGEST_TIMER_MS } from "./clock.js";

/** A timer that is later than this was held up: the page was frozen, the device has slept, or the page is hidden. */
const LATE_MS = 1_000;
/** Browsers delay the timers of hidden pages to one in a minute. A timer that is later than this was held up by more. */
const THROTTLED_MS = 61_000;

/**
 * A time limit for a peer. If its timer was held up, what the peer has sent meanwhile may not have been handled yet, so the
 * limit is granted once more. After that only a frozen page or a sleeping device extends it again, and not the delay that
 * hidden pages always have.
 */
export class Watchdog {
  readonly #clock: Clock;
  #timer: unknown;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `expired` after this many milliseconds, in place of what was armed before. */
  arm(ms: number, expired: () => void): void {
    this.#arm(Math.min(ms, LONGEST_TIMER_MS), expired, LATE_MS);
  }

  disarm(): void {
    if (this.#timer !== undefined) {
      this.#clock.clearTimeout(this.#timer);
      this.#timer = undefined;
    }
  }

  #arm(ms: number, expired: () => void, tolerated: number): void {
    this.disarm();
    const [now, wall] = [this.#clock.now(), this.#clock.wall()];
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined;
      // A clock that stops while the device sleeps says that the timer was punctual.
      const late = Math.max(this.#clock.now() - now, this.#clock.wall() - wall) - ms;
      if (late > tolerated) {
        this.#arm(ms, expired, THROTTLED_MS);
      } else {
        expired();
      }
    }, ms);
  }
}
