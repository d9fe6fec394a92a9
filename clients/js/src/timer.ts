/** The one timer of a client. */
import { type Clock, LONGEST_TIMER_MS } from "./clock.js";

export class Timer {
  readonly #clock: Clock;
  #id: unknown;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls back after this many milliseconds, in place of what was armed before; earlier if timers cannot be that long. */
  arm(callback: () => void, ms: number): void {
    this.disarm();
    this.#id = this.#clock.setTimeout(callback, Math.min(ms, LONGEST_TIMER_MS));
  }

  /** Clears the timer. Clocks ignore one that has fired, and none. */
  disarm(): void {
    this.#clock.clearTimeout(this.#id);
  }

  /** Calls `ended` when this many milliseconds have passed, with how many more have passed. Returns when that is. */
  wait(ms: number, ended: (lateMs: number) => void): number {
    const clock = this.#clock;
    const [until, wall] = [clock.now() + ms, clock.wall() + ms];
    const fire = () => {
      // A clock that stops while the device sleeps says that the timer was punctual.
      const late = Math.max(clock.now() - until, clock.wall() - wall);
      if (late < 0) {
        this.arm(fire, -late);
      } else {
        ended(late);
      }
    };
    this.arm(fire, ms);
    return until;
  }
}
