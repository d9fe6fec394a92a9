/** Server hints: when a response asks for the next attempt. Malformed headers are ignored, and the longest of several wins. */
import { parseHttpDate } from "./fetch-date.js";
import { greatest, least, MAX_U64, MILLISECOND, SECOND } from "./numbers.js";
import type { ServerHint } from "./retry-machine.js";

/** The part of `Headers` that is read. */
export interface ReadHeaders {
  get(name: string): string | null;
  has(name: string): boolean;
}

/** Headers of a delay in milliseconds, with or without a fraction. */
const MILLISECONDS = ["retry-after-ms", "x-ms-retry-after-ms"];
/** The longest value that is parsed: no hint needs more. */
const MAX_LENGTH = 1_024;
/** Numbers from here on are no waits but Unix times, in seconds; and from a thousand times as much on, in milliseconds. */
const FIRST_UNIX_TIME = 1_000_000_000n;
/** The longest wait that a server can mean: 366 days. What is longer is a mistake, such as a number with another unit. */
const LONGEST = 366n * 86_400n * SECOND;

/**
 * Returns the hint of a response that was received at `now`, in milliseconds since 1970: the first valid header of
 * `x-should-retry: false`, `stagger-reservation`, `retry-after-ms`, `x-ms-retry-after-ms`, `x-amz-retry-after`, `Retry-After`,
 * `RateLimit`, `RateLimit-Reset` and `X-RateLimit-Reset`. In each of them a large number is a Unix time, and a wait of more than a
 * year is malformed.
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
    inMilliseconds(headers, now) ??
    longest(values(headers, "x-amz-retry-after").map((text) => meant(digits(text), MILLISECOND, now))) ??
    retryAfter(headers, now) ??
    rateLimit(headers, now);
  return wait === undefined ? undefined : { kind: "at-least", wait };
}

/** Returns what the server says about a retry, if it does. */
export function shouldRetry(headers: ReadHeaders): boolean | undefined {
  const value = headers.get("x-should-retry");
  return value === "true" ? true : value === "false" ? false : undefined;
}

/** Returns whether there is a header of a delay, and not only the state of a rate limit, which some servers add to every response. */
export function namesWait(headers: ReadHeaders): boolean {
  return [...MILLISECONDS, "x-amz-retry-after", "retry-after", "stagger-reservation"].some((name) => headers.has(name));
}

/** Returns whether nothing of a rate limit remains, whether or not it is said until when. */
export function isExhausted(headers: ReadHeaders): boolean {
  const nothingOf = (name: string) => longest(values(headers, name).map(digits)) === 0n;
  return nothingOf("ratelimit-remaining") || nothingOf("x-ratelimit-remaining") || exhausted(headers).length > 0;
}

/** Returns the time that was assigned to this client alone, and the token that it presents then. */
export function reservation(headers: ReadHeaders): { readonly wait: bigint; readonly token: string } | undefined {
  // Of several values it is unknown which one the server kept.
  const value = values(headers, "stagger-reservation", false)[0] ?? "";
  const [, text = "", token = ""] = /^(\d{1,20})[ \t]*;[ \t]*token=([0-9a-f]{32})$/i.exec(value) ?? [];
  const count = digits(text);
  const wait = count === undefined ? undefined : possible(count * MILLISECOND);
  return wait === undefined ? undefined : { wait, token };
}

function inMilliseconds(headers: ReadHeaders, now: number): bigint | undefined {
  for (const name of MILLISECONDS) {
    const wait = longest(values(headers, name).map((text) => decimal(text, MILLISECOND, now)));
    if (wait !== undefined) {
      return wait;
    }
  }
  return undefined;
}

function retryAfter(headers: ReadHeaders, now: number): bigint | undefined {
  const sent = parseHttpDate(values(headers, "date", false)[0] ?? "", now) ?? now;
  return longest(
    dates(values(headers, "retry-after")).map((text) => {
      const date = parseHttpDate(text, now);
      return date === undefined ? meant(digits(text), SECOND, sent) : possible(until(BigInt(date) * MILLISECOND, sent));
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
  const drafted = longest(exhausted(headers).map((seconds) => meant(seconds, SECOND, now)));
  if (drafted !== undefined) {
    return drafted;
  }
  for (const prefix of ["", "x-"]) {
    const of = (name: string) => values(headers, `${prefix}ratelimit-${name}`);
    if (!headers.has(`${prefix}ratelimit-remaining`) || longest(of("remaining").map(digits)) === 0n) {
      const wait = longest(of("reset").map((text) => decimal(text, SECOND, now)));
      if (wait !== undefined) {
        return wait;
      }
    }
  }
  return undefined;
}

const KEY = "[a-z*][-a-z0-9_.*]*";
const BARE = String.raw`-?(?:\d{1,12}\.\d{1,3}|\d{1,15}(?![\d.]))|"(?:[ !#-[\]-~]|\\["\\])*"|[A-Za-z*][-A-Za-z0-9:/!#$%&'*+.^_\`|~]*|:[A-Za-z0-9+/=]*:|\?[01]`;
const PARAMETERS = String.raw`(?:; *${KEY}(?:=(?:${BARE}))?)*`;
const NAMED = new RegExp(String.raw`^"(?:[ !#-[\]-~]|\\["\\])*"(${PARAMETERS})(?:[ \t]*,[ \t]*(?=.)|$)`);
const MEMBER = new RegExp(String.raw`^(${KEY})(?:=(${BARE}))?(?:${PARAMETERS})(?:[ \t]*,[ \t]*(?=.)|$)`);

/** Returns the resets of the limits without anything left, by the IETF draft: a list since draft 8, before a dictionary. */
function exhausted(headers: ReadHeaders): bigint[] {
  const text = values(headers, "ratelimit", false)[0] ?? "";
  const resets: (bigint | undefined)[] = [];
  const limits = new Map<string, string>();
  let [rest, named] = [text, true];
  while (rest !== "") {
    const match = (named ? NAMED : MEMBER).exec(rest);
    if (!match && named && rest === text) {
      named = false;
      continue;
    }
    if (!match) {
      return [];
    }
    if (named) {
      const parameter = (name: string) => last(match[1] ?? "", new RegExp(`; *${name}=(-?\\d+)(?=;|$)`, "g"));
      resets.push(parameter("r") === 0n ? parameter("t") : undefined);
    } else {
      limits.set(match[1] ?? "", match[2] ?? "");
    }
    rest = rest.slice((match[0] ?? "").length);
  }
  if (!named) {
    const number = (name: string) => digits(limits.get(name) ?? "");
    resets.push(number("remaining") === 0n ? number("reset") : undefined);
  }
  return resets.filter((reset): reset is bigint => reset !== undefined);
}

function last(text: string, pattern: RegExp): bigint | undefined {
  const found = [...text.matchAll(pattern)].pop()?.[1];
  return found === undefined ? undefined : digits(found);
}

/** Returns the values of a header, which may be repeated: browsers join the lines by commas. */
function values(headers: ReadHeaders, name: string, isList = true): string[] {
  const value = headers.get(name);
  if (value === null || value.length > MAX_LENGTH) {
    return [];
  }
  return (isList ? value.split(",") : [value]).map((part) => part.replace(/^[ \t]+|[ \t]+$/g, ""));
}

/** Returns the number, if the text has nothing but digits; at most 2^64 − 1. */
function digits(text: string): bigint | undefined {
  return /^\d+$/.test(text) ? least(BigInt(text), MAX_U64) : undefined;
}

/** Returns the wait that a number with or without a fraction means, of which nanoseconds are read. */
function decimal(text: string, unit: bigint, now: number): bigint | undefined {
  const [, whole = "", fraction = "0"] = /^(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  const wait = meant(digits(whole), unit, now);
  return wait === undefined ? undefined : wait + (BigInt(fraction.slice(0, 9).padEnd(9, "0")) * unit) / SECOND;
}

/** Returns the wait that a number of units means; `undefined` if no server can mean it. */
function meant(count: bigint | undefined, unit: bigint, now: number): bigint | undefined {
  if (count === undefined) {
    return undefined;
  }
  if (count < FIRST_UNIX_TIME) {
    return possible(count * unit);
  }
  return possible(until(count * (count < FIRST_UNIX_TIME * 1_000n ? SECOND : MILLISECOND), now));
}

/** Returns the wait from `now`, in milliseconds, until this time since 1970, in nanoseconds; zero if it has passed. */
function until(time: bigint, now: number): bigint {
  return greatest(time - BigInt(Math.max(0, Math.trunc(now))) * MILLISECOND, 0n);
}

function possible(wait: bigint): bigint | undefined {
  return wait <= LONGEST ? wait : undefined;
}

function longest(waits: readonly (bigint | undefined)[]): bigint | undefined {
  return waits.reduce((most, wait) => (wait !== undefined && (most === undefined || wait > most) ? wait : most), undefined);
}
