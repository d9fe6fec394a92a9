/** The policy language: `exponential base=500ms cap=30s multiplier=2 jitter=full spread=30s max-attempts=8`. */
import { PROFILES, profileNamed } from "./profiles.js";
import {
  baseOf,
  checked,
  DEFAULT_MAX_ATTEMPTS,
  DEFAULT_MAX_HINT,
  grows,
  hasDelays,
  type HintMode,
  type Jitter,
  jitterOf,
  type Settings,
  startOf,
  type Yielding,
} from "./settings.js";
import {
  byteLength,
  COMMA,
  compact,
  nearest,
  parseDuration,
  parseRatio,
  percent,
  plainNumber,
  PolicyError,
  shortened,
  trim,
  wordError,
  words,
} from "./text.js";

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
type Key = keyof typeof KEYS;
const ALL_KEYS = Object.keys(KEYS) as Key[];

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
const RETRIES = ["retries", "retry", "max-retries", "max_retries", "max-retry", "retry-count", "retry-limit"];

const BACKOFFS = ["exponential", "linear", "constant", "uniform", "decorrelated", "list", "zero", "stop"];
/** The setting that a backoff requires, with an example. */
const REQUIRED: Readonly<Record<string, readonly [Key, string]>> = {
  constant: ["base", "base, like base=5s"],
  uniform: ["range", "range, like range=1s..5s"],
  list: ["delays", "delays, like delays=1s,2s,5s"],
};

type Value = bigint | number | null | readonly bigint[] | Jitter | HintMode;

/** A setting as it is printed: text, or a number that JSON holds as a number. */
type Printed = string | number;

/**
 * How long to wait between attempts: an immutable value, created by {@link parsePolicy} or {@link policyFromJSON}.
 */
export class Policy {
  /** The settings after all rules were applied; lengths are in nanoseconds. */
  readonly settings: Readonly<Settings>;

  /** @internal */
  constructor(settings: Settings) {
    this.settings = Object.freeze(settings);
  }

  /** Returns the policy in one line; {@link parsePolicy} parses it to the same policy. */
  toString(): string {
    const settings = printed(this.settings).map(([name, value]) => ` ${name}=${text(value)}`);
    return this.settings.backoff + settings.join("");
  }

  /** Returns the object that `JSON.stringify` writes, and that {@link policyFromJSON} accepts. */
  toJSON(): Record<string, Printed> {
    return { backoff: this.settings.backoff, ...Object.fromEntries(printed(this.settings)) };
  }
}

/**
 * Parses a policy in one line: the name of a backoff (`exponential`, if it is left out) or of a profile, then settings as
 * `name=value` in any order, each at most once.
 *
 * A setting that is left out is at its default, or as in the profile, and yields to those that are given:
 * `exponential base=1m` has a cap of a minute, not of 30 s.
 *
 * @throws PolicyError says what is wrong, shows the value, and says how to fix it.
 */
export function parsePolicy(policy: string): Policy {
  const draft = new Draft();
  words(policy).forEach((word, at) => {
    const split = word.indexOf("=");
    if (split >= 0) {
      draft.set(word.slice(0, split), word.slice(split + 1));
    } else if (at === 0) {
      draft.start(word);
    } else {
      throw draft.unnamed(word);
    }
  });
  return draft.finish();
}

/**
 * Creates a policy from parsed JSON: an object with the settings of the policy language and `backoff`, or the one-line form
 * as a string. Lengths are strings like `"500ms"`, or numbers of seconds. Unknown keys are rejected.
 *
 * @throws PolicyError says what is wrong, shows the value, and says how to fix it.
 */
export function policyFromJSON(json: unknown): Policy {
  if (typeof json === "string") {
    return parsePolicy(json);
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw unexpected(json, 'a policy, as a table or in one line like "exponential base=500ms cap=30s"');
  }
  const draft = new Draft();
  for (const [name, value] of Object.entries(json)) {
    if (byteLength(name) > 512) {
      throw new PolicyError(TOO_LONG, "");
    }
    if (name !== "backoff" && !RETRIES.includes(name)) {
      keyNamed(name);
    }
    const word = scalar(value);
    if (name === "backoff") {
      draft.start(word);
    } else {
      draft.set(name, word);
    }
  }
  return draft.finish();
}

const TOO_LONG = "a value is longer than 512 bytes, which no setting needs; shorten it";

/** Returns a value of JSON as the one-line form would have it. */
function scalar(value: unknown): string {
  if (typeof value !== "string" && typeof value !== "number" && !Array.isArray(value)) {
    throw unexpected(value, "a string, a number or a list of lengths of time");
  }
  const word = Array.isArray(value)
    ? value.map(scalar).join(",")
    : typeof value === "number"
      ? plainNumber(value)
      : value;
  if (byteLength(word) > 512) {
    throw new PolicyError(TOO_LONG, "");
  }
  return word;
}

function unexpected(value: unknown, expected: string): PolicyError {
  let found: string;
  if (typeof value === "number") {
    found = (Number.isInteger(value) ? "integer `" : "floating point `") + `${plainNumber(value)}\``;
  } else if (typeof value === "boolean") {
    found = `boolean \`${value}\``;
  } else if (value === null || value === undefined) {
    found = "null";
  } else {
    found = Array.isArray(value) ? "sequence" : "map";
  }
  return new PolicyError(`invalid type: ${found}, expected ${expected}`, "");
}

/** Settings that were parsed, in any order. */
class Draft {
  /** The name of the backoff or profile. */
  private name: string | undefined;
  private settings: Settings | undefined;
  private readonly values = new Map<Key, Value>();

  /** Sets the backoff or the profile by its name. */
  start(name: string): void {
    if (this.name !== undefined) {
      throw wordError("is set twice; keep one of them", "backoff");
    }
    if (name.endsWith(",")) {
      throw wordError(COMMA, name);
    }
    if (name.includes("..")) {
      this.start("uniform");
      this.set("range", name);
      return;
    }
    const profile = profileNamed(name);
    this.settings = startOf(name) ?? (profile ? { ...parsePolicy(PROFILES[profile] ?? "").settings } : undefined);
    if (!this.settings) {
      const near = nearest(name, [...BACKOFFS, ...Object.keys(PROFILES)]);
      throw wordError(
        near === undefined
          ? "is not a backoff; begin with exponential, linear, constant, uniform, decorrelated, list, zero or stop, " +
              "or with the name of a profile, like web-socket"
          : `is not a backoff or a profile; did you mean \`${near}\`?`,
        name,
      );
    }
    this.name = startOf(name) ? name : profile;
  }

  /** Returns the error about a word that is not the first and has no `=`. */
  unnamed(word: string): PolicyError {
    const key = this.name === "uniform" ? "range" : this.name === "list" ? "delays" : "base";
    if (this.name !== undefined) {
      try {
        parseValue(key, key, word);
        return new PolicyError(
          `\`${shortened(word)}\` has no name; write it as ${key}=${shortened(word)}`,
          shortened(word),
        );
      } catch {
        // It is no value of that setting.
      }
    }
    return wordError(NO_VALUE, word);
  }

  set(name: string, value: string): void {
    if (RETRIES.includes(name)) {
      const retries = count(value);
      throw wordError(
        retries === undefined || retries === 0xffff_ffff
          ? "is not a setting; write max-attempts, which counts the first call"
          : `is not a setting; write max-attempts=${retries + 1}: the first call counts`,
        name,
      );
    }
    const key = keyNamed(name);
    if (this.values.has(key)) {
      throw wordError("is set twice; keep one of them", key);
    }
    this.values.set(key, parseValue(key, key, value));
  }

  finish(): Policy {
    const name = this.name ?? "exponential";
    const settings = this.settings ?? startOf(name);
    const required = REQUIRED[name];
    if (required && !this.values.has(required[0])) {
      throw new PolicyError(`a ${name} backoff needs ${required[1]}; add it`, name);
    }
    if (name === "decorrelated") {
      const jitter = this.values.get("jitter") as Jitter | undefined;
      const isOther = jitter !== undefined && jitter.kind !== "decorrelated";
      for (const [key, isWrong] of [["multiplier", this.values.has("multiplier")], ["jitter", isOther]] as const) {
        if (isWrong) {
          throw notFor(key, name);
        }
      }
    }
    const given = new Set<Yielding>();
    const result = settings as Settings;
    for (const key of ALL_KEYS) {
      const value = this.values.get(key);
      if (value !== undefined) {
        apply(result, given, key, value);
      }
    }
    return new Policy(checked(result, given));
  }
}

const NO_VALUE = "has no value; write it as name=value, like base=500ms";
const LIMITLESS = "must have a length; `inf` has no meaning there";

function notFor(key: Key, backoff: string): PolicyError {
  return wordError(`has no meaning for ${backoff} backoff; leave it out, or choose another backoff`, key);
}

/** Returns the setting with this name. */
function keyNamed(name: string): Key {
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

/** Returns a whole number of 32 bits, if the text is one. */
function count(text: string): number | undefined {
  const number = /^\+?[0-9]+$/.test(text) ? Number(text) : NaN;
  return number <= 0xffff_ffff ? number : undefined;
}

function lengthOf(text: string, word: string): bigint {
  const length = parseDuration(text);
  if (length === null) {
    throw wordError(LIMITLESS, word);
  }
  return length;
}

/** Parses a value of this setting. */
function parseValue(key: Key, name: string, value: string): Value {
  if (value === "") {
    throw wordError(NO_VALUE, name);
  }
  if (value.endsWith(",")) {
    throw wordError(COMMA, value);
  }
  switch (key) {
    case "cap":
    case "max-elapsed":
    case "max-hint":
    case "stable-after":
      return parseDuration(value);
    case "max-attempts": {
      if (["inf", "none", "infinite", "unlimited"].includes(value)) {
        return null;
      }
      const attempts = count(value);
      if (attempts === undefined) {
        throw wordError("is not a whole number; write one from 1 to 4294967295, or inf", value);
      }
      return attempts;
    }
    case "multiplier":
      return parseMultiplier(value);
    case "range":
      return parseRange(value);
    case "delays":
      return parseList(value);
    case "jitter":
      return parseJitter(value);
    case "hint":
      return parseHintMode(value);
    case "hint-spread":
      return parseRatio(value);
    default:
      return lengthOf(value, name);
  }
}

function parseMultiplier(value: string): number {
  const match = /^([+-]?)(?:(inf|infinity)|(nan)|((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?))$/i.exec(value);
  if (!match) {
    throw wordError("is not a number; write a multiplier of 1 or more, like 2 or 1.5", value);
  }
  const size = match[2] ? Infinity : match[3] ? NaN : Number(match[4]);
  return match[1] === "-" ? -size : size;
}

function parseRange(value: string): readonly bigint[] {
  const wrong = () => wordError("is not a range; write it as 1s..5s", value);
  const at = value.indexOf("..");
  if (at < 0) {
    throw wrong();
  }
  return [value.slice(0, at), value.slice(at + 2)].map((end) => {
    const length = trim(end);
    if (length === "") {
      throw wrong();
    }
    return lengthOf(length, "range");
  });
}

const MAX_DELAYS = 16;

function parseList(value: string): readonly bigint[] {
  const delays: bigint[] = [];
  for (const text of value.split(",")) {
    if (trim(text) === "") {
      throw wordError(COMMA, value);
    }
    if (delays.length === MAX_DELAYS) {
      throw wordError("has more than 16 delays; the last one repeats, so shorten the list", value);
    }
    delays.push(lengthOf(text, text));
  }
  // The core stores multiples, below 2^32, of the greatest common divisor.
  const unit = delays.reduce(greatestCommonDivisor, 0n);
  if (unit > 0n && delays.some((delay) => delay / unit > 0xffff_ffffn)) {
    throw wordError("have no common unit that fits; round them, to milliseconds for instance", value);
  }
  return Object.freeze(delays);
}

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestCommonDivisor(b, a % b);
}

function parseJitter(value: string): Jitter {
  if (value === "none" || value === "full" || value === "equal" || value === "decorrelated") {
    return { kind: value };
  }
  if (value.startsWith("add:")) {
    return { kind: "add", length: lengthOf(value.slice(4), "add") };
  }
  const share = value.replace(/^(?:±|\+-)/, "");
  if (!/^[0-9.]/.test(share)) {
    throw wordError(
      "is not a jitter; use full, equal, decorrelated, none, or a share like ±20% or added time like add:1s",
      value,
    );
  }
  return { kind: "share", share: parseRatio(share) };
}

function parseHintMode(value: string): HintMode {
  if (value === "at-least" || value === "exact") {
    return { kind: value };
  }
  const above = value.startsWith("clamp:") ? parseDuration(value.slice(6)) : null;
  if (above === null) {
    throw wordError("is not a hint mode; use at-least, exact or clamp:5s", value);
  }
  return { kind: "clamp", above };
}

/** Sets a value that was parsed for this setting. */
function apply(to: Settings, given: Set<Yielding>, key: Key, value: Value): void {
  const needs = (...backoffs: string[]) => {
    if (!backoffs.includes(to.backoff)) {
      throw notFor(key, to.backoff);
    }
  };
  switch (key) {
    case "base":
      needs("constant", "linear", "exponential");
      to.base = value as bigint;
      given.add("base");
      break;
    case "step":
      needs("linear");
      to.step = value as bigint;
      given.add("step");
      break;
    case "range":
      needs("uniform");
      [to.min, to.base] = value as [bigint, bigint];
      break;
    case "multiplier":
      needs("exponential");
      to.multiplier = value as number;
      break;
    case "delays":
      needs("list");
      to.delays = value as readonly bigint[];
      break;
    case "cap":
      to.cap = value as bigint | null;
      given.add("cap");
      break;
    case "floor":
    case "spread":
      to[key] = value as bigint;
      break;
    case "jitter":
      to.jitter = value as Jitter;
      break;
    case "max-attempts":
      to.maxAttempts = value as number | null;
      break;
    case "max-elapsed":
      to.maxElapsed = value as bigint | null;
      break;
    case "max-hint":
      to.maxHint = value as bigint | null;
      break;
    case "hint":
      to.hint = value as HintMode;
      break;
    case "hint-spread":
      to.hintSpread = value as number;
      break;
    case "throttled-base":
      to.throttledBase = value as bigint;
      given.add("throttledBase");
      break;
    case "local-base":
      to.localBase = value as bigint;
      given.add("localBase");
      break;
    case "stable-after":
      to.stableAfter = value as bigint | null;
      break;
  }
}

/** Returns every setting that is printed, in print order. Those at their default are left out, unless they characterize
 * the policy. */
function printed(settings: Readonly<Settings>): [Key, Printed][] {
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

function text(value: Printed): string {
  return typeof value === "number" ? plainNumber(value) : value;
}
