import assert from "node:assert/strict";
import { test } from "node:test";
import { fetchRetry } from "../src/fetch-retry.js";
import { ownDraw } from "../src/numbers.js";
import { parsePolicy } from "../src/policy.js";
import { QuietPeriods } from "../src/quiet-periods.js";
import { FakeLocks, VirtualClock } from "./virtual.js";

const policy = parsePolicy("constant base=1s jitter=none hint=exact max-attempts=inf");

/** Returns whole numbers below a bound, which the seed decides. */
function numbers(seed: bigint): (bound: number) => number {
  let drawn = 0n;
  return (bound) => Number((ownDraw(seed, drawn++) * BigInt(bound)) >> 64n);
}

/** Channels whose messages take their time. */
function slowChannels(clock: VirtualClock, below: (bound: number) => number) {
  const all = new Set<Channel>();
  class Channel {
    onmessage: ((event: { data: unknown }) => void) | undefined;
    constructor(readonly name: string) {
      all.add(this);
    }
    postMessage(data: unknown): void {
      for (const other of all) {
        if (other !== this) {
          clock.setTimeout(() => other.onmessage?.({ data }), below(200));
        }
      }
    }
    close(): void {
      all.delete(this);
    }
  }
  return Channel;
}

/** Lets a few tabs call a server that refuses some requests at first, and does not answer others. Returns how many it received. */
async function requests(seed: bigint, locks: FakeLocks): Promise<number> {
  const [clock, below] = [new VirtualClock(), numbers(seed)];
  (globalThis as { BroadcastChannel: unknown }).BroadcastChannel = slowChannels(clock, below);
  locks.reset();
  const lockMs = below(300);
  locks.before = () => new Promise((resolve) => clock.setTimeout(resolve, below(lockMs + 1)));
  const tabs = Array.from({ length: 2 + below(5) }, () => new QuietPeriods({ channel: "tabs", clock }));
  let [received, refusals, isAnswered] = [0, 1 + below(4), false];
  const violations: string[] = [];
  /** When the requests were sent that are not answered. */
  const pending = new Set<{ readonly at: number }>();
  const send = (_: RequestInfo | URL, { signal }: RequestInit) => {
    received += 1;
    const [request, isFirst] = [{ at: clock.now() }, received === 1];
    // A probe may take 30 s. Reading the clock takes time.
    const others = [...pending].filter(({ at }) => request.at - at < 29_900);
    if (!isAnswered && others.length > 0) {
      // An error thrown here would be one of the network, and be followed by another attempt.
      violations.push(`${others.length} others at ${request.at}`);
    }
    pending.add(request);
    return new Promise<Response>((resolve, reject) => {
      signal?.addEventListener("abort", () => {
        pending.delete(request);
        reject(signal.reason);
      });
      const answer = () => {
        pending.delete(request);
        const isRefused = refusals > 0;
        refusals -= 1;
        isAnswered ||= !isRefused;
        const refusal = { status: 429, headers: { "Retry-After": String(1 + below(10)) } };
        resolve(isRefused ? new Response(null, refusal) : new Response("done"));
      };
      // One in six is never answered.
      if (isFirst || below(6) > 0) {
        clock.setTimeout(answer, isFirst ? 0 : below(5_000));
      }
    });
  };
  const statuses: (number | string)[] = [];
  const call = (quiet: QuietPeriods) => {
    const options = { policy, clock, quiet, fetch: send, seed, timeoutMs: 45_000 };
    const ended = fetchRetry("https://api.example/", {}, options);
    void ended.then(({ status }) => statuses.push(status), (error) => statuses.push(String(error)));
  };
  call(tabs[0] as QuietPeriods);
  // Until all have heard of the pause.
  await clock.advance(200);
  clock.step = below(2) * 0.7;
  tabs.forEach((quiet) => [0, 1].forEach(() => clock.setTimeout(() => call(quiet), below(20_000))));
  await clock.advance(3_600_000);
  assert.deepEqual(violations, [], `seed ${seed}`);
  assert.deepEqual(statuses, Array.from({ length: 2 * tabs.length + 1 }, () => 200), `seed ${seed}`);
  tabs.forEach((quiet) => quiet.close());
  return received;
}

test("until one is answered, tabs send one request at a time, however slow tabs, locks and messages are", async () => {
  const { BroadcastChannel: original } = globalThis;
  const locks = new FakeLocks();
  let received = 0;
  for (let seed = 1n; seed <= 60n; seed += 1n) {
    received += await requests(seed, locks);
  }
  globalThis.BroadcastChannel = original;
  assert.ok(received > 60 * 8, `${received}`);
});
