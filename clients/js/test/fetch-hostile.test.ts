import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { type Answer, createServer } from "node:http";
import { test } from "node:test";
import { fetchRetry, type FetchRetryOptions } from "../src/fetch-retry.js";
import { parsePolicy } from "../src/policy.js";
import { QuietPeriods } from "../src/quiet-periods.js";
import { RetryError } from "../src/retry.js";
import type { RetryStop } from "../src/retry-call.js";
import { settled, VirtualClock } from "./virtual.js";

const POLICY = parsePolicy("constant base=1s jitter=none max-attempts=3");
const API = "https://api.example/";

type Send = NonNullable<FetchRetryOptions["fetch"]>;

/** Makes a call in virtual time, and returns what was sent, and what has become of the call after a minute. */
async function made(send: Send, input: RequestInfo | URL = API, init: RequestInit = {}, options: FetchRetryOptions = {}) {
  const clock = new VirtualClock();
  const sent: { input: RequestInfo | URL; init: RequestInit }[] = [];
  const recorded: Send = (input, init) => (sent.push({ input, init }), send(input, init));
  const call = fetchRetry(input, init, { policy: POLICY, clock, fetch: recorded, ...options }).then(
    (response) => ({ response, error: undefined }),
    (error: unknown) => ({ response: undefined, error: error as RetryError }),
  );
  await clock.advance(60_000);
  return { sent, timers: clock.timers.size, ...(await call) };
}

/** Answers with these statuses, and then with 200. */
function answering(...statuses: number[]): Send {
  return async () => new Response("body", { status: statuses.shift() ?? 200 });
}

test("a fetch that throws, rejects with anything, or resolves with anything leaves no timer", async () => {
  const throwing: Send = () => {
    throw new TypeError("at once");
  };
  for (const [send, reason, attempts] of [
    [throwing, "attempts", 3],
    [() => Promise.reject(undefined), "attempts", 3],
    [() => Promise.reject(null), "attempts", 3],
    [() => Promise.reject(new DOMException("stopped", "AbortError")), "permanent", 1],
  ] as [Send, string, number][]) {
    const { error, sent, timers } = await made(send, API, {}, { timeoutMs: 5_000 });
    assert.deepEqual([error?.reason, sent.length, timers], [reason, attempts, 0]);
  }
  const { error, timers } = await made(async () => undefined as never, API, {}, { timeoutMs: 5_000 });
  assert.deepEqual([error instanceof TypeError, timers], [true, 0]);
});

test("a fetch that never ends is ended by the timeout, and what it returns later is cancelled", async () => {
  const late: ((response: Response) => void)[] = [];
  const { error, sent, timers } = await made(() => new Promise((resolve) => late.push(resolve)), API, {}, { timeoutMs: 2_000 });
  assert.deepEqual([error?.reason, (error?.cause as Error).name, sent.length, timers], ["attempts", "TimeoutError", 3, 0]);
  const responses = late.map((resolve) => {
    const response = new Response("late");
    resolve(response);
    return response;
  });
  await settled();
  assert.ok(responses.every(({ bodyUsed }) => bodyUsed));
});

test("an opaque response is the caller's, whatever its status was", async () => {
  for (const type of ["opaque", "opaqueredirect"] as const) {
    const opaque = Object.defineProperties(new Response(null), { status: { value: 0 }, type: { value: type } });
    const { response, sent } = await made(async () => opaque, API, { method: "POST", body: "x", mode: "no-cors" });
    assert.deepEqual([response === opaque, sent.length], [true, 1]);
  }
});

test("a key that the browser does not send, as with no-cors, makes no request safe", async () => {
  const { Request: Platform } = globalThis;
  // Node sends it. Browsers keep the headers of such a request to a short list.
  globalThis.Request = class extends Platform {
    override get headers(): Headers {
      return this.mode === "no-cors" ? new Headers() : super.headers;
    }
  };
  try {
    for (const [mode, attempts] of [["no-cors", 1], ["cors", 3]] as const) {
      for (const [headers, idempotencyKeys] of [[{ "Idempotency-Key": "1" }, false], [{}, true]] as const) {
        const lost = () => Promise.reject(new TypeError("Failed to fetch"));
        const { sent } = await made(lost, API, { method: "POST", body: "x", mode, headers }, { idempotencyKeys });
        assert.equal(sent.length, attempts, mode);
      }
    }
  } finally {
    globalThis.Request = Platform;
  }
});

test("every attempt is told what the caller said at first, whatever becomes of it meanwhile", async () => {
  const url = new URL("https://api.example/a?b#c");
  const headers = new Map([["x-mine", "1"]]).entries();
  const init: RequestInit = { method: "PUT", body: "x", credentials: "include", keepalive: true, headers: headers as never };
  const answer = answering(503, 503);
  const changing: Send = (input, given) => {
    url.pathname = "/other";
    Object.assign(init, { method: "POST", body: "other", credentials: "omit" });
    return answer(input, given);
  };
  const { sent } = await made(changing, url, init);
  const told = sent.map(({ input, init: { method, body, credentials, keepalive, headers } }) => {
    return [String(input), method, body, credentials, keepalive, (headers as Headers).get("x-mine")];
  });
  const expected = ["https://api.example/a?b#c", "PUT", "x", "include", true, "1"];
  assert.deepEqual(told, [expected, expected, expected]);
});

test("a Request can be used for two calls, and is read by neither", async () => {
  const request = new Request(API, { method: "PUT", body: "twice", referrerPolicy: "no-referrer", headers: { "x-mine": "1" } });
  // Bun has none.
  const { referrerPolicy } = request;
  assert.equal(referrerPolicy, "Bun" in globalThis ? "" : "no-referrer");
  for (let call = 0; call < 2; call += 1) {
    const { sent, response } = await made(answering(503), request);
    assert.deepEqual([sent.length, response?.status, request.bodyUsed], [2, 200, false]);
    for (const { input, init } of sent) {
      const sending = new Request(input, init);
      assert.deepEqual([await sending.text(), sending.referrerPolicy, sending.headers.get("x-mine")], ["twice", referrerPolicy, "1"]);
    }
  }
  const { sent } = await made(answering(503), request, { body: "other", method: "PATCH" }, { idempotent: true });
  assert.deepEqual(await Promise.all(sent.map(({ input, init }) => new Request(input, init).text())), ["other", "other"]);
  await request.text();
  const used = await made(answering(), request);
  assert.deepEqual([used.error instanceof TypeError, used.sent.length], [true, 0]);
});

test("a Request is not used up where another that is made of it does so, as in Chromium", async () => {
  const { Request: Platform } = globalThis;
  globalThis.Request = class extends Platform {
    constructor(input: RequestInfo | URL, init?: RequestInit) {
      super(input, init);
      if (input instanceof Platform) {
        input.arrayBuffer().catch(() => {});
      }
    }
  };
  try {
    const request = new Request(API, { method: "PUT", body: "again" });
    for (const init of [{}, { body: "other" }]) {
      const { response, sent } = await made(answering(503), request, init);
      assert.deepEqual([response?.status, sent.length, request.bodyUsed], [200, 2, false]);
    }
  } finally {
    globalThis.Request = Platform;
  }
});

test("a stream that the platform does not take fails at once, and so does a Request that is aborted", async () => {
  const body = () => new ReadableStream({ start: (controller) => controller.close() });
  let refused = 0;
  for (const init of [{}, { duplex: "half", keepalive: true }]) {
    const given = () => ({ method: "PUT", body: body(), ...init }) as RequestInit;
    let taken = 1;
    try {
      new Request(API, given());
    } catch {
      taken = 0;
      refused += 1;
    }
    const { error, sent } = await made(answering(), API, given());
    assert.deepEqual([error instanceof TypeError, sent.length], [taken === 0, taken]);
  }
  assert.equal(refused, "Deno" in globalThis ? 0 : "Bun" in globalThis ? 1 : 2);
  const controller = new AbortController();
  controller.abort("before");
  const { error, sent } = await made(answering(), new Request(API, { signal: controller.signal }));
  assert.deepEqual([error, sent.length], ["before", 0]);
});

test("what a redirect says about another server holds no calls to this one", async () => {
  for (const [url, waits] of [["https://other.example/", false], [`${API}there`, true]] as const) {
    const clock = new VirtualClock();
    const quiet = new QuietPeriods();
    const answer = async () => {
      const response = new Response(null, { status: 429, headers: { "Retry-After": "10" } });
      return Object.defineProperties(response, { redirected: { value: true }, url: { value: url } });
    };
    const options = { policy: POLICY, clock, quiet, fetch: answer };
    assert.equal((await fetchRetry(API, { method: "POST" }, options)).status, 429);
    let open = false;
    const next = fetchRetry(API, { method: "POST" }, { ...options, fetch: async () => ((open = true), new Response()) });
    await settled();
    assert.equal(open, !waits, url);
    await clock.advance(20_000);
    assert.equal((await next).status, 200);
  }
});

test("a reservation that a redirect led to proves nothing, and its token is presented to nobody", async () => {
  const headers = { "stagger-reservation": "5;token=0123456789abcdef0123456789abcdef" };
  for (const [method, tokens] of [["POST", [null]], ["PUT", [null, null, null]]] as const) {
    const redirected = async () => Object.defineProperty(new Response(null, { status: 503, headers }), "redirected", { value: true });
    const { sent } = await made(redirected, API, { method, body: "x" });
    assert.deepEqual(sent.map(({ init }) => (init.headers as Headers).get("stagger-reservation-token")), tokens);
  }
});

test("a Retry-After is followed in all three forms of a date, by the clock of the server", async () => {
  for (const [form, wait] of [
    ["Mon, 23 Nov 2026 12:00:02 GMT", 2_000],
    ["Monday, 23-Nov-26 12:00:03 GMT", 3_000],
    ["Mon Nov 23 12:00:04 2026", 4_000],
    ["5", 5_000],
  ] as const) {
    const server = createServer((_, answer: Answer) => {
      answer.writeHead(503, { Date: "Mon, 23 Nov 2026 12:00:00 GMT", "Retry-After": form });
      answer.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const delays: number[] = [];
    const policy = parsePolicy("constant base=1ms jitter=none max-attempts=3 hint=exact");
    const controller = new AbortController();
    const onRetry = ({ delayMs }: { delayMs: number }) => (delays.push(delayMs), controller.abort("seen"));
    const call = fetchRetry(`http://127.0.0.1:${server.address().port}/`, { signal: controller.signal }, { policy, onRetry });
    await assert.rejects(call, (error) => error === "seen");
    assert.deepEqual(delays, [wait], form);
    server.closeAllConnections();
    server.close();
  }
});

test("with the default policy, a server that asks for 5 s for ever ends a call after four attempts and 15 to 22.5 s", async () => {
  const ends: number[] = [];
  for (let seed = 1n; seed <= 200n; seed += 1n) {
    const send = async () => new Response(null, { status: 503, headers: { "Retry-After": "5" } });
    const stops: RetryStop[] = [];
    const options = { policy: parsePolicy("default"), seed, onStop: (stop: RetryStop) => stops.push(stop) };
    const { response, sent } = await made(send, API, {}, options);
    assert.deepEqual([response?.status, sent.length, stops.map(({ reason }) => reason)], [503, 4, ["attempts"]]);
    ends.push(stops[0]?.elapsedMs ?? 0);
  }
  assert.ok(Math.min(...ends) >= 15_000 && Math.max(...ends) <= 22_500, String(ends));
  assert.ok(Math.min(...ends) < 16_500 && Math.max(...ends) > 21_000, String(ends));
});

test("a listener that throws ends the call and cancels the response", async () => {
  const mistake = new Error("mistake");
  const fail = () => {
    throw mistake;
  };
  for (const [options, status] of [[{ onStop: fail }, 404], [{ onRetry: fail }, 503]] as const) {
    const responses: Response[] = [];
    const send = async () => {
      const response = new Response("body", { status });
      responses.push(response);
      return response;
    };
    const { error } = await made(send, API, {}, options);
    assert.deepEqual([error === mistake as unknown, responses.map(({ bodyUsed }) => bodyUsed)], [true, [true]]);
  }
});

test("an abort at any step of a call leaves no timer, listener, charge, place or response behind", async () => {
  const policy = parsePolicy("constant base=1s jitter=none spread=1s max-attempts=4");
  let [aborted, returned] = [0, 0];
  for (let steps = 0; returned < 10; steps += 1) {
    assert.ok(steps < 1_000);
    const clock = new VirtualClock();
    const [quiet, controller] = [new QuietPeriods(), new AbortController()];
    const responses: Response[] = [];
    let begun = 0;
    const send: Send = async (_, { signal }) => {
      begun += 1;
      await Promise.resolve();
      signal?.throwIfAborted();
      const status = [503, 429, 401, 200][responses.length] ?? 200;
      const response = new Response("body", { status, headers: status === 429 ? { "Retry-After": "2" } : {} });
      responses.push(response);
      return response;
    };
    let charges = 0;
    const options: FetchRetryOptions = {
      policy,
      clock,
      quiet,
      budget: { tryAcquire: () => (charges += 1), record: () => {}, release: () => void (charges -= 1) },
      timeoutMs: 5_000,
      seed: 5n,
      fetch: send,
      refreshCredentials: async () => ({ Authorization: "fresh" }),
    };
    let end: unknown;
    fetchRetry(API, { signal: controller.signal }, options).then((value) => (end = value), (error) => (end = error));
    for (let step = 0; step < steps; step += 1) {
      await Promise.resolve();
      // The next timer fires now and then, between two steps of what waits.
      const due = [...clock.timers].sort(([, a], [, b]) => a.at - b.at)[0];
      if (step % 40 === 39 && due) {
        clock.timers.delete(due[0]);
        clock.freeze(due[1].at - clock.now());
        due[1].callback();
      }
    }
    const before = end;
    controller.abort("enough");
    await settled();
    await settled();
    assert.deepEqual([clock.timers.size, getEventListeners(controller.signal, "abort").length], [0, 0], `step ${steps}`);
    assert.ok(before !== undefined ? end === before : end === "enough" || end instanceof Response, `step ${steps}: ${String(end)}`);
    assert.ok(responses.every((response) => response === end || response.bodyUsed), `step ${steps}`);
    // The retries after 503 and 429 stay charged if they have begun. The repeat after 401 has the charge of its attempt.
    const returnedCharges = begun === 3 && responses.length === 3 && charges === 1 ? 1 : 0;
    assert.equal(charges + returnedCharges, Math.min(Math.max(begun - 1, 0), 2), `step ${steps}`);
    // Nobody waits for a probe that is gone: the next call is answered within its pause.
    const next = fetchRetry(API, {}, { ...options, fetch: async () => new Response() });
    await clock.advance(5_000);
    assert.equal((await next).status, 200);
    [aborted, returned] = end === "enough" ? [aborted + 1, returned] : [aborted, returned + 1];
  }
  assert.ok(aborted > 100, `${aborted} steps`);
});
