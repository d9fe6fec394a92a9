import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { greatest, ownDraw, seedForCall, SECOND } from "../src/numbers.js";
import { parsePolicy, type Policy } from "../src/policy.js";
import { ReconnectMachine, spreadAgain, type Step, TRANSIENT } from "../src/reconnect.js";
import { vectors } from "./vectors.js";

interface Row {
  readonly policy: string;
  readonly seeds: number;
  readonly events: number;
  readonly listed: readonly string[];
  readonly sha256: string;
}
const { policies } = vectors<{ policies: Row[] }>("reconnect.json");

/** Returns a line for each event of one course, which the draws of the seed decide: as xtask does with the core's. */
function course(policy: Policy, seed: bigint, events: number): string[] {
  const machine = new ReconnectMachine(policy.settings, seed);
  const lines: string[] = [];
  let now = 0n;
  for (let n = 0; n < events; n += 1) {
    const random = ownDraw(seed, BigInt(n));
    const [event, rare] = [Number(random % 8n), Number((random >> 3n) % 8n)];
    // In the second half, a server closes the connections soon, and asks for the client back at once or soon.
    const isHostile = n >= events / 2;
    const length = ((random >> 8n) % 40_000_000_000n) >> (isHostile ? 6n : 0n);
    now += length;
    const { generation } = machine;
    let step: Step;
    if (event === 0 && (rare < 2 || n === 0)) {
      step = machine.reconnectNow(now);
    } else if (event <= 2) {
      if (machine.phase.kind === "waiting") {
        now = greatest(now, machine.phase.until);
      }
      step = ["idle", "stopped"].includes(machine.phase.kind) ? machine.reconnectNow(now) : machine.due(now);
    } else if (event === 3) {
      step = machine.opened(generation, now);
    } else if (isHostile && rare < 7) {
      const asked = rare < 4 ? 0n : length;
      step = machine.ended(generation, { kind: "failed", failure: "throttled", asked }, now);
    } else if (event <= 5) {
      step = machine.ended(generation, TRANSIENT, now);
    } else if (event === 6) {
      step = machine.ended(generation, { kind: "failed", failure: "throttled", asked: length }, now);
    } else if (rare === 0) {
      step = machine.ended(generation, { kind: "permanent" }, now);
    } else if (rare < 4) {
      machine.distrust(generation);
      step = machine.due(now);
    } else {
      step = machine.ended(generation, { kind: "failed", failure: "local" }, now);
    }
    const unreachable = machine.unreachable?.attempts ?? 0;
    const report = machine.takeUnreachableReport() ? " reported" : "";
    lines.push(`${shown(step)} attempt ${machine.attempt} unreachable ${unreachable}${report}`);
  }
  return lines;
}

function shown(step: Step): string {
  switch (step.kind) {
    case "connect":
      return `connect ${step.generation}`;
    case "wait":
      return `wait ${step.after} until ${step.until} ${step.source}`;
    case "stop":
      return `stop ${step.reason}`;
    default:
      return step.kind;
  }
}

for (const row of policies) {
  test(`reconnects by "${row.policy}" are decided as stagger-core decides them`, () => {
    const policy = parsePolicy(row.policy);
    const seed = (id: number) => seedForCall(BigInt(row.seeds), BigInt(id));
    assert.deepEqual(course(policy, seed(0), row.events), row.listed);
    const hash = createHash("sha256");
    for (let id = 0; id < row.seeds; id += 1) {
      hash.update(new TextEncoder().encode(course(policy, seed(id), row.events).join("\n")));
    }
    assert.equal(hash.digest("hex"), row.sha256);
  });
}

test("an overslept wait is spread over no more than its lateness and its span", () => {
  const highest = 2n ** 64n - 1n;
  assert.equal(spreadAgain(SECOND, 10n * SECOND, highest), 0n);
  assert.equal(spreadAgain(SECOND + 1n, 10n * SECOND, highest), SECOND + 1n);
  assert.equal(spreadAgain(3_600n * SECOND, 10n * SECOND, highest), 10n * SECOND);
  assert.equal(spreadAgain(3_600n * SECOND, 0n, highest), 0n);
});

/** Fails attempts without a wait; returns after how many, and how long after the first, outages were reported. */
function reports(failures: readonly bigint[]): [number, bigint][] {
  const machine = new ReconnectMachine(parsePolicy("zero max-attempts=inf").settings, 1n);
  const reported: [number, bigint][] = [];
  machine.reconnectNow(0n);
  for (const now of failures) {
    machine.ended(machine.generation, TRANSIENT, now);
    const report = machine.takeUnreachableReport();
    if (report) {
      reported.push([report.attempts, report.lasted]);
    }
    assert.equal(machine.takeUnreachableReport(), undefined);
    machine.due(now);
  }
  return reported;
}

test("an outage is reported after ten attempts, and again exactly when it has lasted twice as long", () => {
  const ten = Array.from({ length: 10 }, (_, n) => BigInt(n + 1) * SECOND);
  const twice = 20n * SECOND;
  assert.deepEqual(reports(ten.slice(0, 9)), []);
  assert.deepEqual(reports([...ten, twice - 1n]), [[10, 10n * SECOND]]);
  assert.deepEqual(reports([...ten, twice - 1n, twice, twice + 1n, 2n * twice - 1n, 2n * twice]), [
    [10, 10n * SECOND],
    [12, twice],
    [15, 2n * twice],
  ]);
});

test("reports of an outage that has just begun are at least a second apart", () => {
  const ten = Array.from({ length: 10 }, () => 1n);
  assert.deepEqual(reports([...ten, 2n, SECOND, SECOND + 1n, 2n * SECOND + 1n, 2n * SECOND + 2n]), [
    [10, 1n],
    [13, SECOND + 1n],
    [15, 2n * SECOND + 2n],
  ]);
});
