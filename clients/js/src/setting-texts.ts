/** The text of settings, as a policy is printed. */
import { ALL_KEYS, type Key } from "./setting-keys.js";
import {
  baseOf,
  DEFAULT_MAX_ATTEMPTS,
  DEFAULT_MAX_HINT,
  grows,
  hasDelays,
  type HintMode,
  type Jitter,
  jitterOf,
  type Settings,
} from "./settings.js";
import { compact, percent, plainNumber } from "./text.js";

/** A setting as it is printed: text, or a number that JSON holds as a number. */
export type Printed = string | number;

/** Returns every setting that is printed, in print order. Those at their default are left out, unless they characterize
 * the policy. */
export function printed(settings: Readonly<Settings>): [Key, Printed][] {
  const { backoff } = settings;
  const jitter = jitterOf(settings);
  const hasBase = grows(settings) || backoff === "constant";
  const isStopDefault = backoff === "stop" && settings.maxAttempts === DEFAULT_MAX_ATTEMPTS;
  const length = (value: bigint | null) => (value === null ? undefined : compact(value));
  const unlessZero = (value: bigint) => (value > 0n ? compact(value) : undefined);
  const all: Record<Key, Printed | undefined> = {
    base: hasBase ? compact(baseOf(settings)) : undefined,
    step: backoff === "linear" ? compact(settings.step) : undefined,
    range: backoff === "uniform" ? `${compact(settings.min)}..${compact(settings.base)}` : undefined,
    cap: settings.cap === null ? (grows(settings) ? "none" : undefined) : compact(settings.cap),
    floor: unlessZero(settings.floor),
    multiplier: backoff === "exponential" && jitter.kind !== "decorrelated" ? settings.multiplier : undefined,
    delays: backoff === "list" ? settings.delays.map(compact).join(",") : undefined,
    jitter: hasDelays(settings) && backoff !== "uniform" ? shownJitter(jitter) : undefined,
    spread: unlessZero(settings.spread),
    "max-attempts": isStopDefault ? undefined : (settings.maxAttempts ?? "inf"),
    "max-elapsed": length(settings.maxElapsed),
    "max-hint": settings.maxHint === DEFAULT_MAX_HINT ? undefined : (length(settings.maxHint) ?? "inf"),
    hint: settings.hint.kind === "at-least" ? undefined : shownHintMode(settings.hint),
    "hint-spread": settings.hintSpread === null ? undefined : percent(settings.hintSpread),
    "throttled-base": length(settings.throttledBase),
    "local-base": length(settings.localBase),
    "stable-after": length(settings.stableAfter),
  };
  return ALL_KEYS.flatMap((key): [Key, Printed][] => {
    const value = all[key];
    return value === undefined ? [] : [[key, value]];
  });
}

function shownJitter(jitter: Jitter): string {
  switch (jitter.kind) {
    case "share":
      return `±${percent(jitter.share)}`;
    case "add":
      return `add:${compact(jitter.length)}`;
    default:
      return jitter.kind;
  }
}

function shownHintMode(hint: HintMode): string {
  return hint.kind === "clamp" ? `clamp:${compact(hint.above)}` : hint.kind;
}

export function text(value: Printed): string {
  return typeof value === "number" ? plainNumber(value) : value;
}
