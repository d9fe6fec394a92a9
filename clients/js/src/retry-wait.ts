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
    const forget = whenAborted(signal, () => {
      timer.disarm();
      reject(signal?.reason);
    });
    timer.wait(ms, (lateMs) => {
      forget();
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
    const { any } = AbortSignal as { any?: (signals: AbortSignal[]) => AbortSignal };
    const joined = signal && any ? any.call(AbortSignal, [signal, own.signal]) : own.signal;
    let isOver = false;
    let timer: unknown;
    const over = () => {
      isOver = true;
      clock.clearTimeout(timer);
    };
    const forget = whenAborted(signal, () => {
      over();
      reject(signal?.reason);
      own.abort(signal?.reason);
    });
    const failed = (end: Ended<T>) => {
      over();
      forget();
      resolve(end);
    };
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
        forget();
        if (signal && !any && Object(value) === value) {
          follow(own, signal, (value instanceof Response && value.body) || (value as object));
        }
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

const COLLECTED = /* @__PURE__ */ new FinalizationRegistry<() => void>((forget) => forget());

/** Aborts `own` with the caller's signal for as long as a value is in use that may depend on it, such as the body of a response. */
function follow(own: AbortController, signal: AbortSignal, value: object): void {
  COLLECTED.register(value, whenAborted(signal, () => own.abort(signal.reason)));
}

/** What waits for each signal. One listener serves all of it, because Node warns of a leak when a signal has more than ten. */
const WAITING = new WeakMap<EventTarget, Set<() => void>>();

/** Calls `aborted` when the signal is aborted, unless the function that it returns is called before. */
function whenAborted(signal: AbortSignal | undefined, aborted: () => void): () => void {
  if (!signal) {
    return () => {};
  }
  const waiting = WAITING.get(signal) ?? new Set();
  WAITING.set(signal, waiting.add(aborted));
  // The same listener is added once.
  signal.addEventListener("abort", notify, { once: true });
  return () => {
    if (waiting.delete(aborted) && waiting.size === 0) {
      WAITING.delete(signal);
      signal.removeEventListener("abort", notify);
    }
  };
}

function notify({ target: signal }: Event): void {
  const waiting = WAITING.get(signal as EventTarget);
  WAITING.delete(signal as EventTarget);
  waiting?.forEach((aborted) => aborted());
}
