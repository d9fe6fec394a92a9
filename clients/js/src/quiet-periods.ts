/** Quiet periods by target: when a server asks one call to wait, the calls that it limits together wait, too. */
import type { Clock } from "./clock.js";
import { timerMs } from "./delays.js";
import { least, SECOND } from "./numbers.js";
import { type QuietPermit, QuietPeriod } from "./quiet-period.js";
import type { Turns } from "./retry-call.js";
import type { AttemptOutcome } from "./retry-machine.js";
import { nanos, wait } from "./retry-wait.js";
import type { Settings } from "./settings.js";

/** How many targets are remembered. */
const MAX_TARGETS = 1_000;
const DAY = 86_400n * SECOND;
/** The headers whose values are credentials. */
const CREDENTIALS = [
  "authorization",
  "proxy-authorization",
  "cookie",
  "x-api-key",
  "api-key",
  "apikey",
  "x-goog-api-key",
  "x-auth-token",
  "x-access-token",
  "private-token",
  "ocp-apim-subscription-key",
];

/** The quiet periods of all calls that share this object, at most 1,000. Further targets have none while all of them hold calls. */
export class QuietPeriods {
  readonly #periods = new Map<string, QuietPeriod>();

  /** Returns whether the calls of this target start at once, as far as is known. */
  isOpen(key: string): boolean {
    return this.#periods.get(key)?.isAtRest() ?? true;
  }

  /** @internal */
  turns(key: string, settings: Readonly<Settings>, clock: Clock): Turns<QuietPermit> | undefined {
    const period = this.#period(key, settings);
    const now = () => nanos(clock.now());
    return (
      period && {
        async turn(latest: bigint | undefined, signal: AbortSignal | undefined) {
          let held: QuietPermit | undefined;
          try {
            for (;;) {
              const permit = held;
              held = undefined;
              const turn = period.admit(permit, latest, now());
              if (turn.kind === "rejected") {
                return { retryIn: turn.retryIn };
              }
              if (turn.kind === "now") {
                return { permit: turn.permit };
              }
              held = turn.permit;
              await wait(clock, timerMs(turn.after), signal);
            }
          } finally {
            if (held) {
              period.release(held);
            }
          }
        },
        wouldReject: (after: bigint, latest: bigint | undefined) => period.wouldReject(after, latest, now()),
        record: (permit: QuietPermit, outcome: AttemptOutcome) => period.record(permit, outcome, now()),
        release: (permit: QuietPermit) => period.release(permit),
      }
    );
  }

  #period(key: string, { hint, maxHint }: Readonly<Settings>): QuietPeriod | undefined {
    const known = this.#periods.get(key);
    if (known) {
      return known;
    }
    if (this.#periods.size >= MAX_TARGETS) {
      for (const [other, period] of this.#periods) {
        if (period.isAtRest()) {
          this.#periods.delete(other);
          break;
        }
      }
    }
    // A hint is followed as far as the policy follows it.
    const followed = least(maxHint ?? DAY, hint.kind === "clamp" ? hint.above : DAY);
    const max = least(followed, DAY);
    if (this.#periods.size >= MAX_TARGETS || max <= 0n) {
      return undefined;
    }
    const period = new QuietPeriod(max);
    this.#periods.set(key, period);
    return period;
  }
}

/** Returns the key of a request: its origin, and with whose credentials it is sent. */
export function quietKey(request: Request, headers: Headers): string {
  const credentials = CREDENTIALS.map((name) => headers.get(name));
  return JSON.stringify([new URL(request.url).origin, request.credentials, ...credentials]);
}
