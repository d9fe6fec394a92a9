/** The settings of a policy: which values yield to given ones, and what can be wrong with them. */
import { float, greatest, least, LONGEST, MAX_U64, SECOND } from "./numbers.js";
import { compact, decimal, percent, PolicyError } from "./text.js";

export type Backoff = "exponential" | "linear" | "constant" | "uniform" | "list" | "zero" | "stop";

/** How a delay is drawn from its ceiling. `share` is in millionths, `length` in nanoseconds. */
export type Jitter =
  | { readonly kind: "none" | "full" | "equal" | "decorrelated" }
  | { readonly kind: "share"; readonly share: number }
  | { readonly kind: "add"; readonly length: bigint };

/** What a server's hint does to the delay. */
export type HintMode = { readonly kind: "at-least" | "exact" } | { readonly kind: "clamp"; readonly above: bigint };

/** All lengths are in nanoseconds, and `null` means that there is no limit, or that the default applies. */
export interface Settings {
  backoff: Backoff;
  /** The ceiling of the first retry; the longest delay of a uniform backoff. */
  base: bigint;
  /** The shortest delay of a uniform backoff. */
  min: bigint;
  step: bigint;
  multiplier: number;
  delays: readonly bigint[];
  cap: bigint | null;
  floor: bigint;
  jitter: Jitter | null;
  spread: bigint;
  maxAttempts: number | null;
  maxElapsed: bigint | null;
  maxHint: bigint | null;
  hint: HintMode;
  /** In millionths. */
  hintSpread: number | null;
  throttledBase: bigint | null;
  localBase: bigint | null;
  stableAfter: bigint | null;
}

/** The lengths that yield to given ones, if they are not given themselves. */
export type Yielding = "base" | "step" | "cap" | "throttledBase" | "localBase";

export const DEFAULT_MAX_HINT = 300n * SECOND;
export const DEFAULT_MAX_ATTEMPTS = 4;

const DEFAULTS: Settings = {
  backoff: "exponential",
  base: 0n,
  min: 0n,
  step: 0n,
  multiplier: 2,
  delays: [],
  cap: null,
  floor: 0n,
  jitter: null,
  spread: 0n,
  maxAttempts: DEFAULT_MAX_ATTEMPTS,
  maxElapsed: null,
  maxHint: DEFAULT_MAX_HINT,
  hint: { kind: "at-least" },
  hintSpread: null,
  throttledBase: null,
  localBase: null,
  stableAfter: null,
};

/** Returns the settings that a policy begins with which names nothing but its backoff; `undefined` for other words. */
export function startOf(name: string): Settings | undefined {
  const base = SECOND / 10n;
  const cap = 30n * SECOND;
  switch (name) {
    case "exponential":
      return { ...DEFAULTS, base, cap };
    case "decorrelated":
      return { ...DEFAULTS, base, cap, jitter: { kind: "decorrelated" } };
    case "linear":
      return { ...DEFAULTS, backoff: name, base, step: base, cap };
    case "constant":
    case "uniform":
    case "list":
    case "zero":
    case "stop":
      return { ...DEFAULTS, backoff: name };
    default:
      return undefined;
  }
}

export function grows(settings: Settings): boolean {
  return settings.backoff === "exponential" || settings.backoff === "linear";
}

export function hasDelays(settings: Settings): boolean {
  return settings.backoff !== "zero" && settings.backoff !== "stop";
}

function hasBase(settings: Settings): boolean {
  return grows(settings) || settings.backoff === "constant";
}

/** Returns the ceiling of the first retry. */
export function baseOf(settings: Settings): bigint {
  return settings.backoff === "list" ? (settings.delays[0] ?? 0n) : settings.base;
}

export function jitterOf(settings: Settings): Jitter {
  if (settings.jitter) {
    return settings.jitter;
  }
  switch (settings.backoff) {
    case "zero":
    case "stop":
      return { kind: "none" };
    case "constant":
    case "list":
      return { kind: "equal" };
    default:
      return { kind: "full" };
  }
}

export function throttledBaseOf(settings: Settings): bigint {
  return settings.throttledBase ?? baseOf(settings);
}

export function localBaseOf(settings: Settings): bigint {
  const base = baseOf(settings);
  return settings.localBase ?? greatest(base, least(base * 10n, SECOND));
}

/**
 * Checks the settings and applies the rules about values that were not given.
 *
 * @throws PolicyError names every problem at once, with its values and how to fix it.
 */
export function checked(settings: Settings, given: ReadonlySet<Yielding>): Settings {
  const resolvedSettings = resolved(settings, given);
  const found = problems(resolvedSettings);
  if (found.length > 0) {
    throw new PolicyError(found.join("; "), "");
  }
  return resolvedSettings;
}

/** Returns the settings in which every length that was not given has yielded to those that were. */
function resolved(settings: Settings, given: ReadonlySet<Yielding>): Settings {
  const result = { ...settings, jitter: jitterOf(settings) };
  const base = baseOf(result);
  const cap = result.cap ?? MAX_U64;
  // Decorrelated jitter draws from `[base, 3 · base]` at first, so equal lengths would leave nothing to draw.
  const decorrelates = result.jitter.kind === "decorrelated";
  const room = decorrelates ? 3n : 1n;
  const contradicts = cap < base || (decorrelates && cap === base);
  // A cap of zero is an error of its own.
  if (contradicts && given.has("cap") && !given.has("base") && cap > 0n && hasBase(result)) {
    result.base = cap / room;
  }
  if (result.cap !== null && !given.has("cap")) {
    let shortest = contradicts && given.has("base") ? base * room : cap;
    if (given.has("throttledBase")) {
      shortest = greatest(shortest, throttledBaseOf(result));
    }
    if (given.has("localBase")) {
      shortest = greatest(shortest, localBaseOf(result));
    }
    result.cap = least(shortest, LONGEST);
  }
  const [lowest, highest] = [baseOf(result), result.cap ?? MAX_U64];
  if (result.backoff === "linear" && !given.has("step")) {
    result.step = lowest;
  }
  const inside = (length: bigint) => least(greatest(length, lowest), highest);
  if (result.throttledBase !== null && !given.has("throttledBase")) {
    result.throttledBase = inside(result.throttledBase);
  }
  if (result.localBase !== null && !given.has("localBase")) {
    result.localBase = inside(result.localBase);
  }
  return result;
}

/** Returns a sentence about each problem, in the order of `stagger_core::PolicyProblem`. */
function problems(settings: Settings): string[] {
  const { backoff, multiplier } = settings;
  const jitter = jitterOf(settings).kind;
  const base = baseOf(settings);
  const cap = settings.cap ?? MAX_U64;
  const isUniform = backoff === "uniform";
  const isExponential = backoff === "exponential";
  const floor = isUniform ? settings.min : settings.floor;
  const maxElapsed = settings.maxElapsed ?? MAX_U64;
  const takesBases = hasBase(settings) || isUniform;
  const fits = (length: bigint) => takesBases && base <= length && length <= cap;
  const longest = { none: base, decorrelated: base, add: base, equal: base / 2n, full: 0n, share: 0n }[jitter];
  const found: string[] = [];
  const check = (isWrong: boolean, sentence: () => string) => {
    if (isWrong) {
      found.push(sentence());
    }
  };
  check(
    settings.maxAttempts === 0,
    () => "max-attempts is 0, but the first call counts: use 1 for no retry, or more",
  );
  check(
    hasBase(settings) && base === 0n,
    () => "base is 0s, so every delay would be 0s: raise base, or use a zero backoff",
  );
  check(
    grows(settings) && cap < base,
    () => `cap ${compact(cap)} is below base ${compact(base)}: raise cap or lower base`,
  );
  check(
    grows(settings) && floor > cap,
    () => `floor ${compact(floor)} is above cap ${compact(cap)}: lower floor or raise cap`,
  );
  check(
    isExponential && !(multiplier >= 1 && multiplier < Infinity),
    () => `multiplier ${shownMultiplier(multiplier)} is not a finite number of at least 1: use 2, or 1 for no growth`,
  );
  check(
    isUniform && (base === 0n || floor > base),
    () => `range ${compact(floor)}..${compact(base)} has no delay: write the shorter delay first, and end above 0s`,
  );
  check(
    jitter === "decorrelated" && !(isExponential && multiplier === 2 && floor === 0n),
    () =>
      `decorrelated jitter ${
        isExponential
          ? "takes base and cap of an exponential backoff and nothing else: drop multiplier and floor"
          : "grows by itself, from base to cap: use a decorrelated backoff"
      }, or choose another jitter`,
  );
  check(
    jitter === "none" ? isUniform : jitter === "full" ? !hasDelays(settings) : isUniform || !hasDelays(settings),
    () =>
      base > 0n
        ? "a uniform backoff draws from its range: drop jitter, or use a constant backoff"
        : "a zero or stop backoff has no delay to jitter: drop jitter, or choose another backoff",
  );
  check(
    !grows(settings) && (settings.cap !== null || settings.floor > 0n),
    () => "cap and floor are for delays that grow: drop them, or use an exponential or linear backoff",
  );
  check(
    settings.spread > maxElapsed,
    () =>
      `spread ${compact(settings.spread)} is longer than max-elapsed ${compact(maxElapsed)}: ` +
      "shorten spread or raise max-elapsed",
  );
  check(
    settings.maxAttempts !== 1 && (longest > maxElapsed || floor > maxElapsed),
    () =>
      `max-elapsed ${compact(maxElapsed)} ends before the first retry can start: raise max-elapsed, lower base, or set ` +
      "max-attempts to 1",
  );
  check(
    settings.hintSpread !== null && settings.hint.kind !== "at-least",
    () =>
      `hint-spread ${percent(settings.hintSpread ?? 0)} has no effect with this hint mode: use at-least, or drop ` +
      "hint-spread",
  );
  for (const [name, length] of [["throttled-base", settings.throttledBase], ["local-base", settings.localBase]] as const) {
    check(
      length !== null && !fits(length),
      () =>
        `${name} ${compact(length ?? 0n)} is not between base ${compact(base)} and cap: change it, or leave it out`,
    );
  }
  return found;
}

/** Returns a multiplier with up to six decimals, rounded as the core keeps it for the message: to 32 bits. */
function shownMultiplier(multiplier: number): string {
  let rounded = Math.fround(multiplier);
  if (Number.isNaN(rounded) || rounded === -Infinity) {
    return "NaN";
  }
  if (rounded === Infinity) {
    return "inf";
  }
  if (multiplier < 1 && rounded >= 1) {
    rounded = 1 - 2 ** -24;
  }
  // The small addend makes up for products such as 0.999 · 10^6 that fall just short of a whole number.
  const millionths = least(BigInt(Math.trunc(Math.abs(rounded) * 1e6 + 1e-3)), MAX_U64);
  return (rounded < 0 ? "-" : "") + decimal(millionths, 6);
}

/** Returns the factor of the ceilings for another base; 1 if the ceilings begin with 0. */
export function factorOf(base: bigint, first: number): number {
  return first > 0 ? float(base) / first : 1;
}
