/** Server hints: when a response asks for the next attempt. Malformed headers are ignored, and the longest of several wins. */
import { parseHttpDate } from "./fetch-date.js";
import { least, MAX_U64, MILLISECOND, SECOND } from "./numbers.js";
import type { ServerHint } from "./retry-machine.js";

/** The part of `Headers` that is read. */
export interface ReadHeaders {
  get(name: string): string | null;
  has(name: string): boolean;
}

/** The longest value that is parsed: no hint needs more. */
const MAX_LENGTH = 1_024;
/** Resets from this value on are Unix times, not numbers of seconds. */
const FIRST_UNIX_TIME = 1_000_000_000n;

/**
 * Returns the hint of a response that was received at `now`, in milliseconds since 1970: the first valid header of
 * `x-should-retry: false`, `stagger-reservation`, `retry-after-ms`, `x-ms-retry-after-ms`, `x-amz-retry-after`, `Retry-After`,
 * `RateLimit`, `RateLimit-Reset` and `X-RateLimit-Reset`.
 */
export function serverHint(headers: ReadHeaders, now: number): ServerHint | undefined {
  if (shouldRetry(headers) === false) {
    return { kind: "do-not-retry" };
  }
  const reserved = reservation(headers);
  if (reserved) {
    return { kind: "reserved", wait: reserved.wait };
  }
  const wait =
    longest(values(headers, "retry-after-ms").map(milliseconds)) ??
    longest(values(headers, "x-ms-retry-after-ms").map(milliseconds)) ??
    longest(values(headers, "x-amz-retry-after").map((text) => digits(text, MILLISECOND))) ??
    retryAfter(headers, now) ??
    rateLimit(headers, now);
  return wait === undefined ? undefined : { kind: "at-least", wait: least(wait, MAX_U64) };
}

/** Returns what the server says about a retry, if it does. */
export function shouldRetry(headers: ReadHeaders): boolean | undefined {
  const value = headers.get("x-should-retry");
  return value === "true" ? true : value === "false" ? false : undefined;
}

/** Returns the time that was assigned to this client alone, and the token that it presents then. */
export function reservation(headers: ReadHeaders): { readonly wait: bigint; readonly token: string } | undefined {
  // Of several values it is unknown which one the server kept.
  const value = values(headers, "stagger-reservation", false)[0] ?? "";
  const [, text = "", token = ""] = /^(\d{1,20})[ \t]*;[ \t]*token=([0-9a-f]{32})$/i.exec(value) ?? [];
  const wait = digits(text, 1n);
  return wait === undefined || BigInt(text) > MAX_U64 ? undefined : { wait: wait * MILLISECOND, token };
}

function retryAfter(headers: ReadHeaders, now: number): bigint | undefined {
  const sent = parseHttpDate(values(headers, "date", false)[0] ?? "", now) ?? now;
  return longest(
    dates(values(headers, "retry-after")).map((text) => {
      const date = parseHttpDate(text, now);
      return date === undefined ? digits(text, SECOND) : BigInt(Math.max(0, Math.trunc(date - sent))) * MILLISECOND;
    }),
  );
}

/** Joins the two parts of dates that the comma after the weekday has divided. */
function dates(parts: readonly string[]): string[] {
  const joined: string[] = [];
  for (let at = 0; at < parts.length; at += 1) {
    const part = parts[at] ?? "";
    joined.push(/^[A-Z][a-z]+$/.test(part) ? `${part}, ${parts[(at += 1)] ?? ""}` : part);
  }
  return joined;
}

function rateLimit(headers: ReadHeaders, now: number): bigint | undefined {
  const drafted = fromDraft(values(headers, "ratelimit", false)[0] ?? "");
  if (drafted !== undefined) {
    return drafted;
  }
  for (const prefix of ["", "x-"]) {
    const count = (name: string) => longest(values(headers, `${prefix}ratelimit-${name}`).map((text) => digits(text, 1n)));
    const reset = headers.has(`${prefix}ratelimit-remaining`) && count("remaining") !== 0n ? undefined : count("reset");
    if (reset !== undefined) {
      const since = BigInt(Math.max(0, Math.trunc(now))) * MILLISECOND;
      const wait = reset < FIRST_UNIX_TIME ? reset * SECOND : reset * SECOND - since;
      return wait > 0n ? wait : 0n;
    }
  }
  return undefined;
}

const KEY = "[a-z*][-a-z0-9_.*]*";
const BARE = String.raw`-?(?:\d{1,12}\.\d{1,3}|\d{1,15}(?![\d.]))|"(?:[ !#-[\]-~]|\\["\\])*"|[A-Za-z*][-A-Za-z0-9:/!#$%&'*+.^_\`|~]*|:[A-Za-z0-9+/=]*:|\?[01]`;
const PARAMETERS = String.raw`(?:; *${KEY}(?:=(?:${BARE}))?)*`;
const NAMED = new RegExp(String.raw`^"(?:[ !#-[\]-~]|\\["\\])*"(${PARAMETERS})(?:[ \t]*,[ \t]*(?=.)|$)`);
const MEMBER = new RegExp(String.raw`^(${KEY})(?:=(${BARE}))?(?:${PARAMETERS})(?:[ \t]*,[ \t]*(?=.)|$)`);

/** Returns the time until a limit without anything left resets, by the IETF draft: a list since draft 8, before a dictionary. */
function fromDraft(text: string): bigint | undefined {
  const waits: (bigint | undefined)[] = [];
  const limits = new Map<string, string>();
  let [rest, named] = [text, true];
  while (rest !== "") {
    const match = (named ? NAMED : MEMBER).exec(rest);
    if (!match && named && rest === text) {
      named = false;
      continue;
    }
    if (!match) {
      return undefined;
    }
    if (named) {
      const parameter = (name: string) => last(match[1] ?? "", new RegExp(`; *${name}=(-?\\d+)(?=;|$)`, "g"));
      waits.push(parameter("r") === 0n ? parameter("t") : undefined);
    } else {
      limits.set(match[1] ?? "", match[2] ?? "");
    }
    rest = rest.slice((match[0] ?? "").length);
  }
  if (!named) {
    const number = (name: string) => digits(limits.get(name) ?? "", 1n);
    waits.push(number("remaining") === 0n ? number("reset") : undefined);
  }
  const wait = longest(waits);
  return wait === undefined ? undefined : wait * SECOND;
}

function last(text: string, pattern: RegExp): bigint | undefined {
  const found = [...text.matchAll(pattern)].pop()?.[1];
  return found === undefined ? undefined : digits(found, 1n);
}

/** Returns the values of a header, which may be repeated: browsers join the lines by commas. */
function values(headers: ReadHeaders, name: string, isList = true): string[] {
  const value = headers.get(name);
  if (value === null || value.length > MAX_LENGTH) {
    return [];
  }
  return (isList ? value.split(",") : [value]).map((part) => part.replace(/^[ \t]+|[ \t]+$/g, ""));
}

/** Returns a whole number of units, if the text has nothing but digits; at most 2^64 − 1 in all. */
function digits(text: string, unit: bigint): bigint | undefined {
  if (!/^\d+$/.test(text)) {
    return undefined;
  }
  return least(BigInt(text) * unit, MAX_U64);
}

/** Returns milliseconds with or without a fraction, of which six decimals are read, in nanoseconds. */
function milliseconds(text: string): bigint | undefined {
  const [, whole = "", fraction = "0"] = /^(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  const nanos = digits(fraction.slice(0, 6).padEnd(6, "0"), 1n) ?? 0n;
  const length = digits(whole, MILLISECOND);
  return length === undefined ? undefined : length + nanos;
}

function longest(waits: readonly (bigint | undefined)[]): bigint | undefined {
  return waits.reduce((most, wait) => (wait !== undefined && (most === undefined || wait > most) ? wait : most), undefined);
}
