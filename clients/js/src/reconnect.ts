/**
 * Decides for a long-lived connection when to connect, when to retry and when to give up: the `ReconnectMachine` of
 * `stagger-core` without guards. It reads no clock and does no I/O; points in time and lengths are in nanoseconds.
 */
import { countShortened, type FailureKind, firstCarry, nextDelay } from "./delays.js";
import { bits, draw, greatest, least, LONGEST, Purpose, SECOND } from "./numbers.js";
import type { Settings } from "./settings.js";

/** Why no further attempt is made. */
export type StopReason = "attempts" | "elapsed" | "exhausted" | "hint" | "permanent";

/** What determined a wait. */
export type WaitSource = "schedule" | "spread" | "hint";

/** What the end of an attempt or of a connection means. `asked` is the wait that the server asks for, exactly. */
export type Outcome =
  | { readonly kind: "permanent" }
  | { readonly kind: "failed"; readonly failure: FailureKind; readonly asked?: bigint };

export const TRANSIENT: Outcome = { kind: "failed", failure: "transient" };

/** What the driver has to do. */
export type Step =
  | { readonly kind: "connect"; readonly generation: number }
  | { readonly kind: "wait"; readonly after: bigint; readonly until: bigint; readonly source: WaitSource }
  | { readonly kind: "stop"; readonly reason: StopReason }
  | { readonly kind: "rest" | "stale" };

type Phase =
  | { readonly kind: "idle" | "connecting" | "stopped" | "closed" }
  | { readonly kind: "open"; readonly since: bigint }
  | { readonly kind: "waiting"; readonly until: bigint; readonly source: WaitSource };

/** What the spread is used for: not at all, in place of the backoff, or as the least wait beside it. */
type SpreadUse = "unused" | "instead" | "beside";

/** For how long and how many attempts the server could not be reached. */
export interface Unreachable {
  readonly since: bigint;
  lasted: bigint;
  attempts: number;
  /** How long it has to last until it is reported again. */
  nextReport: bigint;
}

/** After how many failed attempts in a row a server counts as unreachable. */
const UNREACHABLE_AFTER = 10;
const STABLE_AFTER = 10n * SECOND;
const REST: Step = { kind: "rest" };
const STALE: Step = { kind: "stale" };

export class ReconnectMachine {
  phase: Phase = { kind: "idle" };
  /** The number of the current connection or attempt, which every report names. */
  generation = 0;
  /** The number of attempts made in this episode. */
  attempt = 0;
  #episode = 0;
  /** The schedule has begun, with this value for the next delay. */
  #carry: number | undefined;
  /** 1 if the loss of a connection counts as the failure before the first attempt. */
  #ahead = 0;
  #start: bigint | undefined;
  /** How many waits in a row hints have shortened. */
  #shortened = 0;
  #lastWait = 0n;
  #isDistrusted = false;
  #outage: Unreachable | undefined;

  constructor(
    private readonly settings: Readonly<Settings>,
    private readonly seed: bigint,
  ) {}

  /** Returns the outage, if at least ten attempts have failed since the last connection was open. */
  get unreachable(): Unreachable | undefined {
    return this.#outage && this.#outage.attempts >= UNREACHABLE_AFTER ? this.#outage : undefined;
  }

  /** Returns the outage if it is due to be reported: after ten attempts, and each time it has lasted twice as long. */
  takeUnreachableReport(): Unreachable | undefined {
    const outage = this.unreachable;
    if (!outage || outage.lasted < outage.nextReport) {
      return undefined;
    }
    outage.nextReport = greatest(outage.lasted * 2n, outage.lasted + SECOND);
    return outage;
  }

  /** Begins a new episode and connects at once. After {@link close} it does nothing. */
  reconnectNow(now: bigint): Step {
    if (this.phase.kind === "closed") {
      return REST;
    }
    this.#beginEpisode();
    return this.#connect(now);
  }

  /** Connects if the wait is over; otherwise returns a step with the remaining wait. */
  due(now: bigint): Step {
    if (this.phase.kind !== "waiting") {
      return REST;
    }
    const { until, source } = this.phase;
    return now >= until ? this.#connect(now) : { kind: "wait", after: until - now, until, source };
  }

  /** Records that the attempt succeeded and the connection is open. */
  opened(generation: number, now: bigint): Step {
    if (generation !== this.generation || this.phase.kind !== "connecting") {
      return STALE;
    }
    this.phase = { kind: "open", since: now };
    this.#outage = undefined;
    return REST;
  }

  /** Marks the connection as unhealthy, however long it stays open. */
  distrust(generation: number): void {
    this.#isDistrusted ||= generation === this.generation;
  }

  /**
   * Returns whether the connection has been open for long enough to show that its server accepts this client: as long as a healthy
   * one, and if `stableAfter` is zero, as long as if it were not set.
   */
  isAccepted(now: bigint): boolean {
    // Zero is none: a server may accept every connection, and reject its credentials then.
    return this.phase.kind === "open" && this.#isStable(this.phase.since, now, this.settings.stableAfter || null);
  }

  /** Records that the attempt failed, or that the connection was lost. */
  ended(generation: number, outcome: Outcome, now: bigint): Step {
    const { phase } = this;
    if (generation !== this.generation || (phase.kind !== "open" && phase.kind !== "connecting")) {
      return STALE;
    }
    const isPermanent = outcome.kind === "permanent";
    let spread: SpreadUse = "unused";
    if (phase.kind === "open") {
      this.#outage = newOutage(now);
      spread = isPermanent ? spread : this.#lost(phase.since, now);
    }
    const step = isPermanent ? stop("permanent") : this.#retry(outcome, spread, now);
    if (phase.kind === "connecting" && this.#outage) {
      this.#outage.attempts += 1;
      this.#outage.lasted = greatest(now - this.#outage.since, 0n);
    }
    if (step.kind === "wait") {
      this.#lastWait = step.after;
      this.phase = { kind: "waiting", until: step.until, source: step.source };
    } else {
      this.phase = { kind: "stopped" };
    }
    return step;
  }

  /** Closes the connection for good: every later report is stale. */
  close(): void {
    this.phase = { kind: "closed" };
  }

  #connect(now: bigint): Step {
    this.#startClock(now);
    this.attempt += 1;
    this.generation += 1;
    this.#isDistrusted = false;
    this.phase = { kind: "connecting" };
    this.#outage ??= newOutage(now);
    return { kind: "connect", generation: this.generation };
  }

  /** Records the loss of a connection; a stable one begins a new episode. Returns what the spread is used for. */
  #lost(since: bigint, now: bigint): SpreadUse {
    const { spread, stableAfter } = this.settings;
    const isStable = this.#isStable(since, now, stableAfter);
    if (isStable) {
      this.#beginEpisode();
      this.#startClock(now);
      this.#ahead = spread > 0n ? 0 : 1;
    }
    return spread > 0n ? (isStable ? "instead" : "beside") : "unused";
  }

  #isStable(since: bigint, now: bigint, stableAfter: bigint | null): boolean {
    return now >= since + (stableAfter ?? greatest(this.#lastWait, STABLE_AFTER)) && !this.#isDistrusted;
  }

  #retry(outcome: Outcome & { kind: "failed" }, spread: SpreadUse, now: bigint): Step {
    const { settings, seed } = this;
    const number = this.attempt + this.#ahead;
    if (settings.maxAttempts !== null && number >= settings.maxAttempts) {
      return stop("attempts");
    }
    const spreadDraw = (n: number) => draw(0n, settings.spread, bits(seed, this.#episode, n, Purpose.Spread));
    let after: bigint;
    let source: WaitSource = "schedule";
    if (outcome.asked !== undefined && settings.maxHint !== null && outcome.asked > settings.maxHint) {
      return stop(settings.backoff === "stop" && spread !== "instead" ? "exhausted" : "hint");
    }
    if (spread === "instead") {
      [after, source] = [spreadDraw(0), "spread"];
    } else {
      const random = bits(seed, this.#episode, number, Purpose.Delay);
      const drawn = nextDelay(settings, this.#carry ?? firstCarry(settings), number, outcome.failure, random);
      if (!drawn) {
        return stop("exhausted");
      }
      this.#carry = drawn.carry;
      after = drawn.delay;
      // Draw 0 is that of the episode.
      const wait = spread === "beside" ? spreadDraw(number) : 0n;
      if (wait > after) {
        [after, source] = [wait, "spread"];
      }
    }
    const asked = least(outcome.asked ?? after, LONGEST);
    // Every fourth wait in a row that a hint would shorten is as long as it was drawn.
    this.#shortened = countShortened(this.#shortened, asked, after);
    after = this.#shortened > 0 ? asked : greatest(asked, after);
    source = outcome.asked === undefined ? source : "hint";
    const { maxElapsed } = settings;
    if (maxElapsed !== null && this.#start !== undefined && now + after - this.#start > maxElapsed) {
      return stop("elapsed");
    }
    return { kind: "wait", after, until: now + after, source };
  }

  #beginEpisode(): void {
    this.#episode = (this.#episode + 1) & 0xffff;
    this.attempt = this.#ahead = this.#shortened = 0;
    this.#carry = this.#start = undefined;
  }

  #startClock(now: bigint): void {
    if (this.settings.maxElapsed !== null) {
      this.#start ??= now;
    }
  }
}

function stop(reason: StopReason): Step {
  return { kind: "stop", reason };
}

function newOutage(since: bigint): Unreachable {
  return { since, lasted: 0n, attempts: 0, nextReport: 0n };
}

/**
 * Returns another wait if a timer fired more than a second `late`: uniform on `[0, min(late, span)]`; otherwise 0. The
 * device has slept then, or the page was frozen, and all timers that came due meanwhile fire in the same instant.
 */
export function spreadAgain(late: bigint, span: bigint, random: bigint): bigint {
  return late <= SECOND ? 0n : draw(0n, least(late, span), random);
}
