/**
 * Decides for a long-lived connection when to connect, when to retry and when to give up: the `ReconnectMachine` of
 * `stagger-core` without guards. It reads no clock and does no I/O; points in time and lengths are in nanoseconds.
 */
import { type FailureKind, firstCarry, nextDelay } from "./delays.js";
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

/** For how long and how many attempts the server could not be reached. */
export interface Unreachable {
  readonly since: bigint;
  readonly lasted: bigint;
  readonly attempts: number;
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
  /** The loss of a connection counts as the failure before the first attempt. */
  #isAhead = false;
  #start: bigint | undefined;
  #lastWait = 0n;
  #isDistrusted = false;
  #outage: { since: bigint; lasted: bigint; attempts: number; nextReport: bigint; isReportDue: boolean } | undefined;

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
    if (!this.#outage?.isReportDue) {
      return undefined;
    }
    this.#outage.isReportDue = false;
    return this.unreachable;
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

  /** Records that the attempt failed, or that the connection was lost. */
  ended(generation: number, outcome: Outcome, now: bigint): Step {
    if (generation !== this.generation) {
      return STALE;
    }
    let step: Step;
    if (this.phase.kind === "open") {
      const lived = greatest(now - this.phase.since, 0n);
      const enough = this.settings.stableAfter ?? greatest(this.#lastWait, STABLE_AFTER);
      this.#outage = newOutage(now);
      step = this.#lost(lived >= enough && !this.#isDistrusted, outcome, now);
    } else if (this.phase.kind === "connecting") {
      step = outcome.kind === "permanent" ? stop("permanent") : this.#retry(outcome, "unused", now);
      this.#attemptFailed(now);
    } else {
      return STALE;
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

  #lost(isStable: boolean, outcome: Outcome, now: bigint): Step {
    if (outcome.kind === "permanent") {
      return stop("permanent");
    }
    const hasSpread = this.settings.spread > 0n;
    if (!isStable) {
      return this.#retry(outcome, hasSpread ? "beside" : "unused", now);
    }
    this.#beginEpisode();
    this.#startClock(now);
    this.#isAhead = !hasSpread;
    return this.#retry(outcome, hasSpread ? "instead" : "unused", now);
  }

  #retry(outcome: Outcome & { kind: "failed" }, spread: "unused" | "instead" | "beside", now: bigint): Step {
    const { settings, seed } = this;
    const number = this.attempt + (this.#isAhead ? 1 : 0);
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
    if (outcome.asked !== undefined) {
      [after, source] = [least(outcome.asked, LONGEST), "hint"];
    }
    const { maxElapsed } = settings;
    if (maxElapsed !== null && this.#start !== undefined && now + after - this.#start > maxElapsed) {
      return stop("elapsed");
    }
    return { kind: "wait", after, until: now + after, source };
  }

  #attemptFailed(now: bigint): void {
    const outage = (this.#outage ??= newOutage(now));
    outage.attempts += 1;
    outage.lasted = greatest(now - outage.since, 0n);
    if (outage.attempts >= UNREACHABLE_AFTER && outage.lasted >= outage.nextReport) {
      outage.nextReport = greatest(outage.lasted * 2n, outage.lasted + SECOND);
      outage.isReportDue = true;
    }
  }

  #beginEpisode(): void {
    this.#episode = (this.#episode + 1) & 0xffff;
    this.attempt = 0;
    this.#carry = undefined;
    this.#isAhead = false;
    this.#start = undefined;
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

function newOutage(since: bigint) {
  return { since, lasted: 0n, attempts: 0, nextReport: 0n, isReportDue: false };
}

/**
 * Returns another wait if a timer fired more than a second `late`: uniform on `[0, min(late, span)]`; otherwise 0. The
 * device has slept then, or the page was frozen, and all timers that came due meanwhile fire in the same instant.
 */
export function spreadAgain(late: bigint, span: bigint, random: bigint): bigint {
  return late <= SECOND ? 0n : draw(0n, least(late, span), random);
}
