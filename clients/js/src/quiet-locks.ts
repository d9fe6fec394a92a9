/** One probe for all tabs: a lock of the Web Locks API belongs to the tab whose call is the probe. */
import type { Clock } from "./clock.js";

/** The part of the platform's `LockManager` that is used. */
interface Locks {
  request(name: string, options: { ifAvailable: true }, callback: (lock: unknown) => Promise<void> | undefined): Promise<unknown>;
}

/** Releases a lock; at once if there is none. */
export type Unlock = () => void;

/** How long a lock is held at most, and how long the platform may take to answer: as long as a probe may take. */
const MAX_MS = 30_000;

/**
 * Takes a lock for at most 30 s, and resolves with what releases it, or with `undefined` if another tab has it. A tab that is closed
 * releases its locks. A platform without locks, which refuses them (insecure or sandboxed pages), or which does not answer within
 * 30 s locks nothing. Resolves with `undefined` as soon as the signal is aborted, too.
 */
export function lockProbe(name: string, clock: Clock, signal: AbortSignal | undefined): Promise<Unlock | undefined> {
  const { locks } = (globalThis as { navigator?: { locks?: Locks } }).navigator ?? {};
  const nothing = () => {};
  if (!locks) {
    return Promise.resolve(nothing);
  }
  return new Promise((resolve) => {
    let isSettled = false;
    const settle = (unlock: Unlock | undefined) => {
      isSettled = true;
      clock.clearTimeout(timer);
      signal?.removeEventListener("abort", aborted);
      resolve(unlock);
    };
    const aborted = () => settle(undefined);
    const timer = clock.setTimeout(() => settle(nothing), MAX_MS);
    signal?.addEventListener("abort", aborted);
    const granted = (lock: unknown) => {
      if (!lock || isSettled) {
        settle(undefined);
        return undefined;
      }
      return new Promise<void>((release) => {
        const limit = clock.setTimeout(release, MAX_MS);
        settle(() => {
          clock.clearTimeout(limit);
          release();
        });
      });
    };
    locks.request(name, { ifAvailable: true }, granted).catch(() => settle(nothing));
  });
}
