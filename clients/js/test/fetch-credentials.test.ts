import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { type DeniedRequest, fetchRetry, type FetchRetryOptions } from "../src/fetch-retry.js";
import { parsePolicy } from "../src/policy.js";
import { QuietPeriods } from "../src/quiet-periods.js";
import { TokenBudget } from "../src/retry-budget.js";
import { settled, VirtualClock } from "./virtual.js";

const POLICY = parsePolicy("constant base=1s jitter=none max-attempts=3");
const URL = "https://api.example/";

/** Responses by status, and what was sent for them. */
class Server {
  readonly clock = new VirtualClock();
  readonly start = this.clock.now();
  readonly sent: string[] = [];
  readonly responses: Response[] = [];

  constructor(private readonly statuses: number[]) {}

  /** Calls the server, with credentials that are stale. */
  call(options: FetchRetryOptions, init: RequestInit = {}): Promise<Response> {
    const headers = { Authorization: "stale" };
    return fetchRetry(URL, { headers, ...init }, { policy: POLICY, clock: this.clock, fetch: this.fetch, ...options });
  }

  readonly fetch: NonNullable<FetchRetryOptions["fetch"]> = async (_, { headers }) => {
    this.sent.push(`${(headers as Headers).get("authorization")} at ${this.clock.now() - this.start}`);
    const status = this.statuses.shift() ?? 200;
    const response = new Response(`status ${status}`, { status, headers: status === 429 ? { "Retry-After": "10" } : {} });
    this.responses.push(response);
    return response;
  };
}

const fresh = async () => ({ Authorization: "fresh" });

/** Returns the error of a call. */
function failure(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => "no error",
    (error) => error,
  );
}

test("a denied request is sent again at once with fresh credentials, once per call, and the repeat is not counted", async () => {
  for (const status of [401, 403]) {
    const budget = new TokenBudget();
    const server = new Server([status, 503, status]);
    const [denied, delays]: [DeniedRequest[], unknown[]] = [[], []];
    const call = server.call({
      budget,
      refreshCredentials: (request) => {
        denied.push(request);
        return fresh();
      },
      onRetry: ({ attempt, delayMs, source }) => delays.push([attempt, delayMs, source]),
    });
    await server.clock.advance(5_000);
    assert.deepEqual([(await call).status, await (await call).text()], [status, `status ${status}`]);
    assert.deepEqual(server.sent, ["stale at 0", "fresh at 0", "fresh at 1000"]);
    assert.deepEqual(delays, [[1, 0, "transparent"], [1, 1_000, "schedule"]]);
    const told = denied.map(({ url, method, headers, response }) => [url, method, headers.get("authorization"), response.status]);
    assert.deepEqual(told, [[URL, "GET", "stale", status]]);
    assert.deepEqual([budget.tokens, server.responses[0]?.bodyUsed], [500, true]);
  }
});

test("without fresh credentials the caller gets the denial", async () => {
  for (const refreshCredentials of [() => undefined, () => null, async () => {}]) {
    const server = new Server([401]);
    const response = await server.call({ refreshCredentials });
    assert.deepEqual([response.status, await response.text(), server.sent.length], [401, "status 401", 1]);
  }
});

test("a refresh lasts no longer than its attempt, and the caller gets the denial then", async () => {
  for (const limit of [{ timeoutMs: 2_000 }, { deadlineMs: 2_000 }]) {
    const server = new Server([401]);
    const signals: AbortSignal[] = [];
    const refreshCredentials = ({ signal }: DeniedRequest) => (signals.push(signal), new Promise<void>(() => {}));
    const call = server.call({ refreshCredentials, ...limit });
    await server.clock.advance(1_999);
    assert.equal(signals[0]?.aborted, false);
    await server.clock.advance(1);
    assert.deepEqual([(await call).status, (signals[0]?.reason as Error).name, server.clock.timers.size], [401, "TimeoutError", 0]);
  }
});

test("a refresh takes of the time of its attempt what the request has left", async () => {
  const server = new Server([401]);
  const slow: typeof server.fetch = async (input, init) => {
    await new Promise<void>((resolve) => server.clock.setTimeout(resolve, 1_500));
    return server.fetch(input, init);
  };
  const refreshCredentials = () => new Promise<{ Authorization: string }>((resolve) => {
    server.clock.setTimeout(() => resolve({ Authorization: "fresh" }), 600);
  });
  const call = server.call({ fetch: slow, refreshCredentials, timeoutMs: 2_000 });
  await server.clock.advance(10_000);
  assert.deepEqual([(await call).status, server.sent], [401, ["stale at 1500"]]);
});

test("a refresh that begins late, as on a page that was frozen, still ends", async () => {
  const server = new Server([401]);
  const frozen: typeof server.fetch = (input, init) => (server.clock.freeze(3_000), server.fetch(input, init));
  const call = server.call({ fetch: frozen, refreshCredentials: () => new Promise<void>(() => {}), timeoutMs: 2_000 });
  await server.clock.advance(5_000);
  assert.equal((await call).status, 401);
});

test("an abort at any step before a refresh that never ends, and during it, ends the call", async () => {
  for (let step = 0; step < 60; step += 1) {
    const controller = new AbortController();
    const ended = failure(new Server([401]).call({ refreshCredentials: () => new Promise<void>(() => {}) }, { signal: controller.signal }));
    for (let turn = 0; turn < step; turn += 1) {
      await Promise.resolve();
    }
    controller.abort("enough");
    let end: unknown = "still running";
    void ended.then((error) => (end = error));
    await settled();
    assert.equal(end, "enough", `step ${step}`);
  }
});

test("an abort ends a refresh and its call at once, and lets go of the response", async () => {
  const server = new Server([401]);
  const controller = new AbortController();
  let seen: AbortSignal | undefined;
  const refreshCredentials = ({ signal }: DeniedRequest) => ((seen = signal), new Promise<void>(() => {}));
  const ended = failure(server.call({ refreshCredentials }, { signal: controller.signal }));
  await settled();
  controller.abort("enough");
  assert.deepEqual([await ended, seen?.reason, server.responses[0]?.bodyUsed], ["enough", "enough", true]);
  assert.equal(getEventListeners(controller.signal, "abort").length, 0);
});

test("what a refresh throws ends the call, as headers that are none do, and the response is cancelled", async () => {
  const mistake = new Error("mistake");
  for (const refreshCredentials of [() => Promise.reject(mistake), () => { throw mistake; }, () => ({ "no name": "x" })]) {
    const server = new Server([401]);
    const error = await failure(server.call({ refreshCredentials }));
    assert.ok(error === mistake || error instanceof TypeError, String(error));
    assert.deepEqual([server.sent.length, server.responses[0]?.bodyUsed], [1, true]);
  }
});

test("credentials are not refreshed for a body that is used up, or for what a redirect may have carried out", async () => {
  const redirected = async (input: unknown, init: RequestInit) => {
    const response = await server.fetch(input as string, init);
    return Object.defineProperty(response, "redirected", { value: true });
  };
  const stream = () => new ReadableStream({ start: (controller) => controller.close() });
  let server = new Server([]);
  for (const [init, options, requests] of [
    [{ method: "PUT", body: stream(), duplex: "half" }, {}, 1],
    [{ method: "POST", body: "pay" }, { fetch: redirected }, 1],
    [{ method: "PUT", body: "pay" }, { fetch: redirected }, 2],
    [{ method: "POST", body: "pay" }, { fetch: redirected, idempotent: true }, 2],
    [{ method: "POST", body: "pay" }, {}, 2],
  ] as [RequestInit, FetchRetryOptions, number][]) {
    server = new Server([401]);
    const response = await server.call({ refreshCredentials: fresh, ...options }, init);
    assert.deepEqual([server.sent.length, response.status], [requests, requests === 1 ? 401 : 200], JSON.stringify(init));
  }
});

test("fresh credentials have a quiet period of their own", async () => {
  const server = new Server([429, 401]);
  const quiet = new QuietPeriods();
  const headers = { Authorization: "fresh" };
  assert.equal((await server.call({ quiet }, { method: "POST", headers })).status, 429);
  const call = server.call({ quiet, refreshCredentials: fresh });
  await server.clock.advance(20_000);
  assert.equal((await call).status, 200);
  assert.deepEqual(server.sent, ["fresh at 0", "stale at 0", "fresh at 10000"]);
});

test("a refresh may call the server that it is for, also while that tries one call only", async () => {
  const server = new Server([429, 401, 200, 200]);
  const quiet = new QuietPeriods();
  assert.equal((await server.call({ quiet }, { method: "POST" })).status, 429);
  const refreshCredentials = async () => ((await server.call({ quiet })).status === 200 ? fresh() : undefined);
  const call = server.call({ quiet, refreshCredentials });
  await server.clock.advance(11_000);
  assert.equal((await call).status, 200);
  assert.deepEqual(server.sent, ["stale at 0", "stale at 10000", "stale at 10000", "fresh at 10000"]);
});

test("a repeat that would begin at the deadline is not made", async () => {
  const server = new Server([401]);
  const stops: unknown[] = [];
  const refreshCredentials = () => (server.clock.freeze(1_500), { Authorization: "fresh" });
  const response = await server.call({ refreshCredentials, deadlineMs: 1_500, onStop: ({ reason }) => stops.push(reason) });
  assert.deepEqual([response.status, server.sent.length, stops], [401, 1, ["deadline"]]);
});
