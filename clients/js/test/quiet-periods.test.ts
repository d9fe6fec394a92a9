import assert from "node:assert/strict";
import { test } from "node:test";
import { fetchRetry, type FetchRetryOptions } from "../src/fetch-retry.js";
import { parsePolicy } from "../src/policy.js";
import { originAndCredentials, QuietPeriods } from "../src/quiet-periods.js";
import type { RetryError } from "../src/retry.js";
import { vectors } from "./vectors.js";
import { settled, VirtualClock } from "./virtual.js";

/** A server in virtual time, which answers as a test says, and when it received which request. */
class Server {
  readonly clock = new VirtualClock();
  readonly seen: [number, string][] = [];
  answer: (n: number, url: string) => Response | Promise<Response> = () => new Response("done");

  constructor(private readonly options: FetchRetryOptions = { quiet: new QuietPeriods() }) {}

  call(url: string, init: RequestInit = {}, options: FetchRetryOptions = {}): Promise<Response> {
    const send = async (input: RequestInfo | URL) => {
      this.seen.push([this.clock.now() - 1_000, String(input)]);
      return this.answer(this.seen.length, String(input));
    };
    const policy = parsePolicy("constant base=1s jitter=none hint=exact");
    return fetchRetry(url, init, { policy, clock: this.clock, fetch: send, seed: 1n, ...this.options, ...options });
  }

  /** Answers the first request with this, and every other with 200. */
  refuseOnce(status: number, headers: Record<string, string>): void {
    this.answer = (n) => (n === 1 ? new Response(null, { status, headers }) : new Response("done"));
  }
}

const API = "https://api.example/";

/** Calls a route that is limited, and one that is not, for two seconds. Returns when each was called, and when its requests came. */
async function routes(options: FetchRetryOptions) {
  const server = new Server(options);
  const refusal = { status: 503, headers: { "Retry-After": "5" } };
  server.answer = (_, url) => (url === `${API}busy` ? new Response(null, refusal) : new Response("done"));
  const called: number[] = [];
  for (let at = 0; at < 2_000; at += 100) {
    called.push(at);
    void server.call(`${API}busy`);
    void server.call(`${API}ok`);
    await server.clock.advance(100);
  }
  const seen = (route: string) => server.seen.filter(([, url]) => url === API + route).map(([at]) => at);
  return { called, busy: seen("busy"), ok: seen("ok") };
}

test("by default a hint delays no other call, to its route or to another", async () => {
  const { called, busy, ok } = await routes({});
  assert.deepEqual([busy, ok], [called, called]);
});

test("with a key for each route, the calls of a limited route wait together, and no others", async () => {
  const { called, busy, ok } = await routes({ quiet: new QuietPeriods({ key: ({ url }) => url }) });
  assert.deepEqual([busy, ok], [[0], called]);
});

test("while a server asks for quiet no call is sent, then one goes first, and the others follow at a pace", async () => {
  const server = new Server();
  server.refuseOnce(429, { "Retry-After": "10" });
  const first = server.call(`${API}first`, { method: "POST" });
  await settled();
  assert.equal((await first).status, 429);
  const calls = Array.from({ length: 5 }, (_, n) => server.call(`${API}${n}`));
  await server.clock.advance(9_999);
  assert.equal(server.seen.length, 1);
  // The probe is answered after a second; the rate that the server admitted before is not known, so it begins at 1/s.
  server.answer = () => new Promise((resolve) => server.clock.setTimeout(() => resolve(new Response("done")), 1_000));
  await server.clock.advance(1_000);
  assert.deepEqual(server.seen.slice(1), [[10_000, `${API}0`]]);
  await server.clock.advance(60_000);
  assert.deepEqual((await Promise.all(calls)).map(({ status }) => status), [200, 200, 200, 200, 200]);
  const starts = server.seen.slice(2).map(([at]) => at);
  assert.ok((starts[0] ?? 0) >= 11_000);
  starts.slice(1).forEach((at, n) => assert.ok(at - (starts[n] ?? 0) >= 500, starts.join()));
});

test("calls to another origin or with other credentials do not wait", async () => {
  for (const [url, init, waits] of [
    [`${API}b`, {}, true],
    ["https://API.example:443/c", {}, true],
    ["https://other.example/", {}, false],
    ["http://api.example/", {}, false],
    [API, { headers: { Authorization: "Bearer 2" } }, false],
    [API, { headers: { "X-Api-Key": "2" } }, false],
    // Bun sends no cookies, and its requests say "include" whatever they are made with.
    [API, { credentials: "omit" }, new Request(API, { credentials: "omit" }).credentials !== "omit"],
  ] as const) {
    const server = new Server();
    server.refuseOnce(503, { "Retry-After": "10" });
    void server.call(API);
    await settled();
    void server.call(url, init);
    await settled();
    assert.equal(server.seen.length, waits ? 1 : 2, JSON.stringify([url, init]));
  }
});

test("only a hint for everybody begins a pause", async () => {
  const reserved = { "stagger-reservation": "10000;token=0123456789abcdef0123456789abcdef" };
  for (const [status, headers, waits] of [
    [429, { "Retry-After": "10" }, true],
    [503, { "Retry-After": "10" }, true],
    [500, { "Retry-After": "10" }, false],
    [429, {}, false],
    [429, { "Retry-After": "0" }, false],
    [503, reserved, false],
    [429, { "Retry-After": "10", "x-should-retry": "false" }, false],
  ] as [number, Record<string, string>, boolean][]) {
    const server = new Server();
    server.refuseOnce(status, headers);
    await server.call(API, { method: "POST", redirect: "follow" }, { policy: parsePolicy("stop") });
    void server.call(API);
    await settled();
    assert.equal(server.seen.length, waits ? 1 : 2, JSON.stringify([status, headers]));
  }
});

test("a call whose turn comes too late is not sent, and is told when to come", async () => {
  const server = new Server();
  server.refuseOnce(429, { "Retry-After": "10" });
  void server.call(API);
  await settled();
  const error = await server.call(API, {}, { deadlineMs: 5_000 }).then(() => undefined, (error: RetryError) => error);
  assert.deepEqual([error?.reason, error?.attempts, error?.retryInMs, server.seen.length], ["quiet", 0, 10_000, 1]);
});

test("a call that is aborted while it waits leaves no place and no timer behind", async () => {
  const server = new Server();
  server.refuseOnce(429, { "Retry-After": "10" });
  await server.call(API, { method: "POST" });
  const controller = new AbortController();
  const calls = Array.from({ length: 1_024 }, () => server.call(API, { signal: controller.signal }).then(() => "sent", (error) => error));
  await settled();
  const rejected = await server.call(API).then(() => undefined, (error: RetryError) => error);
  assert.equal(rejected?.reason, "quiet");
  controller.abort("enough");
  assert.deepEqual(new Set(await Promise.all(calls)), new Set(["enough"]));
  assert.equal(server.clock.timers.size, 0);
  const last = server.call(API);
  await server.clock.advance(11_000);
  assert.equal((await last).status, 200);
});

test("a probe that is refused begins the pause again", async () => {
  const server = new Server();
  server.answer = (n) => (n <= 2 ? new Response(null, { status: 429, headers: { "Retry-After": n === 1 ? "10" : "20" } }) : new Response("done"));
  await server.call(API, { method: "POST" });
  const calls = [server.call(API), server.call(API)];
  await server.clock.advance(29_999);
  assert.deepEqual(server.seen.map(([at]) => at), [0, 10_000]);
  await server.clock.advance(60_000);
  assert.deepEqual((await Promise.all(calls)).map(({ status }) => status), [200, 200]);
  assert.equal(server.seen[2]?.[0], 30_000);
});

test("a hint holds other calls as long as the policy follows it, and not if the policy refuses it", async () => {
  for (const [settings, hint, held] of [
    ["", "300", 300_000],
    ["", "301", 0],
    ["max-hint=10s", "11", 0],
    ["hint=clamp:5s", "60", 5_000],
    ["hint=clamp:5s max-hint=10s", "11", 0],
    ["max-hint=inf", "31622400", 300_000],
    // What cannot be a time is no hint.
    ["max-hint=inf", "99999999999999999999", 0],
  ] as const) {
    const server = new Server({ quiet: new QuietPeriods(), policy: parsePolicy(`constant base=1s jitter=none ${settings}`) });
    server.refuseOnce(429, { "Retry-After": hint });
    await server.call(API, { method: "POST" });
    // Whatever that one follows itself.
    void server.call(API, {}, { policy: parsePolicy("constant base=1s") });
    await server.clock.advance(held);
    assert.deepEqual(server.seen.map(([at]) => at), [0, held], `${settings} ${hint}`);
  }
});

test("a probe whose policy refuses its hint begins the pause again, for twice as long", async () => {
  const server = new Server();
  const hints = ["10", "3600"];
  server.answer = (n) => (n <= 2 ? new Response(null, { status: 429, headers: { "Retry-After": hints[n - 1] ?? "" } }) : new Response("done"));
  await server.call(API, { method: "POST" });
  const calls = [server.call(API), server.call(API)];
  await server.clock.advance(60_000);
  assert.deepEqual((await Promise.all(calls)).map(({ status }) => status), [429, 200]);
  assert.deepEqual(server.seen.map(([at]) => at), [0, 10_000, 30_000]);
});

test("at most 1,000 targets are remembered, and those that hold calls are kept", async () => {
  const server = new Server();
  server.answer = () => new Response(null, { status: 429, headers: { "Retry-After": "10" } });
  for (let n = 0; n < 1_000; n += 1) {
    await server.call(`https://${n}.example/`, { method: "POST" });
  }
  void server.call("https://1000.example/", { method: "POST" });
  await settled();
  const before = server.seen.length;
  void server.call("https://1000.example/");
  void server.call("https://0.example/");
  void server.call("https://999.example/");
  await settled();
  assert.deepEqual(server.seen.slice(before).map(([, url]) => url), ["https://1000.example/"]);
});

test("if the probe is aborted, the next call is the probe in its place", async () => {
  const server = new Server();
  server.refuseOnce(429, { "Retry-After": "10" });
  await server.call(API, { method: "POST" });
  const [controller, answer] = [new AbortController(), server.answer];
  server.answer = () => new Promise(() => {});
  const probe = server.call(API, { signal: controller.signal }).catch((error) => error);
  await server.clock.advance(11_000);
  assert.equal(server.seen.length, 2);
  controller.abort("enough");
  assert.equal(await probe, "enough");
  server.answer = answer;
  const call = server.call(API);
  await settled();
  assert.equal((await call).status, 200);
});

test("requests that one client has signed wait together, as in stagger-http, and those of others do not", () => {
  const { authorizations } = vectors<{ authorizations: [string, number][] }>("signers.json");
  const keys = authorizations.map(([authorization]) => originAndCredentials(new Request(API, { headers: { authorization } })));
  assert.deepEqual(authorizations.map((_, at) => keys.indexOf(keys[at] as string)), authorizations.map(([, first]) => first));
  // It is a header of proxies, too; a key in another header is taken as it is.
  const key = (name: string, value: string) => originAndCredentials(new Request(API, { headers: { [name]: value } }));
  assert.equal(key("proxy-authorization", "AWS a:1"), key("proxy-authorization", "AWS a:2"));
  assert.ok(key("x-api-key", "AWS a:1") !== key("x-api-key", "AWS a:2"));
});
