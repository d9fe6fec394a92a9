import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { delays, firstSpread, timerMs } from "../src/delays.js";
import { parsePolicy } from "../src/policy.js";
import { retry, RetryError, type RetryOptions } from "../src/retry.js";
import { SuccessRateBudget, TokenBudget } from "../src/retry-budget.js";
import { settled, VirtualClock } from "./virtual.js";

/** A call in virtual time: when its attempts began, and what has become of it. */
class Call {
  readonly clock = new VirtualClock();
  readonly begun: number[] = [];
  readonly start = this.clock.now();
  ended: { value: unknown } | { error: unknown } | undefined;

  constructor(policy: string, fn: (attempt: { number: number; signal: AbortSignal; previousError: unknown }) => unknown, options: RetryOptions = {}) {
    const made = retry(
      (attempt) => {
        this.begun.push(this.clock.now() - this.start);
        return fn(attempt);
      },
      parsePolicy(policy),
      { seed: 7n, clock: this.clock, ...options },
    );
    made.then((value) => (this.ended = { value }), (error) => (this.ended = { error }));
  }

  /** Returns the error of the call, after as much time. */
  async error(ms: number): Promise<RetryError> {
    await this.clock.advance(ms);
    assert.ok(this.ended && "error" in this.ended, "the call has not failed");
    return this.ended.error as RetryError;
  }
}

const fail = (error: unknown) => (): never => {
  throw error;
};

test("attempts are made at the delays of the seed, rounded up to milliseconds", async () => {
  const policy = parsePolicy("exponential base=100ms cap=10s spread=2s max-attempts=5");
  const call = new Call(policy.toString(), fail("no"));
  await call.clock.advance(60_000);
  let at = timerMs(firstSpread(policy, 7n));
  const expected = [at];
  for (const delay of delays(policy, 7n)) {
    expected.push((at += timerMs(delay)));
  }
  assert.deepEqual(call.begun, expected);
  assert.ok((expected[0] ?? 0) > 0);
});

test("a success is returned, and the attempts know their number and the error before", async () => {
  const seen: unknown[] = [];
  const call = new Call("exponential base=1s", ({ number, previousError }) => {
    seen.push([number, previousError]);
    return number === 3 ? Promise.resolve("done") : Promise.reject(`failure ${number}`);
  });
  await call.clock.advance(20_000);
  assert.deepEqual(call.ended, { value: "done" });
  assert.deepEqual(seen, [[1, undefined], [2, "failure 1"], [3, "failure 2"]]);
});

test("a call that needs no retry uses no timer", async () => {
  const call = new Call("default", () => 5);
  await settled();
  assert.deepEqual([call.ended, call.clock.mostTimers], [{ value: 5 }, 0]);
});

test("every error survives as the cause, whatever its type, and synchronous throws count", async () => {
  const hostile = { toString: () => fail("again")() };
  for (const thrown of [undefined, null, 0, "text", Symbol("s"), hostile, new TypeError("x".repeat(10_000))]) {
    for (const fn of [fail(thrown), () => Promise.reject(thrown)]) {
      const error = await new Call("constant base=1s jitter=none max-attempts=3", fn).error(2_000);
      assert.ok(error instanceof RetryError);
      assert.ok(Object.hasOwn(error, "cause"));
      assert.deepEqual([error.cause === thrown, error.attempts, error.reason, error.elapsedMs], [true, 3, "attempts", 2_000]);
      assert.ok(error.message.length < 400);
    }
  }
});

test("the error says why the call has ended", async () => {
  const budget = new TokenBudget({ capacity: 5 });
  budget.tryAcquire("transient", 0n);
  const cases: [string, RetryOptions, string, number][] = [
    ["constant base=1s jitter=none max-attempts=inf max-elapsed=2500ms", {}, "elapsed", 3],
    ["constant base=1s jitter=none max-attempts=inf", { deadlineMs: 2_000 }, "deadline", 2],
    ["constant base=1s jitter=none", { when: () => false }, "permanent", 1],
    ["constant base=1s jitter=none", { when: (_, attempt) => attempt < 2 }, "permanent", 2],
    ["constant base=1s jitter=none", { when: () => ({ retryAfterMs: 300_001 }) }, "hint", 1],
    ["constant base=1s jitter=none", { when: () => ({ retryAfterMs: Infinity }) }, "hint", 1],
    ["constant base=1s jitter=none", { budget }, "budget", 1],
    ["stop", {}, "exhausted", 1],
    ["constant base=1s jitter=none", { nested: true }, "nested", 1],
    ["constant base=1s jitter=none max-attempts=1", { nested: true }, "attempts", 1],
    ["constant base=1s jitter=none", { nested: true, when: () => ({ retryAfterMs: Infinity }) }, "nested", 1],
  ];
  for (const [policy, options, reason, attempts] of cases) {
    const call = new Call(policy, fail("no"), options);
    const error = await call.error(10_000);
    assert.deepEqual([error.reason, error.attempts, error.cause], [reason, attempts, "no"], policy);
    assert.equal(call.clock.timers.size, 0);
  }
});

test("a hint is a minimum, and a hint that is no length of time is ignored", async () => {
  for (const retryAfterMs of [5_000, 0.5, -1, NaN]) {
    const call = new Call("constant base=1s jitter=none max-attempts=2", fail("no"), { when: () => ({ retryAfterMs }) });
    await call.clock.advance(10_000);
    const apart = (call.begun[1] ?? NaN) - (call.begun[0] ?? NaN);
    const [least, most] = retryAfterMs >= 0 ? [retryAfterMs, retryAfterMs + Math.max(1_000, retryAfterMs / 2) + 1] : [1_000, 1_000];
    assert.ok(apart >= least && apart <= most, `${retryAfterMs}: ${apart}`);
  }
});


test("the kind of a failure selects the base", async () => {
  const policy = "exponential base=1s cap=30s jitter=none max-attempts=2 throttled-base=7s local-base=3s";
  for (const [kind, ms] of [["transient", 1_000], ["throttled", 7_000], ["local", 3_000]] as const) {
    const call = new Call(policy, fail("no"), { when: () => ({ kind }) });
    await call.clock.advance(10_000);
    assert.deepEqual(call.begun, [0, ms]);
  }
});

test("an error that is an abort of its own is not retried by default", async () => {
  const error = await new Call("default", fail(new DOMException("stopped", "AbortError"))).error(0);
  assert.deepEqual([error.reason, error.attempts], ["permanent", 1]);
});

test("an aborted wait ends at once with the reason, returns its charge, and leaves nothing behind", async () => {
  const [controller, budget] = [new AbortController(), new TokenBudget()];
  const call = new Call("constant base=10s jitter=none", fail("no"), { signal: controller.signal, budget });
  await call.clock.advance(5_000);
  assert.equal(budget.tokens, 495);
  controller.abort("enough");
  await settled();
  assert.deepEqual([call.ended, budget.tokens, call.clock.timers.size, call.begun.length], [{ error: "enough" }, 500, 0, 1]);
  assert.equal(getEventListeners(controller.signal, "abort").length, 0);
});

test("an aborted attempt ends at once, also if it ignores its signal, and stays charged", async () => {
  const [controller, budget] = [new AbortController(), new TokenBudget()];
  const signals: AbortSignal[] = [];
  const call = new Call(
    "constant base=1s jitter=none",
    ({ number, signal }) => {
      signals.push(signal);
      return number === 1 ? Promise.reject("no") : new Promise(() => {});
    },
    { signal: controller.signal, budget, timeoutMs: 60_000 },
  );
  await call.clock.advance(5_000);
  controller.abort("enough");
  await settled();
  assert.deepEqual([call.ended, budget.tokens, call.clock.timers.size], [{ error: "enough" }, 495, 0]);
  assert.equal(signals[1]?.reason, "enough");
  assert.equal(getEventListeners(controller.signal, "abort").length, 0);
});

test("a signal that is aborted already stops the call before its first attempt", async () => {
  const controller = new AbortController();
  controller.abort("before");
  const call = new Call("default", () => 1, { signal: controller.signal });
  await settled();
  assert.deepEqual([call.ended, call.begun], [{ error: "before" }, []]);
});

test("an attempt ends after its timeout, and what it returns later is dropped", async () => {
  const late: (() => void)[] = [];
  const signals: AbortSignal[] = [];
  const call = new Call(
    "constant base=1s jitter=none max-attempts=3",
    ({ number, signal }) => {
      signals.push(signal);
      return new Promise((resolve, reject) => late.push(number === 1 ? () => resolve("late") : () => reject("late")));
    },
    { timeoutMs: 2_000 },
  );
  await call.clock.advance(8_000);
  // A rejection that nobody handles would end the process.
  late.forEach((end) => end());
  const error = await call.error(10_000);
  assert.deepEqual(call.begun, [0, 3_000, 6_000]);
  assert.deepEqual([error.reason, (error.cause as Error).name], ["attempts", "TimeoutError"]);
  assert.deepEqual(signals.map((signal) => (signal.reason as Error).name), ["TimeoutError", "TimeoutError", "TimeoutError"]);
});

test("an attempt does not outlast the deadline of the call", async () => {
  const call = new Call("constant base=1s jitter=none", () => new Promise(() => {}), { deadlineMs: 1_500, timeoutMs: 60_000 });
  const error = await call.error(1_500);
  assert.deepEqual([error.reason, error.elapsedMs], ["deadline", 1_500]);
});

test("a call that has ended has no listener at the signal", async () => {
  const { signal } = new AbortController();
  const call = new Call("constant base=1s jitter=none", ({ number }) => (number < 3 ? Promise.reject("no") : "ok"), { signal, timeoutMs: 500 });
  await call.clock.advance(5_000);
  assert.deepEqual([call.ended, getEventListeners(signal, "abort").length], [{ value: "ok" }, 0]);
});

test("what a function of the application throws ends the call, and returns the charge", async () => {
  for (const name of ["when", "onRetry"] as const) {
    const budget = new TokenBudget();
    const call = new Call("constant base=1s", fail("no"), { budget, [name]: fail("mistake") });
    await call.clock.advance(10_000);
    assert.deepEqual([call.ended, budget.tokens, call.begun.length], [{ error: "mistake" }, 500, 1]);
  }
  const call = new Call("stop", fail("no"), { onStop: fail("mistake") });
  await settled();
  assert.deepEqual(call.ended, { error: "mistake" });
});

test("onRetry is told each wait, and onStop the end", async () => {
  const seen: unknown[] = [];
  const onRetry: RetryOptions["onRetry"] = ({ attempt, error, delayMs, source, elapsedMs }) =>
    seen.push([attempt, error, delayMs, source, elapsedMs]);
  const onStop: RetryOptions["onStop"] = ({ reason, attempts, elapsedMs }) => seen.push([reason, attempts, elapsedMs]);
  await new Call("constant base=1s jitter=none max-attempts=3", fail("no"), { onRetry, onStop }).error(5_000);
  assert.deepEqual(seen, [[1, "no", 1_000, "schedule", 0], [2, "no", 1_000, "schedule", 1_000], ["attempts", 3, 2_000]]);
});

test("calls that share a budget make as many retries together as it allows", async () => {
  const budget = new TokenBudget({ capacity: 20, cost: 5, reward: 0.5 });
  const calls = Array.from({ length: 10 }, () => new Call("constant base=1s jitter=none max-attempts=inf", fail("no"), { budget }));
  for (const call of calls) {
    await call.clock.advance(60_000);
  }
  const attempts = calls.map((call) => call.begun.length);
  assert.equal(attempts.reduce((sum, made) => sum + made, 0), 10 + 4);
  for (let success = 0; success < 10; success += 1) {
    await new Call("default", () => "ok", { budget }).clock.advance(0);
  }
  // Ten successes allow one retry.
  const after = new Call("constant base=1s jitter=none max-attempts=inf", fail("no"), { budget });
  const error = await after.error(60_000);
  assert.deepEqual([error.reason, error.attempts], ["budget", 2]);
});

test("budgets name every problem of their settings", () => {
  const message = (make: () => unknown) => {
    try {
      make();
    } catch (error) {
      return error instanceof RangeError ? error.message : String(error);
    }
    return "no error";
  };
  assert.equal(
    message(() => new TokenBudget({ capacity: 3, initial: 4, cost: 5 })),
    "initial 4 is above capacity 3: lower initial or raise capacity; cost 5 is above capacity 3, so that retry would " +
      "always be rejected: lower the cost or raise capacity",
  );
  assert.match(message(() => new TokenBudget({ capacity: 0 })), /^capacity is 0/);
  assert.match(message(() => new TokenBudget({ cost: 0 })), /^every cost is 0/);
  assert.match(message(() => new TokenBudget({ refill: { tokens: 1, perMs: 0 } })), /^the refill period is 0s/);
  assert.match(message(() => new TokenBudget({ capacity: NaN, reward: -1 })), /^capacity is NaN: .*; reward is -1: /);
  assert.match(message(() => new SuccessRateBudget({ share: 1.5, last: 65 })), /^share 150% is above 100%.*; 65 recent/);
  assert.match(message(() => new SuccessRateBudget({ share: 0 })), /^share 0% is always reached/);
  assert.equal(message(() => new TokenBudget()), "no error");
});

test("limits that are no lengths of time are rejected", async () => {
  for (const options of [{ timeoutMs: 0 }, { timeoutMs: NaN }, { deadlineMs: -1 }]) {
    const call = new Call("default", () => 1, options);
    await settled();
    assert.ok(call.ended && "error" in call.ended && call.ended.error instanceof RangeError);
    assert.equal(call.begun.length, 0);
  }
});

test("a wait of months is waited to its end", async () => {
  const call = new Call("constant base=90d jitter=none max-attempts=2", fail("no"));
  await call.clock.advance(90 * 86_400_000 - 1);
  assert.equal(call.begun.length, 1);
  await call.clock.advance(1);
  assert.equal(call.begun.length, 2);
});

test("a wait that was overslept is spread again once, over no more than its longest delay", async () => {
  const starts = new Set<number>();
  for (let seed = 0n; seed < 20n; seed += 1n) {
    const call = new Call("constant base=10s jitter=none max-attempts=2", fail("no"), { seed });
    await call.clock.advance(1_000);
    call.clock.sleep(3_600_000);
    await call.clock.advance(9_000);
    assert.equal(call.begun.length, 1);
    call.clock.sleep(3_600_000);
    await call.clock.advance(10_000);
    assert.equal(call.begun.length, 2);
    const at = call.begun[1] ?? NaN;
    assert.ok(at >= 10_000 && at <= 20_000, `${at}`);
    starts.add(at);
  }
  assert.ok(starts.size > 15, `${starts.size} different times`);
});

test("an overslept wait of less than 100 ms is not spread again", async () => {
  const second = async (ms: number) => {
    const call = new Call(`constant base=${ms}ms jitter=none max-attempts=2`, fail("no"));
    await call.clock.advance(0);
    call.clock.sleep(3_600_000);
    await call.clock.advance(1_000);
    return call.begun[1] ?? NaN;
  };
  assert.equal(await second(99), 99);
  const again = await second(100);
  assert.ok(again > 100 && again <= 200, String(again));
});
