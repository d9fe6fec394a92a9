import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionErrorEvent, type HeartbeatOptions, ReconnectingWebSocket, withHeartbeat } from "../src/index.js";
import { recorder, VirtualClock } from "./virtual.js";

function client(options: Partial<HeartbeatOptions> = {}) {
  const clock = new VirtualClock();
  const { WebSocket, sockets } = recorder();
  const all = { message: "beat", intervalMs: 20_000, timeoutMs: 5_000, clock, WebSocket, ...options };
  const ws = new ReconnectingWebSocket("wss://example", undefined, { clock, seed: 7n, WebSocket: withHeartbeat(all) });
  const events: string[] = [];
  ws.addEventListener("message", ({ data }) => events.push(String(data)));
  ws.addEventListener("close", ({ code, reason }) => events.push(`${code} ${reason}`));
  ws.addEventListener("error", (event) => events.push(String((event as ConnectionErrorEvent).error)));
  const socket = sockets[0];
  assert.ok(socket);
  return { ws, clock, sockets, socket, events };
}

const LOST = "1006 nothing was received for 5000 ms after a heartbeat";

test("a heartbeat is sent at every interval, whatever else is received", async () => {
  const given = client();
  await given.clock.advance(9_000);
  given.socket.open();
  for (let n = 1; n <= 5; n += 1) {
    // The answer takes some time, which the next heartbeat does not wait for.
    await given.clock.advance(4_999);
    given.socket.message("late");
    await given.clock.advance(15_000);
    given.socket.message("news");
    assert.equal(given.socket.sent.length, n - 1);
    await given.clock.advance(1);
    assert.equal(given.socket.sent.length, n);
  }
  assert.equal(given.ws.state.kind, "open");
  // The other one is the client's.
  assert.equal(given.clock.mostTimers, 2);
});

test("a connection is lost when nothing was received within the timeout after a heartbeat", async () => {
  const given = client();
  given.socket.open();
  await given.clock.advance(24_999);
  assert.equal(given.ws.state.kind, "open");
  await given.clock.advance(1);
  assert.deepEqual([given.ws.state.kind, given.events], ["waiting", [LOST]]);
  assert.ok(given.socket.closedBy);
  assert.equal(given.clock.timers.size, 1);
});

test("silence before a heartbeat is no loss, and any message is an answer", async () => {
  const given = client({ intervalMs: 3_600_000 });
  given.socket.open();
  await given.clock.advance(3_600_000 + 4_999);
  given.socket.message("news");
  await given.clock.advance(3_600_000 - 5_000);
  assert.deepEqual([given.ws.state.kind, given.events], ["open", ["news"]]);
});

test("answers are not delivered if the application knows them", async () => {
  const given = client({ isReply: (data) => data === "pong" });
  given.socket.open();
  for (let n = 0; n < 3; n += 1) {
    await given.clock.advance(20_000);
    given.socket.message("pong");
  }
  given.socket.message("news");
  assert.deepEqual([given.ws.state.kind, given.events], ["open", ["news"]]);
});

test("a page that was frozen, or a device that has slept, loses no connection whose server answers", async () => {
  for (const stop of ["freeze", "sleep"] as const) {
    for (const sleptMs of [2_000, 30_000, 59_000, 3_600_000]) {
      const given = client();
      given.socket.open();
      await given.clock.advance(20_000);
      given.clock[stop](5_000 + sleptMs);
      // The timer fires before the answer is handled.
      await given.clock.advance(stop === "freeze" ? 0 : 5_000);
      assert.equal(given.ws.state.kind, "open", `${stop} ${sleptMs}`);
      given.socket.message("answer");
      await given.clock.advance(4_999);
      assert.equal(given.ws.state.kind, "open");
    }
  }
});

test("after a freeze an unresponsive server is found one timeout later", async () => {
  const given = client();
  given.socket.open();
  await given.clock.advance(20_000);
  given.clock.freeze(3_600_000);
  await given.clock.advance(4_999);
  assert.equal(given.ws.state.kind, "open");
  await given.clock.advance(1);
  assert.deepEqual(given.events, [LOST]);
});

test("in a hidden page, whose timers fire once a minute, an unresponsive server is found after three minutes", async () => {
  const given = client();
  given.socket.open();
  for (let minute = 1; minute <= 3; minute += 1) {
    assert.equal(given.ws.state.kind, "open", `${minute}`);
    given.clock.freeze(60_000);
    await given.clock.advance(0);
  }
  assert.deepEqual([given.events, given.socket.sent.length], [[LOST], 1]);
  const answered = client();
  answered.socket.open();
  for (let minute = 1; minute <= 60; minute += 1) {
    answered.clock.freeze(60_000);
    await answered.clock.advance(0);
    answered.socket.message("answer");
  }
  assert.ok(answered.ws.state.kind === "open" && answered.socket.sent.length >= 30);
});

test("no timer is left when the connection ends, in whatever way", async () => {
  for (const end of [
    (given: ReturnType<typeof client>) => given.ws.close(),
    (given: ReturnType<typeof client>) => given.socket.lose(1008),
  ]) {
    for (const after of [0, 10_000, 20_000, 22_000]) {
      const given = client();
      given.socket.open();
      await given.clock.advance(after);
      end(given);
      given.socket.message("late");
      assert.equal(given.clock.timers.size, 0, `${after}`);
    }
  }
  const closing = client();
  closing.ws.onopen = () => closing.ws.close();
  closing.socket.open();
  assert.equal(closing.clock.timers.size, 0);
});

test("a heartbeat that cannot be made is reported, and is not taken for a silent server", async () => {
  const given = client({
    message: () => {
      throw new Error("no beat");
    },
  });
  given.socket.open();
  await given.clock.advance(60_000);
  assert.deepEqual([given.ws.state.kind, given.events], ["open", ["Error: no beat", "Error: no beat", "Error: no beat"]]);
  given.ws.onerror = () => given.ws.close();
  await given.clock.advance(20_000);
  assert.equal(given.clock.timers.size, 0);
});

test("intervals that make no sense are rejected with their values", () => {
  for (const [options, sentence] of [
    [{ intervalMs: 0 }, "intervalMs is 0; use more than 0"],
    [{ intervalMs: NaN }, "intervalMs is NaN; use more than 0"],
    [{ timeoutMs: -1 }, "timeoutMs is -1; use more than 0"],
    [{ timeoutMs: 30_000 }, "timeoutMs 30000 is above intervalMs 20000: lower timeoutMs or raise intervalMs"],
  ] as const) {
    assert.throws(() => client(options), (error) => error instanceof RangeError && error.message === sentence);
  }
});
