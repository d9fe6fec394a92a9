import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { ownDraw, seedForCall, SECOND } from "../src/numbers.js";
import { type QuietPermit, QuietPeriod } from "../src/quiet-period.js";
import type { AttemptOutcome } from "../src/retry-machine.js";
import { vectors } from "./vectors.js";

interface Row {
  readonly gap: number;
  readonly seeds: number;
  readonly events: number;
  readonly listed: readonly string[];
  readonly sha256: string;
}
const { courses } = vectors<{ courses: Row[] }>("quiet.json");
const MAX = 60n * SECOND;

/** Returns a line for each event of one course, which the draws of the seed decide: as xtask does with the core's. */
function course(gap: bigint, seed: bigint, events: number): string[] {
  const quiet = new QuietPeriod(MAX);
  const [waiting, running]: [QuietPermit[], QuietPermit[]] = [[], []];
  const taken = (permits: QuietPermit[], pick: number) => permits.splice(pick % permits.length, 1)[0] as QuietPermit;
  let now = SECOND;
  return Array.from({ length: events }, (_, n) => {
    const random = ownDraw(seed, BigInt(n));
    now += (random >> 20n) % gap;
    const latest = (random >> 16n) % 4n === 0n ? now + ((random >> 30n) % MAX) : undefined;
    const pick = Number((random >> 8n) & 0xffn);
    const event = Number(random % 8n);
    const turn = (permit: QuietPermit | undefined) => {
      const turn = quiet.admit(permit, latest, now);
      if (turn.kind === "rejected") {
        return `rejected ${turn.retryIn}`;
      }
      (turn.kind === "now" ? running : waiting).push(turn.permit);
      return turn.kind === "now" ? "now" : `wait ${turn.after}`;
    };
    let line = "nothing";
    if (event <= 2) {
      line = turn(undefined);
    } else if (event <= 4 && waiting.length > 0) {
      line = turn(taken(waiting, pick));
    } else if (event === 5 && waiting.length > 0 && pick < 40) {
      quiet.release(taken(waiting, pick));
      line = "left";
    } else if (running.length > 0) {
      const permit = taken(running, pick);
      line = pick >= 250 ? "released" : "recorded";
      if (pick >= 250) {
        quiet.release(permit);
      } else {
        quiet.record(permit, outcome(random >> 40n), now);
      }
    }
    return `${line} ${quiet.state} ${quiet.waiting} ${quiet.wouldReject(gap, latest, now)}`;
  });
}

function outcome(random: bigint): AttemptOutcome {
  const wait = ((random >> 8n) % 90_000n) * 1_000_000n;
  switch (Number(random % 32n)) {
    case 0:
      return { kind: "failed", failure: "throttled", hint: { kind: "at-least", wait } };
    case 1:
      return { kind: "failed", failure: "throttled", hint: { kind: "reserved", wait } };
    case 2:
      return { kind: "failed", failure: "throttled", hint: { kind: "at-least", wait: 0n } };
    case 3:
    case 4:
      return { kind: "failed", failure: "throttled" };
    case 5:
      return { kind: "failed", failure: "transient", hint: { kind: "at-least", wait } };
    case 6:
      return { kind: "failed", failure: "local" };
    case 7:
      return { kind: "unsafe", failure: "throttled" };
    case 8:
      return { kind: "permanent" };
    case 9:
      return { kind: "not-processed" };
    default:
      return { kind: "success" };
  }
}

for (const { gap, seeds, events, listed, sha256 } of courses) {
  test(`a quiet period with events up to ${gap} ns apart does what that of stagger-core does`, () => {
    const run = (id: number) => course(BigInt(gap), seedForCall(BigInt(seeds), BigInt(id)), events);
    assert.deepEqual(run(0).slice(0, listed.length), listed);
    const hash = createHash("sha256");
    for (let id = 0; id < seeds; id += 1) {
      hash.update(new TextEncoder().encode(run(id).join("\n")));
    }
    assert.equal(hash.digest("hex"), sha256);
  });
}

test("at most 1,024 calls wait", () => {
  const quiet = new QuietPeriod(MAX);
  quiet.pause(SECOND, 0n);
  const turns = Array.from({ length: 1_030 }, () => quiet.admit(undefined, undefined, 0n).kind);
  assert.deepEqual([turns.filter((kind) => kind === "wait").length, turns.slice(1_024)], [1_024, Array(6).fill("rejected")]);
});

test("an attempt that the server has not processed says nothing about it: the next call is the probe in its place", () => {
  const period = new QuietPeriod(60n * SECOND);
  period.pause(SECOND, 0n);
  const probe = period.admit(undefined, undefined, 2n * SECOND);
  assert.ok(probe.kind === "now" && probe.permit.kind === "probe");
  period.record(probe.permit, { kind: "not-processed" }, 3n * SECOND);
  assert.equal(period.state, "quiet");
  const next = period.admit(undefined, undefined, 3n * SECOND);
  assert.ok(next.kind === "now" && next.permit.kind === "probe");
});

test("a hint in a return begins another pause only if nothing was answered for a second", () => {
  for (const [after, state] of [[SECOND, "returning"], [SECOND + 1n, "quiet"]] as const) {
    const period = new QuietPeriod(MAX);
    period.pause(SECOND, 0n);
    // The probe, and one that waits, so that the return goes on.
    const [probe] = [period.admit(undefined, undefined, SECOND), period.admit(undefined, undefined, SECOND)];
    assert.ok(probe.kind === "now");
    period.record(probe.permit, { kind: "success" }, 2n * SECOND);
    const hint = { kind: "at-least", wait: SECOND } as const;
    period.record({ kind: "admitted", generation: 0 }, { kind: "failed", failure: "throttled", hint }, 2n * SECOND + after);
    assert.equal(period.state, state);
  }
});
