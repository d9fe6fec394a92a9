/** The values of settings, as the policy language writes them. */
import type { HintMode, Jitter } from "./settings.js";
import type { Key } from "./setting-keys.js";
import { COMMA, parseDuration, parseRatio, trim, wordError } from "./text.js";

export type Value = bigint | number | null | readonly bigint[] | Jitter | HintMode;

export const NO_VALUE = "has no value; write it as name=value, like base=500ms";
const LIMITLESS = "must have a length; `inf` has no meaning there";

/** Returns a whole number of 32 bits, if the text is one. */
export function count(text: string): number | undefined {
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
export function parseValue(key: Key, name: string, value: string): Value {
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
