import assert from "node:assert/strict";
import { test } from "node:test";
import { parseHttpDate } from "../src/fetch-date.js";
import { serverHint } from "../src/fetch-hints.js";
import { announcedWait, errorOutcome, type Idempotency, idempotencyOf, responseOutcome } from "../src/fetch-rules.js";
import { vectors } from "./vectors.js";

type Lines = [string, string][];
interface Vectors {
  readonly now: number;
  readonly hints: readonly { readonly headers: Lines; readonly hint: string | null }[];
  readonly announced: readonly { readonly status: number; readonly headers: Lines; readonly isThrottled: boolean }[];
  readonly statuses: readonly { readonly headers: Lines; readonly idempotency: Idempotency; readonly classes: string }[];
}
const { now, hints, announced, statuses } = vectors<Vectors>("http.json");

test("hints are read from headers as stagger-http reads them", () => {
  for (const { headers, hint } of hints) {
    const found = serverHint(new Headers(headers), now * 1_000);
    const text = found && "wait" in found ? `${found.kind} ${found.wait}` : (found?.kind ?? null);
    assert.equal(text, hint, JSON.stringify(headers));
  }
});

test("statuses are classified as stagger-http classifies them", () => {
  for (const { headers: lines, idempotency, classes } of statuses) {
    const headers = new Headers(lines);
    const hint = serverHint(headers, 0);
    const found = Array.from({ length: 400 }, (_, at) => {
      const outcome = responseOutcome(200 + at, headers, idempotency, hint);
      return "failure" in outcome && outcome.failure === "throttled" ? "o" : outcome.kind === "failed" ? "t" : outcome.kind[0];
    });
    assert.equal(found.join(""), classes, JSON.stringify([lines, idempotency]));
  }
});

test("a wait that is announced with 403 or 413 is found as stagger-http finds it", () => {
  for (const { status, headers: lines, isThrottled } of announced) {
    const headers = new Headers(lines);
    const hint = serverHint(headers, now * 1_000);
    const found = announcedWait(status, headers, hint);
    const want = isThrottled ? { kind: "failed", failure: "throttled", hint } : undefined;
    assert.deepEqual(found, want, `${status} ${JSON.stringify(lines)}`);
  }
});

test("a request is idempotent by its key or its method", () => {
  const key = new Headers({ "Idempotency-Key": "1" });
  for (const [method, headers, idempotency] of [
    ["GET", new Headers(), "method"],
    ["delete", new Headers(), "method"],
    ["POST", new Headers(), "none"],
    ["PATCH", new Headers(), "none"],
    ["get ", new Headers(), "none"],
    ["POST", key, "key"],
  ] as const) {
    assert.equal(idempotencyOf(method, headers), idempotency, method);
  }
});

test("errors mean what each runtime means by them, and anything else nothing", () => {
  const failed = (cause: unknown) => Object.assign(new TypeError("fetch failed"), { cause });
  const bun = (code: string, message = `${code}: more`) => Object.assign(new TypeError(message), { code });
  const sending = "error sending request for url (https://a.example/): client error";
  for (const [error, meaning] of [
    // As Node 20.20 and 22.23 throw them.
    [failed({ code: "ECONNREFUSED", message: "connect ECONNREFUSED 127.0.0.1:9" }), "not-sent"],
    [failed({ code: "ENOTFOUND", message: "getaddrinfo ENOTFOUND a.invalid" }), "not-sent"],
    [failed({ code: "EAI_AGAIN", message: "getaddrinfo EAI_AGAIN a.invalid", syscall: "getaddrinfo" }), "not-sent"],
    [failed({ code: "EAI_NODATA", message: "getaddrinfo EAI_NODATA a.invalid", syscall: "getaddrinfo" }), "not-sent"],
    [failed({ code: "UND_ERR_SOCKET", message: "other side closed" }), "unknown"],
    [failed({ code: "ECONNRESET", message: "read ECONNRESET" }), "unknown"],
    [failed(new Error("redirect count exceeded")), "permanent"],
    [failed(new Error("unknown scheme")), "permanent"],
    [failed({ code: "DEPTH_ZERO_SELF_SIGNED_CERT", message: "self-signed certificate" }), "permanent"],
    // Bun 1.4.5.
    [bun("ECONNREFUSED"), "not-sent"],
    [bun("ENOTFOUND", "getaddrinfo ENOTFOUND a.invalid"), "not-sent"],
    [bun("ECONNRESET"), "unknown"],
    [bun("EPROTO"), "unknown"],
    [bun("TooManyRedirects"), "permanent"],
    [bun("DEPTH_ZERO_SELF_SIGNED_CERT", "self signed certificate"), "permanent"],
    // Deno 2.9.6. A connection that is refused may be the second one of the request.
    [failed(new Error(`${sending} (Connect): tcp connect error: Connection refused (os error 111)`)), "unknown"],
    [failed(new Error(`${sending} (SendRequest): connection closed before message completed`)), "unknown"],
    [failed(new Error(`${sending} (Connect): invalid peer certificate: UnknownIssuer`)), "permanent"],
    [new TypeError("Fetch failed: Maximum number of redirects (20) reached"), "permanent"],
    // Browsers, and what only a function of the application throws.
    [new TypeError("Failed to fetch"), "unknown"],
    [undefined, "unknown"],
    ["redirect count exceeded", "unknown"],
    [{ message: Symbol("x"), code: 23, cause: { message: 1n, code: Symbol("y") } }, "unknown"],
  ] as const) {
    const { outcome, isUnprocessed } = errorOutcome(error);
    const found = outcome.kind === "permanent" ? "permanent" : isUnprocessed ? "not-sent" : "unknown";
    assert.equal(found, meaning, String(error));
  }
});

test("every second of some days is parsed in all three formats", () => {
  const days = [0, 951_696_000_000, 1_709_164_800_000, 1_795_392_000_000];
  for (const day of days) {
    for (let second = 0; second < 86_400; second += 997) {
      const date = new Date(day + second * 1_000);
      const text = date.toUTCString();
      const [, week, number, month, year, time] = /^(\w+), (\d+) (\w+) (\d+) (\S+) GMT$/.exec(text) ?? [];
      const name = new Intl.DateTimeFormat("en-US", { weekday: "long", timeZone: "UTC" }).format(date);
      assert.equal(parseHttpDate(text, 0), date.getTime());
      assert.equal(parseHttpDate(`${week} ${month} ${String(Number(number)).padStart(2)} ${time} ${year}`, 0), date.getTime());
      assert.equal(parseHttpDate(`${name}, ${number}-${month}-${year?.slice(2)} ${time} GMT`, date.getTime()), date.getTime());
    }
  }
});

test("a hint in a header of any length takes no time to speak of", () => {
  const started = performance.now();
  for (const value of ['"a"'.padEnd(1_000, ";a"), "a=".repeat(500), `"${"\\".repeat(1_000)}`, "9".repeat(1_000_000), "; ".repeat(500_000)]) {
    for (const name of ["ratelimit", "retry-after", "retry-after-ms", "date", "stagger-reservation"]) {
      serverHint(new Headers({ [name]: value }), 0);
    }
  }
  assert.ok(performance.now() - started < 1_000);
});
