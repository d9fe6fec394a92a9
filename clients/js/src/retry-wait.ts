/** Waits and attempts of one call: what ends them is the clock, the caller's signal, or the operation. */
import { type Clock, LONGEST_TIMER_MS } from "./clock.js";
import { Timer } from "./timer.js";

/**
 * Waits, and resolves with how many milliseconds late the timer fired. The wall clock tells of a device that slept while the
 * other clock stood still.
 *
 * @throws The reason of the signal, as soon as it is aborted.
 */
export function wait(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<number> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const timer = new Timer(clock);
    const aborted = () => {
      timer.disarm();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", aborted, { once: true });
    timer.wait(ms, (lateMs) => {
      signal?.removeEventListener("abort", aborted);
      resolve(lateMs);
    });
  });
}

/** What an attempt ended with. */
export type Ended<T> = { readonly value: T } | { readonly error: unknown; readonly isTimeout?: true };

/**
 * Makes one attempt, for at most `limitMs`, and resolves with its value or its error, also if `run` throws. The signal that
 * `run` receives is aborted with the caller's, and when the time is over. What `run` returns after the end of the attempt goes
 * to `discard`.
 *
 * @throws The reason of the caller's signal, as soon as it is aborted.
 */
export function attempt<T>(
  clock: Clock,
  limitMs: number,
  signal: AbortSignal | undefined,
  run: (signal: AbortSignal) => T | PromiseLike<T>,
  discard: ((value: T) => void) | undefined,
): Promise<Ended<T>> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const own = new AbortController();
    const [joined, unjoin] = join(own, signal);
    let isOver = false;
    let timer: unknown;
    const over = () => {
      isOver = true;
      clock.clearTimeout(timer);
      signal?.removeEventListener("abort", aborted);
    };
    const failed = (end: Ended<T>) => {
      over();
      unjoin();
      resolve(end);
    };
    const aborted = () => {
      over();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", aborted);
    if (limitMs <= LONGEST_TIMER_MS) {
      timer = clock.setTimeout(() => {
        const error = new DOMException(`the attempt took longer than ${limitMs} ms`, "TimeoutError");
        failed({ error, isTimeout: true });
        own.abort(error);
      }, Math.max(limitMs, 0));
    }
    new Promise<T>((made) => made(run(joined))).then(
      (value) => {
        if (isOver) {
          discard?.(value);
          return;
        }
        over();
        resolve({ value });
      },
      (error) => {
        // An error after the end is nobody's.
        if (!isOver) {
          failed({ error });
        }
      },
    );
  });
}

/** Returns a signal that is aborted with either, and a function that ends the connection to the caller's. */
function join(own: AbortController, signal: AbortSignal | undefined): [AbortSignal, () => void] {
  if (!signal) {
    return [own.signal, () => {}];
  }
  const { any } = AbortSignal as { any?: (signals: readonly AbortSignal[]) => AbortSignal };
  if (any) {
    return [any.call(AbortSignal, [signal, own.signal]), () => {}];
  }
  // The listener outlives a success, whose value may still depend on the signal, such as the body of a response.
  const aborted = () => own.abort(signal.reason);
  signal.addEventListener("abort", aborted);
  return [own.signal, () => signal.removeEventListener("abort", aborted)];
}
