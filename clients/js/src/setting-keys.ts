/** The names of the settings of the policy language. */
import { nearest, wordError } from "./text.js";

/** The name of every setting, and other spellings that are accepted and never printed. */
const KEYS = {
  base: ["delay"],
  step: [],
  range: [],
  cap: ["max", "max-delay"],
  floor: [],
  multiplier: ["factor"],
  delays: [],
  jitter: [],
  spread: [],
  "max-attempts": ["attempts"],
  "max-elapsed": ["deadline"],
  "max-hint": [],
  hint: [],
  "hint-spread": [],
  "throttled-base": [],
  "local-base": [],
  "stable-after": ["reset-after"],
} as const;
export type Key = keyof typeof KEYS;
export const ALL_KEYS = Object.keys(KEYS) as Key[];

/** Names that other libraries give to a setting: not accepted, because their meaning may differ, but suggested. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  initial: "base",
  "initial-delay": "base",
  "initial-interval": "base",
  "initial-backoff": "base",
  interval: "base",
  "min-delay": "base",
  "max-interval": "cap",
  "max-backoff": "cap",
  "max-wait": "cap",
  exponent: "multiplier",
  tries: "max-attempts",
};
export const RETRIES = ["retries", "retry", "max-retries", "max_retries", "max-retry", "retry-count", "retry-limit"];

/** Returns the setting with this name. */
export function keyNamed(name: string): Key {
  const found = ALL_KEYS.find((key) => key === name || (KEYS[key] as readonly string[]).includes(name));
  if (found) {
    return found;
  }
  const same = Object.hasOwn(ELSEWHERE, name) ? ELSEWHERE[name] : undefined;
  const near = same ?? nearest(name, ALL_KEYS.flatMap((key) => [key, ...KEYS[key]]));
  throw wordError(
    near === undefined
      ? "is not a setting; use base, cap, multiplier, step, range, delays, floor, jitter, spread, max-attempts, " +
          "max-elapsed, max-hint, hint, hint-spread, throttled-base, local-base or stable-after"
      : `is not a setting; did you mean \`${near}\`?`,
    name,
  );
}
