/** The words of the policy language: lengths of time, shares and errors, as `stagger-core` parses and prints them. */
import { LONGEST, MAX_U64 } from "./numbers.js";

/** The white space of Unicode, which is not that of `String.trim`. */
const SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const LEADING = new RegExp(`^[${SPACE}]+`);
const TRAILING = new RegExp(`[${SPACE}]+$`);
const BETWEEN = new RegExp(`[${SPACE}]+`);
const NUMBER = /^[0-9.]*/;
const UNIT = new RegExp(`^[^0-9.${SPACE}]*`);
/** What a terminal obeys instead of showing it. */
const OBEYED = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;
const ESCAPES: { readonly [letter: string]: string } = { "\t": "\\t", "\n": "\\n", "\r": "\\r" };
const encoder = new TextEncoder();

/** What is wrong with a policy: the offending value, and how to fix it. */
export class PolicyError extends Error {
  override name = "PolicyError";

  /** @param word The offending word, at most 40 bytes; empty if every word is valid and only the whole is not. */
  constructor(
    message: string,
    readonly word: string,
  ) {
    super(message);
  }
}

/** Creates the error about a word, whose message begins with it. */
export function wordError(problem: string, word: string): PolicyError {
  const start = shortened(word);
  const shown = start.replace(OBEYED, (letter) => ESCAPES[letter] ?? `\\u{${letter.codePointAt(0)!.toString(16)}}`);
  return new PolicyError(`\`${shown}\` ${problem}`, start);
}

/** Returns the first 40 bytes of a word, cut between characters. */
export function shortened(word: string): string {
  let bytes = 0;
  let shown = "";
  for (const letter of word) {
    bytes += byteLength(letter);
    if (bytes > 40) {
      break;
    }
    shown += letter;
  }
  return shown;
}

/** Returns the length in UTF-8. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

export function trimStart(text: string): string {
  return text.replace(LEADING, "");
}

export function trimEnd(text: string): string {
  return text.replace(TRAILING, "");
}

export function trim(text: string): string {
  return trimEnd(trimStart(text));
}

/** Returns the words between white space. */
export function words(text: string): string[] {
  return text.split(BETWEEN).filter((word) => word !== "");
}

const TOO_LONG = "is longer than 292 years; use inf or none where no limit is meant";
const TOO_FINE = "is finer than a nanosecond; round it";
const NO_LENGTH = "is not a length of time; write it like 500ms, 1.5s, 1m30s or 2h";
export const COMMA =
  "has a stray comma or an empty delay; separate settings by spaces, and delays by one comma each";

const UNITS: readonly (readonly [string, bigint])[] = [
  ["ns nsec nanos", 1n],
  ["us µs μs usec micros", 1_000n],
  ["ms msec millis", 1_000_000n],
  ["s sec secs second seconds", 1_000_000_000n],
  ["m min mins minute minutes", 60_000_000_000n],
  ["h hr hrs hour hours", 3_600_000_000_000n],
  ["d day days", 86_400_000_000_000n],
];

function unitNanos(unit: string, alone: boolean): bigint | undefined {
  if (unit === "") {
    return alone ? 1_000_000_000n : undefined;
  }
  return UNITS.find(([names]) => names.split(" ").includes(unit))?.[1];
}

/**
 * Parses a length of time, like `500ms`, `1.5s`, `1m30s`, `2h`, or a bare number of seconds. Returns nanoseconds, or
 * `null` for `inf` and `none`: no limit.
 *
 * @throws PolicyError if the text is not a length, negative, above 292 years, or finer than a nanosecond.
 */
export function parseDuration(text: string): bigint | null {
  const all = trim(text);
  if (["inf", "none", "infinite", "never"].includes(all)) {
    return null;
  }
  if (/^-[0-9.]/.test(all)) {
    throw wordError("is negative; use a length of time of 0s or more, like 500ms", text);
  }
  if (all.endsWith(",")) {
    throw wordError(COMMA, text);
  }
  if (all === "") {
    throw wordError(NO_LENGTH, text);
  }
  let rest = all;
  let total = 0n;
  for (let isFirst = true; rest !== ""; isFirst = false) {
    const number = NUMBER.exec(rest)?.[0] ?? "";
    const after = trimStart(rest.slice(number.length));
    const unit = UNIT.exec(after)?.[0] ?? "";
    rest = trimStart(after.slice(unit.length));
    // A bare number is seconds only if it stands alone: `1m30` would be ambiguous.
    const nanos = unitNanos(unit, isFirst && rest === "");
    if (nanos === undefined) {
      const noUnit = "has a number without a unit; write ns, us, ms, s, m, h or d after each number";
      const unknown = "has a unit that is not known; use ns, us, ms, s, m, h or d after each number";
      throw wordError(number === "" ? NO_LENGTH : unit === "" ? noUnit : unknown, text);
    }
    const part = scaled(number, nanos);
    if (typeof part === "string") {
      throw wordError(part, text);
    }
    total += part;
    if (total > LONGEST) {
      throw wordError(TOO_LONG, text);
    }
  }
  return total;
}

/** Returns the decimal `number` times `unit`, exact, or what is wrong with it. */
function scaled(number: string, unit: bigint): bigint | string {
  const match = /^([0-9]*)(?:\.([0-9]*))?$/.exec(number);
  if (!match || number === "" || number === ".") {
    return NO_LENGTH;
  }
  const digits = (match[1] ?? "").replace(/^0+/, "");
  const fraction = (match[2] ?? "").replace(/0+$/, "");
  // More than twenty digits are above 64 bits.
  const integer = digits.length > 20 ? MAX_U64 + 1n : BigInt(digits) * unit;
  if (BigInt(digits.slice(0, 21)) > MAX_U64 || integer > MAX_U64) {
    return TOO_LONG;
  }
  if (fraction.length > 19) {
    return TOO_FINE;
  }
  const scale = 10n ** BigInt(fraction.length);
  const part = BigInt(fraction) * unit;
  if (part % scale !== 0n) {
    return TOO_FINE;
  }
  const sum = integer + part / scale;
  return sum > MAX_U64 ? TOO_LONG : sum;
}

/**
 * Parses a share, like `20%` or `0.2`, from 0 to 1. Returns whole millionths.
 *
 * @throws PolicyError if the text is not a share, or not a whole number of millionths.
 */
export function parseRatio(text: string): number {
  const share = text.endsWith("%") ? scaled(trimEnd(text.slice(0, -1)), 10_000n) : scaled(text, 1_000_000n);
  if (typeof share === "bigint" && share <= 1_000_000n) {
    return Number(share);
  }
  throw wordError(
    share === TOO_FINE
      ? "is not a whole number of millionths; round it to six decimals, down if it is a threshold"
      : "is not a share; write it as 20% or 0.2, from 0 to 1",
    text,
  );
}

/** Returns a length in its shortest exact form: `500ms`, `1.5s`, `1m30s`, `2h`, `0s`. */
export function compact(length: bigint): string {
  const nanos = length > LONGEST ? LONGEST : length;
  let text = "";
  let rest = nanos;
  for (const [name, unit] of [["d", 86_400_000_000_000n], ["h", 3_600_000_000_000n], ["m", 60_000_000_000n]] as const) {
    if (rest >= unit) {
      text += `${rest / unit}${name}`;
      rest %= unit;
    }
  }
  if (rest === 0n) {
    return text || "0s";
  }
  if (text !== "" || rest >= 1_000_000_000n) {
    return text + decimal(rest, 9) + "s";
  }
  return rest >= 1_000_000n ? decimal(rest, 6) + "ms" : rest >= 1_000n ? decimal(rest, 3) + "us" : `${rest}ns`;
}

/** Returns `count / 10^places`, without trailing zeros. */
export function decimal(count: bigint, places: number): string {
  const scale = 10n ** BigInt(places);
  const fraction = (count % scale).toString().padStart(places, "0").replace(/0+$/, "");
  return `${count / scale}${fraction && "."}${fraction}`;
}

/** Returns millionths in percent: `12.5%`. */
export function percent(millionths: number): string {
  return decimal(BigInt(millionths), 4) + "%";
}

/** Returns a number as Rust prints it: the shortest digits that are read back, without an exponent. */
export function plainNumber(number: number): string {
  const text = String(number);
  const match = /^(-?)(\d+)(?:\.(\d+))?e([+-]\d+)$/.exec(text);
  if (!match) {
    return Object.is(number, -0) ? "-0" : text;
  }
  const [, sign = "", integer = "", fraction = "", exponent = "0"] = match;
  const point = integer.length + Number(exponent);
  const digits = integer + fraction;
  if (point <= 0) {
    return `${sign}0.${"0".repeat(-point)}${digits}`;
  }
  return sign + digits.padEnd(point, "0");
}

/** Returns the name that is most like `word`, if at most one letter in three differs. */
export function nearest(word: string, names: Iterable<string>): string | undefined {
  const letters = encoder.encode(word);
  let best: string | undefined;
  let least = Math.ceil(letters.length / 3);
  for (const name of names) {
    const apart = distance(letters, encoder.encode(name));
    if (apart < least || (apart === least && best === undefined)) {
      [best, least] = [name, apart];
    }
  }
  return best;
}

/** Returns how many letters have to be changed, added or removed (Levenshtein). */
function distance(a: Uint8Array, b: Uint8Array): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  a.forEach((x, i) => {
    const next = [i + 1];
    b.forEach((y, j) => {
      const changed = (row[j] ?? 0) + (x === y ? 0 : 1);
      next.push(Math.min(changed, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    });
    row = next;
  });
  return row[b.length] ?? 0;
}
