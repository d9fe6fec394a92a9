/** Timers that nobody waits for anymore. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePolicy, ReconnectingWebSocket, type ReconnectingWebSocketOptions } from "../src/index.js";
import { Timer } from "../src/timer.js";
import { FakeSocket, recorder, settled, VirtualClock } from "./virtual.js";

type Arguments = ConstructorParameters<typeof ReconnectingWebSocket>;

function client(options: ReconnectingWebSocketOptions = {}, url: Arguments[0] = "wss://example", protocols?: Arguments[1]) {
  const clock = new VirtualClock();
  const { WebSocket, sockets } = recorder();
  return { ws: new ReconnectingWebSocket(url, protocols, { clock, WebSocket, seed: 3n, ...options }), clock, sockets };
}

test("a client that was closed or has given up has no timer", () => {
  const connecting = client();
  connecting.ws.close();
  assert.equal(connecting.clock.timers.size, 0);

  const waiting = client();
  waiting.sockets[0]?.lose();
  assert.equal(waiting.clock.timers.size, 1);
  waiting.ws.close();
  assert.equal(waiting.clock.timers.size, 0);

  const given = client({ policy: parsePolicy("web-socket max-attempts=1") });
  given.sockets[0]?.lose();
  assert.deepEqual([given.ws.state.kind, given.clock.timers.size], ["stopped", 0]);

  class Rejecting extends FakeSocket {
    constructor(url: string) {
      super(url);
      throw new DOMException("no address", "SyntaxError");
    }
  }
  const rejected = client({ WebSocket: Rejecting });
  assert.deepEqual([rejected.ws.state.kind, rejected.clock.timers.size], ["stopped", 0]);
});

test("the attempt's signal is aborted when one of its functions has failed", async () => {
  const signals: AbortSignal[] = [];
  const url: Arguments[0] = ({ signal }) => new Promise(() => signals.push(signal));
  const { ws } = client({}, url, () => Promise.reject(new Error("no token")));
  await settled();
  assert.deepEqual([ws.state.kind, signals.map((signal) => signal.aborted)], ["waiting", [true]]);
});

test("a wait ends when it has passed by one of the clocks, and says how late that is", async () => {
  const ends = async (pass: (clock: VirtualClock) => void): Promise<[number, number] | undefined> => {
    const clock = new VirtualClock();
    let end: [number, number] | undefined;
    const start = clock.now();
    new Timer(clock).wait(1_000, (lateMs) => (end = [clock.now() - start, lateMs]));
    pass(clock);
    await clock.advance(999);
    assert.equal(end?.[0] ?? 1_000, 1_000);
    await clock.advance(1);
    return end;
  };
  assert.deepEqual(await ends(() => {}), [1_000, 0]);
  assert.deepEqual(await ends((clock) => clock.sleep(60_000)), [1_000, 60_000]);
});

test("a wait of more milliseconds than timers count is waited to its end", async () => {
  const clock = new VirtualClock();
  const lates: number[] = [];
  const until = new Timer(clock).wait(2 ** 32, (lateMs) => lates.push(lateMs));
  await clock.advance(2 ** 32 - 1);
  assert.deepEqual(lates, []);
  await clock.advance(1);
  assert.deepEqual([lates, clock.now()], [[0], until]);
});

test("what is armed takes the place of what was armed before", async () => {
  const clock = new VirtualClock();
  const timer = new Timer(clock);
  const fired: string[] = [];
  timer.arm(() => fired.push("attempt"), 10);
  timer.wait(20, () => fired.push("wait"));
  timer.wait(30, () => fired.push("another wait"));
  assert.equal(clock.timers.size, 1);
  await clock.advance(1_000);
  assert.deepEqual(fired, ["another wait"]);
});
