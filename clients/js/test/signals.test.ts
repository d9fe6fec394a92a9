import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { fetchRetry } from "../src/fetch-retry.js";
import { parsePolicy } from "../src/policy.js";
import { retry, type RetryOptions } from "../src/retry.js";
import type { RetryAttempt } from "../src/retry-call.js";
import { settled, VirtualClock } from "./virtual.js";

const POLICY = parsePolicy("constant base=10s jitter=none max-attempts=2");

const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

const warnings: Error[] = [];
process.on("warning", (warning) => warnings.push(warning));

/** Runs a test with `AbortSignal.any` and without. */
async function everywhere(body: () => Promise<void>): Promise<void> {
  const abortSignal = AbortSignal as { any?: unknown };
  const { any } = abortSignal;
  assert.ok(any, "this platform has AbortSignal.any");
  await body();
  try {
    delete abortSignal.any;
    await body();
  } finally {
    abortSignal.any = any;
  }
}

/** Makes a call, and returns what has become of it: its value, its error, or nothing yet. */
function call(fn: (attempt: RetryAttempt) => unknown, options: RetryOptions): { end?: unknown } {
  const made: { end?: unknown } = {};
  retry(fn, POLICY, options).then((value) => (made.end = value), (error) => (made.end = error));
  return made;
}

const never = () => new Promise(() => {});
const failing = () => Promise.reject("no");

test("a thousand calls wait on one signal with one listener, all end with it, and nothing warns", () =>
  everywhere(async () => {
    const clock = new VirtualClock();
    const controller = new AbortController();
    const { signal } = controller;
    const options = { signal, clock, timeoutMs: 60_000 };
    const calls = Array.from({ length: 1_000 }, (_, n) => call(n % 2 === 0 ? never : failing, options));
    await settled();
    assert.deepEqual([clock.timers.size, listeners(signal)], [1_000, 1]);
    controller.abort("enough");
    await settled();
    assert.deepEqual([clock.timers.size, listeners(signal)], [0, 0]);
    assert.ok(calls.every(({ end }) => end === "enough"));
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(warnings, []);
  }));

test("a call that ends leaves the others their abort, and the last one no listener", () =>
  everywhere(async () => {
    const clock = new VirtualClock();
    const { signal } = new AbortController();
    const controller = new AbortController();
    const inFlight: AbortSignal[] = [];
    const made = Array.from({ length: 20 }, (_, n) =>
      call(({ signal }) => (n < 10 ? failing() : (inFlight.push(signal), never())), { signal: controller.signal, clock, timeoutMs: 30_000 }),
    );
    await clock.advance(15_000);
    assert.ok(made.every(({ end }, n) => (n < 10) === (end !== undefined)));
    assert.equal(listeners(controller.signal), 1);
    controller.abort("enough");
    await settled();
    assert.ok(made.slice(10).every(({ end }) => end === "enough"));
    assert.ok(inFlight.length === 10 && inFlight.every(({ reason }) => reason === "enough"));
    // Used up, or by a timeout: no call is left.
    const ended = [call(failing, { signal, clock }), call(never, { signal, clock, timeoutMs: 1 }), call(() => 5, { signal, clock, timeoutMs: 1 })];
    await clock.advance(60_000);
    assert.ok(ended.every(({ end }) => end !== undefined));
    assert.equal(listeners(signal), 0);
  }));

test("the signal of a Request that others use ends the call as well", async () => {
  const controller = new AbortController();
  const request = new Request("https://api.example/", { signal: controller.signal });
  const ended = fetchRetry(request, {}, { policy: POLICY, fetch: async () => new Response(null, { status: 503 }) }).then(() => "no error", (error) => error);
  const other = new Request(request);
  await new Promise((resolve) => setImmediate(resolve));
  controller.abort("enough");
  assert.deepEqual([await ended, other.signal.aborted], ["enough", true]);
});

test("the signal of an attempt that has succeeded is still aborted with the caller's", () =>
  everywhere(async () => {
    const controller = new AbortController();
    const attempts: RetryAttempt[] = [];
    const clock = new VirtualClock();
    const made = call((attempt) => (attempts.push(attempt), attempt.number === 1 ? failing() : { the: "value" }), { signal: controller.signal, clock });
    await clock.advance(10_000);
    assert.deepEqual(made.end, { the: "value" });
    controller.abort("enough");
    assert.deepEqual([attempts[1]?.signal.reason, listeners(controller.signal)], ["enough", 0]);
  }));

test("without AbortSignal.any a listener stays as long as the value, or the body of a response, is in use", () =>
  everywhere(async () => {
    // What Bun collects cannot be foreseen, and it has AbortSignal.any.
    if ("any" in AbortSignal || "Bun" in globalThis) {
      return;
    }
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    /** Collects what is not in use, and returns how many listeners are left. */
    const left = async (signal: AbortSignal, expected: number) => {
      for (let turn = 0; turn < 50; turn += 1) {
        collect();
        await new Promise((resolve) => setImmediate(resolve));
        if (expected === 0 && listeners(signal) === 0) {
          break;
        }
      }
      return listeners(signal);
    };
    const controller = new AbortController();
    const { signal } = controller;
    // What a function has awaited, it may hold until it ends.
    const held: { it: unknown } = { it: undefined };
    const hold = async (made: () => Promise<unknown>) => {
      held.it = await made();
    };
    await hold(() => retry(() => ({ the: "value" }), POLICY, { signal }));
    assert.equal(await left(signal, 1), 1);
    held.it = undefined;
    assert.equal(await left(signal, 0), 0);
    const send = async () => new Response(new ReadableStream({ pull: () => never() as Promise<void> }));
    await hold(async () => (await fetchRetry("https://api.example/", { signal }, { fetch: send })).body);
    assert.equal(await left(signal, 1), 1);
    held.it = undefined;
    assert.equal(await left(signal, 0), 0);
  }));
