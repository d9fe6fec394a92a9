/** One probe for all tabs: a lock of the Web Locks API belongs to the tab whose call is the probe. */
import type { Clock } from "./clock.js";
import { whenAborted } from "./retry-wait.js";

/** The part of the platform's `LockManager` that is used. */
interface Locks {
  request(name: string, options: { ifAvailable: true }, callback: (lock: unknown) => Promise<void> | undefined): Promise<unknown>;
  query(): Promise<{ held?: { name?: string; clientId?: string }[] }>;
}

/** Releases a lock; at once if there is none. */
export type Unlock = () => void;

/** How long a lock is held at most, and how long the platform may take to answer: as long as a probe may take. */
const MAX_MS = 30_000;
const nothing: Unlock = () => {};

function platform(): Locks | undefined {
  return (globalThis as { navigator?: { locks?: Locks } }).navigator?.locks;
}

/**
 * Takes a lock for at most 30 s, and resolves with what releases it, or with `undefined` if another tab has it. A tab that is closed
 * releases its locks. A platform without locks, which refuses them (insecure or sandboxed pages), or which does not answer within
 * 30 s locks nothing. Resolves with `undefined` as soon as the signal is aborted, too.
 */
export function lockProbe(name: string, clock: Clock, signal: AbortSignal | undefined): Promise<Unlock | undefined> {
  return answer<Unlock>(clock, signal, nothing, async (locks, settle) =>
    locks.request(name, { ifAvailable: true }, (lock) => {
      if (!lock) {
        settle(undefined);
        return undefined;
      }
      return new Promise<void>((release) => {
        const limit = clock.setTimeout(release, MAX_MS);
        const unlock = () => {
          clock.clearTimeout(limit);
          release();
        };
        if (!settle(unlock)) {
          unlock();
        }
      });
    }),
  );
}

/** Resolves with the locks whose names begin so, and the tabs that have them; with none if the platform does not tell. */
export async function holders(prefix: string, clock: Clock, signal: AbortSignal | undefined): Promise<string[]> {
  const held = await answer<string[]>(clock, signal, [], async (locks, settle) => {
    const { held = [] } = await locks.query();
    settle(held.filter(({ name = "" }) => name.startsWith(prefix)).map(({ name, clientId }) => `${name} ${clientId}`));
  });
  return held?.sort() ?? [];
}

/** Resolves with what `ask` settles, or with `silent` if the platform does not answer; with `undefined` if the signal is aborted. */
function answer<T>(
  clock: Clock,
  signal: AbortSignal | undefined,
  silent: T,
  ask: (locks: Locks, settle: (value: T | undefined) => boolean) => Promise<unknown>,
): Promise<T | undefined> {
  const locks = platform();
  if (!locks) {
    return Promise.resolve(silent);
  }
  return new Promise((resolve) => {
    let isSettled = false;
    /** Returns whether it is the first. */
    const settle = (value: T | undefined) => {
      const isFirst = !isSettled;
      isSettled = true;
      clock.clearTimeout(timer);
      forget();
      resolve(value);
      return isFirst;
    };
    const timer = clock.setTimeout(() => settle(silent), MAX_MS);
    const forget = whenAborted(signal, () => settle(undefined));
    ask(locks, settle).catch(() => settle(silent));
  });
}
