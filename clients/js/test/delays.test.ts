import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { delays, firstSpread, timerMs } from "../src/delays.js";
import { ownDraw, seedForCall } from "../src/numbers.js";
import { parsePolicy, type Policy } from "../src/policy.js";
import { PROFILES } from "../src/profiles.js";
import { vectors } from "./vectors.js";

interface Row {
  readonly policy: string;
  readonly canonical: string;
  readonly seeds: number;
  readonly delays: number;
  readonly listed: readonly (readonly string[])[];
  readonly sha256: string;
}
const { draws, policies } = vectors<{ draws: string[][]; policies: Row[] }>("delays.json");

function* taken(policy: Policy, seed: bigint, count: number): Generator<bigint> {
  yield firstSpread(policy, seed);
  for (const delay of delays(policy, seed)) {
    if (count === 0) {
      return;
    }
    count -= 1;
    yield delay;
  }
}

test("seeds of calls and draws of one's own are those of stagger-core", () => {
  draws.forEach((row, at) => {
    const n = BigInt(at);
    const seed = BigInt(row[0] ?? "");
    const got = [
      seed,
      seedForCall(seed, n),
      seedForCall(seed, 2n ** 64n - 1n - n),
      ownDraw(seed, n),
      ownDraw(seed, 2n ** 61n - 1n - n),
    ];
    assert.deepEqual(got.map(String), row);
  });
});

test("every profile is compared over at least 10,000 seeds", () => {
  const compared = policies.filter((row) => row.seeds >= 10_000).map((row) => row.policy);
  assert.deepEqual(compared.sort(), Object.keys(PROFILES).sort());
});

for (const row of policies) {
  test(`the delays of "${row.policy}" are those of stagger-core to the nanosecond`, () => {
    const policy = parsePolicy(row.policy);
    assert.equal(policy.toString(), row.canonical);
    row.listed.forEach((listed, id) => {
      const seed = seedForCall(BigInt(row.seeds), BigInt(id));
      assert.deepEqual([...taken(policy, seed, row.delays)].map(String), listed);
    });
    const hash = createHash("sha256");
    for (let id = 0; id < row.seeds; id += 1) {
      hash.update(new Uint8Array(BigUint64Array.from([...taken(policy, seedForCall(BigInt(row.seeds), BigInt(id)), row.delays)]).buffer));
    }
    assert.equal(hash.digest("hex"), row.sha256);
  });
}

test("a timer never fires before its delay, and at most a millisecond after it", () => {
  for (const [nanos, ms] of [[0n, 0], [1n, 1], [999_999n, 1], [1_000_000n, 1], [1_000_001n, 2], [30_000_000_000n, 30_000]] as const) {
    assert.equal(timerMs(nanos), ms);
  }
});
