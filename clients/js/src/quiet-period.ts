/**
 * One pause for all calls to a target: the `QuietPeriod` of `stagger-core` that hints alone begin. It reads no clock; points in
 * time and lengths are in nanoseconds.
 */
import type { FailureKind } from "./delays.js";
import { greatest, least, SECOND } from "./numbers.js";
import type { AttemptOutcome } from "./retry-machine.js";

/** What a call holds: it was admitted, it is the probe, or it waits at a place. */
export type QuietPermit =
  | { readonly kind: "admitted" | "probe"; readonly generation: number }
  | { readonly kind: "waiting"; readonly place: number };

export type Turn =
  | { readonly kind: "now"; readonly permit: QuietPermit }
  | { readonly kind: "wait"; readonly after: bigint; readonly permit: QuietPermit }
  | { readonly kind: "rejected"; readonly retryIn: bigint };

export type QuietState = "open" | "quiet" | "probing" | "returning";

/** How many calls wait at most. */
const MAX_WAITING = 1_024;
/** How long a probe may take; then another call is the probe. */
const PROBE_WAIT = 30n * SECOND;
const MIN_PROBE = 1_000_000n;
/** The shortest wait before a call asks again. */
const MIN_WAIT = 100_000n;
/** How far behind its pace a return may catch up: timers are late. */
const LATENESS = 50_000_000n;
/** How long nobody may have been rejected before a return ends. */
const UNREJECTED = SECOND;
/** The shortest and the longest pause without a hint. */
const [FIRST_PAUSE, LAST_PAUSE] = [SECOND, 32n * SECOND];
/** The time in which the rate of a return doubles. */
const DOUBLING = 5n * SECOND;
const MOST_DOUBLINGS = 20n;
/** The longest and the shortest time between two released calls. */
const [SLOWEST, FASTEST] = [SECOND, 1_000n];
/** How long the pace is taken for constant when a turn is predicted. */
const STEP = DOUBLING / 16n;
/** The time in which the rate approaches the one that was refused. */
const RECOVERY = 5n * SECOND;
/** The shortest time between two cuts of the rate. */
const MIN_CUT = SECOND;
/** For how long nothing may have been answered in a return before a hint begins another pause. */
const UNANSWERED = SECOND;
/** 1 as a fixed-point number whose third root is exact. */
const [ONE, CUBE_ROOT] = [1n << 30n, 1n << 10n];
/** A success in so many may set a mark, of which two are at least this many milliseconds apart. */
const [TIMED, MARK_MILLIS] = [32, 1_000n];

/**
 * ```text
 * open ── 429 or 503 with a hint ──▶ quiet ── pause over ──▶ probing ── answered ──▶ returning ── nobody waits ──▶ open
 * ```
 *
 * After the pause one call is the probe; then waiting calls start at the rate at which the server admitted calls before, which
 * doubles every 5 s. A refusal multiplies it by 0.7, at most once a second; a hint begins another pause if nothing was answered for a
 * second.
 */
export class QuietPeriod {
  state: QuietState = "open";
  #generation = 1;
  /** The end of the pause, when the probe began, or since when the pace holds. */
  #time = 0n;
  #next = 0n;
  #interval = SLOWEST;
  /** Whether the rate was cut since the pause began: then it approaches the refused one. */
  #wasCut = false;
  /** When a call was last answered in a return. */
  #answeredAt = 0n;
  #pause = 0n;
  #rejectedAt: bigint | undefined;
  readonly #places = { issued: 0, left: 0 };
  #successes = 0;
  #newer: Mark | undefined;
  #older: Mark | undefined;

  /** @param max The longest pause that a hint can cause. */
  constructor(private readonly max: bigint) {}

  /** Returns the end of the pause; while there is none, when something changed last. */
  get until(): bigint {
    return this.#time;
  }

  get waiting(): number {
    return this.#places.issued - this.#places.left;
  }

  /** Admits a call, tells it when to ask again, or rejects it because its turn comes after `latest`. */
  admit(permit: QuietPermit | undefined, latest: bigint | undefined, at: bigint): Turn {
    switch (this.state) {
      case "open":
        return this.#admitted("admitted", permit, at);
      case "returning":
        if (this.#releaseNext(permit, at)) {
          return this.#admitted("admitted", permit, at);
        }
        break;
      default:
        if (at >= this.#nextProbe()) {
          this.#set("probing", at);
          return this.#admitted("probe", permit, at);
        }
    }
    return this.#hold(permit, latest, at);
  }

  /** Returns whether an attempt that is due `after` from now would come during the pause, and so too late for its call. */
  wouldReject(after: bigint, latest: bigint | undefined, at: bigint): boolean {
    return this.state === "quiet" && this.#time > at + after && latest !== undefined && this.#time > latest;
  }

  /** Records how an attempt has ended. */
  record(permit: QuietPermit, outcome: AttemptOutcome, at: bigint): void {
    if (outcome.kind === "not-processed") {
      this.release(permit);
      return;
    }
    if (!("failure" in outcome)) {
      this.#countSuccess(at);
      if (this.state === "returning") {
        this.#answeredAt = at;
      }
      this.#endProbe(permit, at);
      return;
    }
    const hint = outcome.kind === "failed" ? outcome.hint : undefined;
    const refusals: Record<FailureKind, () => void> = {
      local: () => this.release(permit),
      transient: () => this.#endProbe(permit, at),
      throttled: () =>
        hint?.kind === "at-least" && hint.wait > 0n ? this.#askedForQuiet(permit, hint.wait, at) : this.#refused(permit, at),
    };
    refusals[outcome.failure]();
  }

  /** Takes back the permit of an attempt that was not made, or that shows nothing: the next call is the probe in its place. */
  release(permit: QuietPermit): void {
    if (permit.kind === "waiting") {
      this.#leave();
    } else if (this.#isProbe(permit)) {
      this.#set("quiet", this.#time);
    }
  }

  /** Begins a pause of this length, or lengthens the present one; never shortens it. */
  pause(length: bigint, at: bigint): void {
    const bounded = least(length, this.max);
    if (this.state !== "quiet" || at + bounded > this.#time) {
      this.#beginPause(bounded, at);
    }
  }

  /** Returns whether it has nothing to remember but its rate. */
  isAtRest(): boolean {
    return this.state === "open" && this.waiting === 0;
  }

  #set(state: QuietState, time: bigint): void {
    this.state = state;
    this.#generation += 1;
    // To the microsecond, a pause rounded up.
    this.#time = ((time + (state === "quiet" ? 999n : 0n)) / 1_000n) * 1_000n;
  }

  #leave(): void {
    this.#places.left = Math.min(this.#places.left + 1, this.#places.issued);
  }

  #isProbe(permit: QuietPermit): boolean {
    return this.state === "probing" && permit.kind === "probe" && permit.generation === this.#generation;
  }

  #admitted(kind: "admitted" | "probe", permit: QuietPermit | undefined, at: bigint): Turn {
    const { state } = this;
    const admitted: Turn = { kind: "now", permit: { kind, generation: this.#generation } };
    if (permit?.kind === "waiting") {
      this.#leave();
    }
    const rejected = this.#rejectedAt;
    const isWanted = rejected !== undefined && at < greatest(rejected, this.#time) + UNREJECTED;
    if (state === "returning" && this.waiting === 0 && !isWanted) {
      // Calls that the return released still belong to it, so the generation stays.
      this.state = "open";
    }
    return admitted;
  }

  /** Returns from when on the next call is the probe. */
  #nextProbe(): bigint {
    return this.state === "probing" ? this.#time + PROBE_WAIT : this.#time;
  }

  /** Takes the next release of a return, if it is due. A call that has not waited does not overtake those that do. */
  #releaseNext(permit: QuietPermit | undefined, at: bigint): boolean {
    if (at < this.#next || (permit?.kind !== "waiting" && this.waiting > 0)) {
      return false;
    }
    this.#next = greatest(this.#next, at - LATENESS) + this.#intervalAt(this.#time, at);
    return true;
  }

  #hold(permit: QuietPermit | undefined, latest: bigint | undefined, at: bigint): Turn {
    const place = permit?.kind === "waiting" ? permit.place : undefined;
    const before = place === undefined ? this.waiting : Math.max(0, place - this.#places.left);
    const turn = greatest(this.#turn(before, at), at + MIN_WAIT);
    const isTooLate = latest !== undefined && turn > latest;
    if (isTooLate || (place === undefined && this.waiting >= MAX_WAITING)) {
      if (place !== undefined) {
        this.#leave();
      }
      this.#rejectedAt = at;
      return { kind: "rejected", retryIn: turn - at };
    }
    const held = place ?? this.#places.issued++;
    return { kind: "wait", after: turn - at, permit: { kind: "waiting", place: held } };
  }

  /** Predicts when a call starts that has this many before it. */
  #turn(before: number, at: bigint): bigint {
    switch (this.state) {
      case "quiet": {
        const end = greatest(this.#time, at);
        return this.#predict(end, end, before);
      }
      case "probing": {
        // A probe that has taken this long is assumed to take as long again.
        const answer = least(at + greatest(at - this.#time, MIN_PROBE), this.#nextProbe());
        return this.#predict(answer, greatest(answer, at), before);
      }
      default:
        return this.#predict(this.#time, greatest(this.#next, at), before);
    }
  }

  #predict(since: bigint, from: bigint, before: number): bigint {
    let [at, left] = [from, BigInt(before)];
    for (;;) {
      const interval = this.#intervalAt(since, at);
      const inStep = (STEP + interval - 1n) / interval;
      if (left <= inStep || interval === FASTEST) {
        return at + left * interval;
      }
      left -= inStep;
      at += inStep * interval;
    }
  }

  /** Returns the time between two released calls, of a return since that time. */
  #intervalAt(since: bigint, at: bigint): bigint {
    const grown = greatest(at - since, 0n);
    if (this.#wasCut) {
      if (grown / 16n >= RECOVERY) {
        return FASTEST;
      }
      // CUBIC, RFC 9438, section 4.2, with its factor of 0.7.
      const beyond = (grown * CUBE_ROOT) / RECOVERY - CUBE_ROOT;
      return greatest((this.#interval * 7n * ONE) / (10n * (ONE + (3n * beyond ** 3n) / 10n)), FASTEST);
    }
    const doublings = grown / DOUBLING;
    const interval = ((this.#interval >> doublings) * DOUBLING) / (DOUBLING + (grown % DOUBLING));
    return doublings >= MOST_DOUBLINGS ? FASTEST : greatest(interval, FASTEST);
  }

  /** Returns the time between two released calls after a refusal: 0.7 of the rate. */
  #cutAt(at: bigint): bigint {
    return least((this.#intervalAt(this.#time, at) * 10n) / 7n, SLOWEST);
  }

  #endProbe(permit: QuietPermit, at: bigint): void {
    if (this.#isProbe(permit)) {
      this.#next = this.#answeredAt = at;
      this.#set("returning", at);
    }
  }

  /** Records a refusal that says for how long. In a return it is a full queue that speaks, as long as others are answered. */
  #askedForQuiet(permit: QuietPermit, length: bigint, at: bigint): void {
    if (this.state === "returning" && at - this.#answeredAt <= UNANSWERED) {
      this.#refused(permit, at);
    } else {
      this.pause(length, at);
    }
  }

  /** Records a refusal that does not say for how long. */
  #refused(permit: QuietPermit, at: bigint): void {
    if (this.#isProbe(permit)) {
      this.#beginPause(least(greatest(least(this.#pause * 2n, LAST_PAUSE), FIRST_PAUSE), this.max), at);
    } else if (this.state === "returning" && permit.kind === "admitted" && permit.generation === this.#generation) {
      this.#cut(at);
    }
  }

  /** Cuts the rate of the return. The generation changes, so refusals of calls that began before do not cut it again. */
  #cut(at: bigint): void {
    if (at - this.#time >= MIN_CUT) {
      this.#interval = this.#cutAt(at);
      this.#wasCut = true;
      this.#set("returning", at);
    }
  }

  #beginPause(length: bigint, at: bigint): void {
    if (this.state === "open") {
      this.#wasCut = false;
      this.#interval = this.#learned(at);
      this.#rejectedAt = undefined;
    } else if (this.state === "returning") {
      this.#interval = this.#cutAt(at);
    }
    this.#set("quiet", at + length);
    this.#pause = length;
  }

  #countSuccess(at: bigint): void {
    this.#successes += 1;
    if (this.#successes % TIMED === 1) {
      const mark = { millis: at / 1_000_000n, successes: this.#successes };
      if (!this.#newer || mark.millis - this.#newer.millis >= MARK_MILLIS) {
        this.#older = this.#newer;
        this.#newer = mark;
      }
    }
  }

  /** Returns the time between two admitted calls: the mean of the last second or more. */
  #learned(at: bigint): bigint {
    const millis = at / 1_000_000n;
    const newer = this.#newer;
    const isOld = !newer || millis - newer.millis >= MARK_MILLIS || !this.#older;
    const mark = isOld ? newer : this.#older;
    if (!mark) {
      return SLOWEST;
    }
    const nanos = greatest(millis - mark.millis, MARK_MILLIS) * 1_000_000n;
    return greatest(least(nanos / BigInt(this.#successes - mark.successes + 1), SLOWEST), FASTEST);
  }
}

/** How many successes there were at a time. */
interface Mark {
  readonly millis: bigint;
  readonly successes: number;
}
