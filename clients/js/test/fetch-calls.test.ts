import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { fetchRetry } from "../src/fetch-retry.js";
import { errorOutcome } from "../src/fetch-rules.js";
import { parsePolicy } from "../src/policy.js";
import { RetryError } from "../src/retry.js";
import { vectors } from "./vectors.js";
import { VirtualClock } from "./virtual.js";

interface Row {
  readonly method: string;
  readonly key: boolean;
  readonly credentials: "fresh" | "none" | "off";
  readonly script: readonly string[];
  readonly sent: readonly string[];
  readonly end: string;
}
const { calls } = vectors<{ calls: readonly Row[] }>("calls.json");
const { errors } = vectors<{ errors: readonly { code: string; class: string; isUnsent: boolean }[] }>("errors.json");

const POLICY = parsePolicy("constant base=1s jitter=none max-attempts=4 hint=exact");
const TOKEN = "00000000000000ff0123456789abcdef";

/** What Node throws: each has been seen there, the last with `allowH2`. */
const CAUSES: Readonly<Record<string, object>> = {
  refused: { code: "ECONNREFUSED", syscall: "connect" },
  lost: { code: "UND_ERR_SOCKET", message: "other side closed" },
  unprocessed: { code: "ERR_HTTP2_STREAM_ERROR", message: "Stream closed with error code NGHTTP2_REFUSED_STREAM" },
};

function failed(cause: unknown): TypeError {
  return new TypeError("fetch failed", { cause });
}

/** Returns a response with a status and a header, or throws an error. */
function end(text: string): Response {
  if (text in CAUSES) {
    throw failed(CAUSES[text]);
  }
  const [, status, name, value] = /^(\d+)(?: (.*): (.*))?$/.exec(text) ?? [];
  return new Response(null, { status: Number(status), headers: name ? { [name]: String(value).replace("TOKEN", TOKEN) } : {} });
}

test("calls are made as the tower layer of stagger-http makes them", async () => {
  assert.ok(calls.length >= 100);
  for (const { method, key, credentials, script, sent, end: last } of calls) {
    const clock = new VirtualClock();
    const [start, requests]: [number, string[]] = [clock.now(), []];
    const send = async (_: unknown, { headers }: RequestInit) => {
      const text = (name: string) => (headers as Headers).get(name) ?? "-";
      const [attempt, token] = [text("x-retry-attempt"), text("stagger-reservation-token")];
      requests.push(`at ${clock.now() - start} attempt ${attempt} ${text("authorization")} token ${token}`);
      return end(script[requests.length - 1] ?? "200");
    };
    const headers = { Authorization: "stale", ...(key ? { "Idempotency-Key": '"8e03978e"' } : {}) };
    // Redirects could lead the connection that an error is about to another server.
    const init: RequestInit = { method, headers, redirect: "error", ...(method === "GET" ? {} : { body: "an order" }) };
    const fresh = credentials === "fresh" ? { Authorization: "fresh" } : undefined;
    const refresh = credentials === "off" ? {} : { refreshCredentials: async () => fresh };
    const options = { policy: POLICY, clock, fetch: send, attemptHeader: true, ...refresh };
    const call = fetchRetry("https://api.example/", init, options).then(
      ({ status }) => String(status),
      (error: RetryError) => Object.keys(CAUSES).find((name) => CAUSES[name] === (error.cause as TypeError).cause),
    );
    await clock.advance(60_000);
    assert.deepEqual([requests, await call], [sent, last], JSON.stringify(script));
  }
});

test("errors of the operating system are classified as Rust classifies them", () => {
  for (const { code, class: kind, isUnsent } of errors) {
    const { outcome, isUnprocessed } = errorOutcome(failed({ code, syscall: "read" }));
    assert.deepEqual(["failure" in outcome && outcome.failure, isUnprocessed], [kind, isUnsent], code);
    // A connection that was never made carried nothing, whatever ended it.
    assert.equal(errorOutcome(failed({ code, syscall: "connect" })).isUnprocessed, true, code);
  }
});

test("an error proves that nothing was processed only if Node says so", () => {
  const tls = "Client network socket disconnected before secure TLS connection was established";
  const stream = (code: string) => ({ code: "ERR_HTTP2_STREAM_ERROR", message: `Stream closed with error code ${code}` });
  for (const [cause, kind, isUnprocessed] of [
    [CAUSES.unprocessed, "not-processed", true],
    [stream("NGHTTP2_ENHANCE_YOUR_CALM"), "throttled", false],
    [stream("NGHTTP2_INTERNAL_ERROR"), "transient", false],
    [{ code: "UND_ERR_SOCKET", message: 'HTTP/2: "GOAWAY" frame received with code 0' }, "transient", false],
    [{ code: "EAI_AGAIN", syscall: "getaddrinfo" }, "transient", true],
    [{ code: "ENOTFOUND", syscall: "getaddrinfo" }, "transient", true],
    [{ code: "UND_ERR_CONNECT_TIMEOUT", message: "Connect Timeout Error" }, "transient", true],
    [{ code: "UND_ERR_HEADERS_TIMEOUT", message: "Headers Timeout Error" }, "transient", false],
    [{ code: "ECONNRESET", message: tls }, "transient", true],
    [{ code: "CERT_HAS_EXPIRED", message: "certificate has expired" }, "permanent", false],
    [{ message: "unexpected redirect" }, "permanent", false],
    [{ message: "bad port" }, "permanent", false],
    // Browsers, and what is no error at all.
    [undefined, "transient", false],
    [null, "transient", false],
    ["ECONNREFUSED", "transient", false],
  ] as const) {
    const found = errorOutcome(failed(cause));
    const { outcome } = found;
    assert.deepEqual(["failure" in outcome ? outcome.failure : outcome.kind, found.isUnprocessed], [kind, isUnprocessed], JSON.stringify(cause));
  }
  for (const error of [undefined, null, "refused", { cause: Symbol("x") }]) {
    assert.deepEqual(errorOutcome(error), { outcome: { kind: "failed", failure: "transient" }, isUnprocessed: false });
  }
});

test("a refused stream is repeated at once, unless a redirect may have led to another server or the body is used up", async () => {
  const stream = () => new ReadableStream({ start: (controller) => controller.close() });
  for (const [init, delays] of [
    [{ method: "POST", body: "x", redirect: "error" }, [0, 1_000]],
    [{ method: "POST", body: "x" }, []],
    [{ method: "PUT", body: "x" }, [1_000, 1_000]],
    [{ method: "PUT", body: stream(), duplex: "half", redirect: "error" }, []],
  ] as [RequestInit, number[]][]) {
    const clock = new VirtualClock();
    const seen: number[] = [];
    let sent = 0;
    const send = async () => end((sent += 1) < 3 ? "unprocessed" : "200");
    const call = fetchRetry("https://api.example/", init, { policy: POLICY, clock, fetch: send, onRetry: ({ delayMs }) => seen.push(delayMs) });
    const made = call.then(({ status }) => status, (error: RetryError) => error.reason);
    await clock.advance(60_000);
    assert.deepEqual([seen, await made], [delays, delays.length > 0 ? 200 : "unsafe_to_retry"], JSON.stringify(init));
  }
});

test("a POST is sent again after a connection that ended before its handshake, and not after one that ended later", async () => {
  const policy = parsePolicy("constant base=1ms jitter=none max-attempts=3");
  // Deno and Bun say the same of a connection that ended before its handshake and of one that ended later.
  const proven = "Deno" in globalThis || "Bun" in globalThis ? 1 : 3;
  for (const [scheme, attempts] of [["https", proven], ["http", 1]] as const) {
    const server = createServer();
    server.on("connection", (socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const init: RequestInit = { method: "POST", body: "x", redirect: "error" };
    const url = `${scheme}://127.0.0.1:${server.address().port}/`;
    const error = await fetchRetry(url, init, { policy }).then(() => undefined, (error: RetryError) => error);
    assert.equal(error?.attempts, attempts, scheme);
    server.close();
  }
});
