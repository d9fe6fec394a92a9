/** The policy language: `exponential base=500ms cap=30s multiplier=2 jitter=full spread=30s max-attempts=8`. */
import { PROFILES, profileNamed } from "./profiles.js";
import { ALL_KEYS, type Key, keyNamed, RETRIES } from "./setting-keys.js";
import { type Printed, printed, text } from "./setting-texts.js";
import { count, NO_VALUE, parseValue, type Value } from "./setting-values.js";
import { checked, type HintMode, type Jitter, type Settings, startOf, type Yielding } from "./settings.js";
import { byteLength, COMMA, nearest, plainNumber, PolicyError, shortened, wordError, words } from "./text.js";

const BACKOFFS = ["exponential", "linear", "constant", "uniform", "decorrelated", "list", "zero", "stop"];
/** The setting that a backoff requires, with an example. */
const REQUIRED: Readonly<Record<string, readonly [Key, string]>> = {
  constant: ["base", "base, like base=5s"],
  uniform: ["range", "range, like range=1s..5s"],
  list: ["delays", "delays, like delays=1s,2s,5s"],
};

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

function notFor(key: Key, backoff: string): PolicyError {
  return wordError(`has no meaning for ${backoff} backoff; leave it out, or choose another backoff`, key);
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
