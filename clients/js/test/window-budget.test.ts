import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { ownDraw, seedForCall, SECOND } from "../src/numbers.js";
import { WindowBudget, type WindowBudgetOptions } from "../src/window-budget.js";
import { vectors } from "./vectors.js";

interface Row {
  readonly settings: Required<WindowBudgetOptions>;
  readonly gap: number;
  readonly seeds: number;
  readonly events: number;
  readonly listed: readonly string[];
  readonly sha256: string;
}
const { windows } = vectors<{ windows: readonly Row[] }>("window.json");

/** Returns a line for each event of one course, which the draws of the seed decide: as xtask does with the core's. */
function course({ settings, gap, events }: Row, seed: bigint): string[] {
  const budget = new WindowBudget(settings);
  const permits: number[] = [];
  const lines: string[] = [];
  let now = SECOND;
  for (let n = 0n; n < events; n += 1n) {
    const random = ownDraw(seed, n);
    now += (random >> 20n) % BigInt(gap);
    const back = (random >> 12n) % (BigInt(settings.ttlMs) * 2_000_000n);
    const earlier = now > back ? now - back : 0n;
    const at = (random >> 8n) % 32n === 0n ? earlier : now;
    let line: string;
    if (random % 8n < 3n) {
      budget.onFirstAttempt(at);
      line = "call";
    } else if (random % 8n === 7n && permits.length > 0) {
      budget.release(permits.splice(Number((random >> 40n) % BigInt(permits.length)), 1)[0] as number);
      line = "returned";
    } else {
      const permit = budget.tryAcquire("transient", at);
      line = permit === undefined ? "rejected" : "granted";
      if (permit !== undefined) {
        permits.push(permit);
      }
    }
    lines.push(`${line} left ${budget.available}`);
  }
  return lines;
}

for (const row of windows) {
  test(`a window of ${JSON.stringify(row.settings)} grants what that of stagger-core grants`, () => {
    const run = (id: number) => course(row, seedForCall(BigInt(row.seeds), BigInt(id)));
    assert.deepEqual(run(0).slice(0, row.listed.length), row.listed);
    const hash = createHash("sha256");
    for (let id = 0; id < row.seeds; id += 1) {
      hash.update(new TextEncoder().encode(run(id).join("\n")));
    }
    assert.equal(hash.digest("hex"), row.sha256);
  });
}

test("a call counts for between nine tenths of the ttl and the whole", () => {
  const budget = new WindowBudget({ ttlMs: 10_000, ratio: 1, minPerSecond: 0 });
  budget.onFirstAttempt(SECOND - 1n);
  assert.equal(budget.available, 1);
  const permit = budget.tryAcquire("transient", 10n * SECOND - 1n);
  assert.ok(permit !== undefined);
  budget.release(permit);
  assert.equal(budget.tryAcquire("transient", 10n * SECOND), undefined);
});

test("a window names every problem of its settings", () => {
  for (const [options, message] of [
    [{ ttlMs: 999, ratio: 1.5 }, "window 999ms is outside the range of this budget, 1s to 60s: change it; share 150% is outside 0% to 100%: use at most 1"],
    [{ ttlMs: NaN, minPerSecond: 0.5 }, "window NaN is outside the range of this budget, 1s to 60s: change it; minPerSecond is 0.5: use a whole number from 0"],
    [{ ttlMs: Infinity, ratio: -1 }, "window Infinity is outside the range of this budget, 1s to 60s: change it; share -100% is outside 0% to 100%: use at most 1"],
    [{ minPerSecond: 2 ** 32 }, "minPerSecond is 4294967296: use a whole number from 0"],
  ] as const) {
    assert.throws(() => new WindowBudget(options), (error) => error instanceof RangeError && error.message === message);
  }
  assert.deepEqual(new WindowBudget().available, 100);
});
