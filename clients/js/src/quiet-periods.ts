/** Quiet periods by target: when a server asks one call to wait, the calls that it limits together wait, too. */
import { type Clock, nanos, PLATFORM } from "./clock.js";
import { timerMs } from "./delays.js";
import { least, randomSeed, SECOND, seedForCall } from "./numbers.js";
import { holders, lockProbe, type Unlock } from "./quiet-locks.js";
import { type QuietPermit, QuietPeriod } from "./quiet-period.js";
import type { Turns } from "./retry-call.js";
import type { AttemptOutcome } from "./retry-machine.js";
import { wait } from "./retry-wait.js";
import type { Settings } from "./settings.js";

/** What the tabs of an origin tell each other of a target. */
interface TabMessage {
  /** That its server asks for quiet for so many milliseconds, or that it has answered the first request after that. */
  readonly stagger: "pause" | "answered";
  /** A hash: credentials are not sent. */
  readonly target: string;
  readonly ms?: number;
}

export interface QuietPeriodsOptions {
  /**
   * Shares pauses with the tabs and workers of the origin that have the same name here, through a `BroadcastChannel`, where the
   * platform has it. With `navigator.locks`, one of them sends the first request after a pause, and the others wait for its answer.
   * Default: they are not shared.
   */
  readonly channel?: string;
  /** The longest pause that another tab can cause, in milliseconds. Default 5 min. */
  readonly maxSharedMs?: number;
  /** For tests. */
  readonly clock?: Clock;
}

/** The longest pause that another tab can cause by default. */
const MAX_SHARED_MS = 300_000;
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

/** The parameters of a signature that say who has signed. The others differ from request to request. */
const SIGNER = ["credential", "keyid", "id", "username", "oauth_consumer_key", "oauth_token"];
/** Schemes whose value is an account, a colon and a signature. */
const ACCOUNT_AND_SIGNATURE = ["aws", "goog1", "sharedkey", "sharedkeylite"];
/** Schemes whose value is a credential, whatever it looks like. */
const OPAQUE = ["basic", "bearer"];

/** The quiet periods of all calls that share this object, at most 1,000. Further targets have none while all of them hold calls. */
export class QuietPeriods {
  readonly #periods = new Map<string, QuietPeriod>();
  readonly #clock: Clock;
  readonly #locks = new WeakMap<QuietPermit, Unlock>();
  #channel: BroadcastChannel | undefined;

  constructor({ channel, maxSharedMs = MAX_SHARED_MS, clock = PLATFORM }: QuietPeriodsOptions = {}) {
    if (!(maxSharedMs > 0)) {
      throw new RangeError(`maxSharedMs is ${maxSharedMs}: use more than 0`);
    }
    this.#clock = clock;
    if (channel !== undefined && typeof BroadcastChannel === "function") {
      this.#channel = new BroadcastChannel(channel);
      this.#channel.onmessage = ({ data }: MessageEvent) => {
        const message = messageIn(data, maxSharedMs);
        const now = nanos(this.#clock.now());
        if (message?.ms !== undefined) {
          const max = nanos(Math.min(maxSharedMs, 86_400_000));
          this.#period(message.target, max)?.pause(nanos(message.ms), now);
        } else if (message) {
          this.#periods.get(message.target)?.answeredElsewhere(randomSeed(), now);
        }
      };
      // Node would wait for messages instead of ending.
      (this.#channel as { unref?: () => void }).unref?.();
    }
  }

  /** Stops sharing. Pauses that have begun are kept. */
  close(): void {
    this.#channel?.close();
    this.#channel = undefined;
  }

  /** Returns whether the calls of this target start at once, as far as is known. */
  isOpen(key: string): boolean {
    return this.#periods.get(hash(key))?.isAtRest() ?? true;
  }

  /** @internal */
  turns(key: string, settings: Readonly<Settings>, clock: Clock): Turns<QuietPermit> | undefined {
    const target = hash(key);
    const period = this.#period(target, followed(settings));
    const now = () => nanos(clock.now());
    const locks = this.#locks;
    const isShared = () => this.#channel !== undefined;
    const lock = (period: QuietPeriod, signal: AbortSignal | undefined) => this.#lock(period, target, clock, signal);
    const unlock = (permit: QuietPermit) => locks.get(permit)?.();
    return (
      period && {
        async turn(latest: bigint | undefined, signal: AbortSignal | undefined) {
          let held: QuietPermit | undefined;
          try {
            for (;;) {
              // One reading of the clock decides who has the probe: a second one may be later.
              let at = now();
              let unlock: Unlock | undefined;
              if (isShared() && period.isProbeDue(at)) {
                const locked = await lock(period, signal);
                unlock = typeof locked === "string" ? undefined : locked;
                if (signal?.aborted) {
                  unlock?.();
                  throw signal.reason;
                }
                at = now();
                if (typeof locked === "string") {
                  period.probedElsewhere(locked, at);
                }
              }
              const permit = held;
              held = undefined;
              const turn = period.admit(permit, latest, at);
              if (turn.kind === "now" && turn.permit.kind === "probe" && unlock) {
                locks.set(turn.permit, unlock);
              } else {
                unlock?.();
              }
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
        record: (permit: QuietPermit, outcome: AttemptOutcome) => {
          const at = now();
          const wasProbing = period.state === "probing";
          period.record(permit, outcome, at);
          const left = period.state === "quiet" ? period.until - at : 0n;
          if (outcome.kind === "failed" && outcome.failure === "throttled" && left > 0n) {
            this.#tell({ stagger: "pause", target, ms: timerMs(left) });
          } else if (wasProbing && period.state === "returning") {
            this.#tell({ stagger: "answered", target });
          }
          unlock(permit);
        },
        release: (permit: QuietPermit) => {
          period.release(permit);
          unlock(permit);
        },
      }
    );
  }

  /**
   * Asks the other tabs for the probe. A tab that has it for too long, because it is frozen, is passed over. Resolves with who has it
   * if the caller does not.
   */
  async #lock(period: QuietPeriod, target: string, clock: Clock, signal: AbortSignal | undefined): Promise<Unlock | string> {
    const prefix = `stagger ${this.#channel?.name} ${target} `;
    const held = await holders(prefix, clock, signal);
    const who = held.join();
    const patience = held.length === 0 ? "passes-over" : period.patience(who, nanos(clock.now()));
    if (patience === "ends") {
      return () => {};
    }
    // The lowest lock that is free: one tab gets it.
    for (let level = 0; patience === "passes-over" && level <= held.length && !signal?.aborted; level += 1) {
      const unlock = await lockProbe(prefix + level, clock, signal);
      if (unlock) {
        return unlock;
      }
    }
    return who;
  }

  #tell(message: TabMessage): void {
    this.#channel?.postMessage(message);
  }

  #period(target: string, max: bigint): QuietPeriod | undefined {
    const known = this.#periods.get(target);
    if (known) {
      return known;
    }
    if (this.#periods.size >= MAX_TARGETS) {
      const now = nanos(this.#clock.now());
      for (const [other, period] of this.#periods) {
        if (period.isAtRest() || (period.waiting === 0 && period.until < now)) {
          this.#periods.delete(other);
          break;
        }
      }
    }
    if (this.#periods.size >= MAX_TARGETS || max <= 0n) {
      return undefined;
    }
    const period = new QuietPeriod(max);
    this.#periods.set(target, period);
    return period;
  }
}

/** Returns how long the hints are at most that the policy follows. */
function followed({ hint, maxHint }: Readonly<Settings>): bigint {
  return least(least(maxHint ?? DAY, hint.kind === "clamp" ? hint.above : DAY), DAY);
}

/** Returns the message of another tab, if it is one, with a bounded pause: every script of the origin can send any. */
function messageIn(data: unknown, maxMs: number): TabMessage | undefined {
  if (typeof data !== "object" || data === null) {
    return undefined;
  }
  const { stagger, target, ms } = data as Partial<Record<keyof TabMessage, unknown>>;
  if (typeof target !== "string" || !/^[0-9a-f]{16}$/.test(target)) {
    return undefined;
  }
  if (stagger === "pause" && typeof ms === "number" && ms > 0) {
    return { stagger, target, ms: Math.min(ms, maxMs) };
  }
  return stagger === "answered" ? { stagger, target } : undefined;
}

/** Returns 64 bits of a text as hexadecimal digits. Equal in all tabs, and not for secrets that can be guessed. */
function hash(text: string): string {
  let hash = 0n;
  for (const byte of new TextEncoder().encode(text)) {
    hash = seedForCall(hash, BigInt(byte));
  }
  return hash.toString(16).padStart(16, "0");
}

/** Returns the key of a request: its origin, and with whose credentials it is sent. */
export function quietKey(request: Request, headers: Headers): string {
  const credentials = CREDENTIALS.map((name) => {
    const value = headers.get(name);
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
