/** Quiet periods by key: when a server asks one call to wait, the calls that it limits together wait, too. */
import { type Clock, nanos } from "./clock.js";
import { timerMs } from "./delays.js";
import { least, SECOND } from "./numbers.js";
import { type QuietPermit, QuietPeriod } from "./quiet-period.js";
import type { Turns } from "./retry-call.js";
import type { AttemptOutcome } from "./retry-machine.js";
import { wait } from "./retry-wait.js";
import type { Settings } from "./settings.js";

export interface QuietPeriodsOptions {
  /**
   * Returns the key of a request: calls with the same key wait together. The body of the request is not the one that is sent.
   * Default: its origin, `credentials`, and the headers that say with whose credentials it is sent.
   */
  readonly key?: (request: Request) => string;
}

/** How many keys are remembered. */
const MAX_KEYS = 1_000;
/** The longest pause. */
const MAX = 300n * SECOND;
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

/** The parameters of a signature that say who has signed. The others differ from request to request. */
const SIGNER = ["credential", "keyid", "id", "username", "oauth_consumer_key", "oauth_token"];
/** Schemes whose value is an account, a colon and a signature. */
const ACCOUNT_AND_SIGNATURE = ["aws", "goog1", "sharedkey", "sharedkeylite"];
/** Schemes whose value is a credential, whatever it looks like. */
const OPAQUE = ["basic", "bearer"];

/**
 * The quiet periods of the calls that are given this object: one for each key, at most 1,000. Calls with further keys do not wait
 * for each other while all of these hold calls.
 */
export class QuietPeriods {
  readonly #periods = new Map<string, QuietPeriod>();
  readonly #key: (request: Request) => string;

  constructor({ key = originAndCredentials }: QuietPeriodsOptions = {}) {
    this.#key = key;
  }

  /** @internal */
  turns(request: Request, settings: Readonly<Settings>, clock: Clock): Turns<QuietPermit> | undefined {
    const now = () => nanos(clock.now());
    const period = this.#period(this.#key(request), now());
    return (
      period && {
        async turn(latest: bigint | undefined, signal: AbortSignal | undefined) {
          let held: QuietPermit | undefined;
          try {
            for (;;) {
              const turn = period.admit(held, latest, now());
              held = undefined;
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
        record: (permit: QuietPermit, outcome: AttemptOutcome) => period.record(permit, told(outcome, settings), now()),
        release: (permit: QuietPermit) => period.release(permit),
      }
    );
  }

  #period(key: string, now: bigint): QuietPeriod | undefined {
    const known = this.#periods.get(key);
    if (known) {
      return known;
    }
    if (this.#periods.size >= MAX_KEYS) {
      for (const [other, period] of this.#periods) {
        if (period.isAtRest() || (period.waiting === 0 && period.until < now)) {
          this.#periods.delete(other);
          break;
        }
      }
    }
    if (this.#periods.size >= MAX_KEYS) {
      return undefined;
    }
    const period = new QuietPeriod(MAX);
    this.#periods.set(key, period);
    return period;
  }
}

/** Returns what an outcome says to other calls: a hint that the policy refuses says nothing, and one that it shortens says less. */
function told(outcome: AttemptOutcome, { hint: mode, maxHint }: Readonly<Settings>): AttemptOutcome {
  if (outcome.kind !== "failed" || outcome.hint?.kind !== "at-least") {
    return outcome;
  }
  const { wait } = outcome.hint;
  if (maxHint !== null && wait > maxHint) {
    return { ...outcome, hint: undefined };
  }
  return mode.kind === "clamp" ? { ...outcome, hint: { kind: "at-least", wait: least(wait, mode.above) } } : outcome;
}

/** Returns the origin of a request, and with whose credentials it is sent. */
export function originAndCredentials(request: Request): string {
  const credentials = CREDENTIALS.map((name) => {
    const value = request.headers.get(name);
    return value !== null && name.endsWith("authorization") ? signer(value) : value;
  });
  return JSON.stringify([new URL(request.url).origin, request.credentials, ...credentials]);
}

/** Returns who sends a request, and of a signature not what it signs. */
function signer(value: string): unknown {
  const [scheme = "", ...words] = value.split(" ");
  const rest = words.join(" ");
  if (OPAQUE.includes(scheme.toLowerCase())) {
    return value;
  }
  if (ACCOUNT_AND_SIGNATURE.includes(scheme.toLowerCase())) {
    return [scheme, rest.split(":")[0]];
  }
  const found = rest.split(",").flatMap((parameter) => {
    const [name = "", ...texts] = parameter.trim().split("=");
    const text = texts.join("=");
    const isSigner = texts.length > 0 && SIGNER.includes(name.toLowerCase());
    // `Credential` of AWS: the id of the key, and then the date, region and service.
    return isSigner ? [name, name.toLowerCase() === "credential" ? text.split("/")[0] : text] : [];
  });
  return found.length > 0 ? [scheme, ...found] : value;
}
