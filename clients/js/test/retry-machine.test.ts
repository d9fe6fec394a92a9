import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { ownDraw, seedForCall, SECOND } from "../src/numbers.js";
import { parsePolicy, type Policy } from "../src/policy.js";
import { type RetryBudget, SuccessRateBudget, TokenBudget } from "../src/retry-budget.js";
import { type AttemptOutcome, type Decision, defaultSettings, RetryMachine } from "../src/retry-machine.js";
import { WindowBudget } from "../src/window-budget.js";
import { vectors } from "./vectors.js";

interface Row {
  readonly policy: string;
  readonly budget: string;
  readonly seeds: number;
  readonly listed: readonly string[];
  readonly sha256: string;
}
const { policies } = vectors<{ policies: Row[] }>("retry.json");

const LONGEST_ATTEMPT = 3_000_000_000n;
const LONGEST_HINT = 40_000_000_000n;

/** A budget, and how many retries after transient failures it has left. */
interface Counted {
  readonly budget: RetryBudget | undefined;
  left(): string;
}

function budgetNamed(name: string): Counted {
  const tokens = { capacity: 20, initial: 15, cost: { transient: 3, throttled: 5, local: 0 } };
  if (name === "success-rate") {
    const budget = new SuccessRateBudget({ share: 0.55, last: 7 });
    return { budget, left: () => String(budget.available) };
  }
  if (name === "window") {
    const budget = new WindowBudget({ ttlMs: 33_000, ratio: 0.45, minPerSecond: 0 });
    return { budget, left: () => String(budget.available) };
  }
  if (name === "none") {
    return { budget: undefined, left: () => "-" };
  }
  const isRefilled = name === "tokens-refill";
  const refill = { tokens: 7, perMs: 60_000 };
  const budget = new TokenBudget(
    isRefilled ? { ...tokens, refund: "last-cost", refill, reward: 1 } : { ...tokens, reward: 1.3 },
  );
  return { budget, left: () => String(Math.floor(budget.tokens / 3)) };
}

/** Returns a line for each decision of one course, which the draws of the seed decide: as xtask does with the core's. */
function course(policy: Policy, { budget, left }: Counted, seed: bigint): string[] {
  const lines: string[] = [];
  let now = SECOND;
  for (let call = 0n; call < 12n; call += 1n) {
    const random = ownDraw(seed, call << 8n);
    now += random % LONGEST_ATTEMPT;
    const deadline = random % 3n === 0n ? now + ((random >> 8n) % LONGEST_HINT) : undefined;
    const machine = new RetryMachine(policy.settings, seedForCall(seed, call), now, deadline);
    const spread = machine.spread(now);
    now += spread;
    lines.push(`call ${call} spread ${spread}`);
    let permit: number | undefined;
    for (let attempt = 1n; attempt <= 12n; attempt += 1n) {
      if (!machine.begin(now, budget)) {
        if (permit !== undefined) {
          budget?.release(permit);
        }
        lines.push("not begun deadline");
        break;
      }
      const random = ownDraw(seed, (call << 8n) | attempt);
      now += (random >> 16n) % LONGEST_ATTEMPT;
      const answer = call % 4n === 3n ? hostileOutcome(random) : outcome(random);
      const decision = machine.decide(answer, permit, now, budget);
      lines.push(`${shown(decision)} attempt ${machine.attempt} budget ${left()}`);
      if (decision.kind !== "retry") {
        break;
      }
      permit = decision.permit;
      now += decision.after;
      if (random >> 61n === 0n) {
        if (permit !== undefined) {
          budget?.release(permit);
        }
        break;
      }
    }
  }
  return lines;
}

function outcome(random: bigint): AttemptOutcome {
  const wait = (random >> 24n) % LONGEST_HINT;
  switch (Number(random % 16n)) {
    case 0:
    case 1:
      return { kind: "success" };
    case 2:
      return { kind: "permanent" };
    case 3:
      return { kind: "unsafe", failure: "transient" };
    case 4:
      return { kind: "failed", failure: "throttled", hint: { kind: "at-least", wait } };
    case 5:
      return { kind: "failed", failure: "transient", hint: { kind: "at-least", wait } };
    case 6:
      return { kind: "failed", failure: "throttled", hint: { kind: "reserved", wait } };
    case 7:
      return { kind: "failed", failure: "throttled" };
    case 8:
      return (random & 64n) === 0n
        ? { kind: "failed", failure: "transient", hint: { kind: "do-not-retry" } }
        : { kind: "failed", failure: "local" };
    case 9:
      return { kind: "failed", failure: "local" };
    case 10:
      return { kind: "not-processed" };
    default:
      return { kind: "failed", failure: "transient" };
  }
}

/** Returns what a server answers that asks for nearly every retry at once or soon. */
function hostileOutcome(random: bigint): AttemptOutcome {
  const wait = (random & 16n) === 0n ? 0n : (random >> 24n) % LONGEST_HINT >> 8n;
  switch (Number(random % 16n)) {
    case 0:
      return { kind: "failed", failure: "transient" };
    case 1:
      return { kind: "failed", failure: "throttled", hint: { kind: "at-least", wait } };
    default:
      return { kind: "failed", failure: "throttled", hint: { kind: "reserved", wait } };
  }
}

function shown(decision: Decision): string {
  switch (decision.kind) {
    case "retry":
      return `retry ${decision.after} ${decision.source}`;
    case "stop":
      return `stop ${decision.reason}`;
    default:
      return "done";
  }
}

for (const row of policies) {
  test(`retries by "${row.policy}" with budget ${row.budget} are decided as stagger-core decides them`, () => {
    const policy = parsePolicy(row.policy);
    const run = (id: number) => course(policy, budgetNamed(row.budget), seedForCall(BigInt(row.seeds), BigInt(id)));
    assert.deepEqual(run(0).slice(0, row.listed.length), row.listed);
    const hash = createHash("sha256");
    for (let id = 0; id < row.seeds; id += 1) {
      hash.update(new TextEncoder().encode(run(id).join("\n")));
    }
    assert.equal(hash.digest("hex"), row.sha256);
  });
}

test("the default policy is that of the profile default", () => {
  assert.deepEqual(defaultSettings(), parsePolicy("default").settings);
});

test("a retry at max-elapsed or at max-hint is made, and one at the deadline is not", () => {
  const { settings } = parsePolicy("constant base=2s jitter=none hint=exact max-hint=3s max-elapsed=2s");
  const decide = (deadline: bigint | undefined, wait?: bigint) => {
    const machine = new RetryMachine(settings, 1n, SECOND, deadline);
    assert.ok(machine.begin(SECOND));
    const hint = wait === undefined ? undefined : ({ kind: "at-least", wait } as const);
    return shown(machine.decide({ kind: "failed", failure: "transient", hint }, undefined, SECOND));
  };
  assert.equal(decide(undefined), "retry 2000000000 schedule");
  assert.equal(decide(3n * SECOND + 1n), "retry 2000000000 schedule");
  assert.equal(decide(3n * SECOND), "stop deadline");
  assert.equal(decide(undefined, 2n * SECOND + 1n), "stop elapsed");
  assert.equal(decide(undefined, 3n * SECOND), "stop elapsed");
  assert.equal(decide(undefined, 3n * SECOND + 1n), "stop hint");
  assert.ok(!new RetryMachine(settings, 1n, 0n, SECOND).begin(SECOND));
});

test("a refill invents nothing, and loses at most a nanosecond for each requested retry", () => {
  const [often, once] = [1, 2].map(() => new TokenBudget({ capacity: 10, initial: 0, cost: 10, refill: { tokens: 7, perMs: 3 } }));
  [often, once].forEach((budget) => budget?.tryAcquire("transient", 0n));
  for (let now = 0n; now <= 2_000_000n; now += 776n) {
    often?.tryAcquire("transient", now);
  }
  [often, once].forEach((budget) => budget?.tryAcquire("transient", 2_000_000n));
  assert.equal(once?.tokens, 4.666666);
  const lost = (once?.tokens ?? NaN) - (often?.tokens ?? NaN);
  assert.ok(lost >= 0 && lost <= (2_000_000 / 776) * 3e-6, String(lost));
  // A full bucket does not save time up.
  once?.tryAcquire("transient", 3_600_000_000_000n);
  assert.equal(once?.tokens, 0);
  once?.tryAcquire("transient", 3_600_000_000_000n);
  assert.equal(once?.tokens, 0);
});
