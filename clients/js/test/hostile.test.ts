import assert from "node:assert/strict";
import { test } from "node:test";
import { closeAction } from "../src/close-codes.js";
import { parsePolicy, ReconnectingWebSocket, type ReconnectingWebSocketOptions } from "../src/index.js";
import { recorder, settled, VirtualClock } from "./virtual.js";

function client(options: ReconnectingWebSocketOptions = {}) {
  const clock = new VirtualClock();
  const { WebSocket, sockets } = recorder();
  const ws = new ReconnectingWebSocket("wss://example", undefined, { clock, WebSocket, seed: 3n, ...options });
  return { ws, clock, sockets };
}

const DAY = 86_400_000_000_000n;

test("advice is used only if it is well formed, and asks for two days at most", () => {
  for (const reason of [
    '{"retry_after_ms":-1}',
    '{"retry_after_ms":1.5}',
    '{"retry_after_ms":"8000"}',
    '{"retry_after_ms":1e400}',
    '{"retry_after_ms":18446744073709551616}',
    '{"retry_after_ms":1795435202000}',
    '{"retry_after_ms":31622400001}',
    '{"retry_after_ms":1,"spread_ms":1795435202000}',
    '{"retry_after_ms":null}',
    '{"retry_after_ms":1,"spread_ms":-1}',
    '{"retry_after_ms":1',
    '{"retry_after_ms":1}x',
    '{"__proto__":{"retry_after_ms":1}}',
    `{"retry_after_ms":1${" ".repeat(123)}}`,
    "[1]",
    "null",
    "NaN",
    "",
  ]) {
    assert.equal(closeAction(1001, reason), "reconnect", reason);
  }
  for (const asked of ["31622400000", "86400001"]) {
    assert.deepEqual(closeAction(1013, `{"retry_after_ms":${asked},"spread_ms":${asked}}`), { from: DAY, to: 2n * DAY });
  }
  assert.deepEqual(closeAction(1001, '{"retry_after_ms":7,"reservation":"x"}'), { from: 7_000_000n, to: 7_000_000n });
  assert.equal(closeAction(1008, '{"retry_after_ms":7}'), "fatal");
});

test("a very long wait ends after two days", async () => {
  const { ws, clock, sockets } = client();
  sockets[0]?.open();
  sockets[0]?.lose(1013, '{"retry_after_ms":31622400000,"spread_ms":31622400000}');
  await clock.advance(86_399_999);
  assert.deepEqual([sockets.length, ws.state.kind], [1, "waiting"]);
  await clock.advance(86_400_001);
  assert.ok(sockets.length >= 2);
});

test("a wait beyond the limit of the policy stops the client", () => {
  const { ws, sockets } = client({ policy: parsePolicy("web-socket max-hint=1m") });
  sockets[0]?.open();
  sockets[0]?.lose(1013, '{"retry_after_ms":60001}');
  assert.deepEqual(ws.state, { kind: "stopped", reason: "hint" });
});

test("a server that accepts and closes after a millisecond gets no tight loop", async () => {
  for (const code of [1006, 1001, 1011, 1012, 4000]) {
    const { clock, sockets } = client();
    for (let elapsed = 0; elapsed < 3_600_000; elapsed += 500) {
      const socket = sockets.at(-1);
      if (socket?.onopen) {
        socket.open();
        await clock.advance(1);
        socket.lose(code);
      }
      await clock.advance(499);
    }
    // The shortest wait is 5 s for 1012, and 7.5 s and then 15 s for the others.
    assert.ok(sockets.length <= 3_600 / 5 && sockets.length >= 100, `${code}: ${sockets.length}`);
    assert.equal(clock.mostTimers, 1);
  }
});

test("a server that asks for the client back at once is followed three times in a row, by timers, and then backed off from", async () => {
  const { clock, sockets } = client();
  const waits: number[] = [];
  for (let n = 0; n < 40; n += 1) {
    const before = sockets.length;
    const from = clock.now();
    sockets.at(-1)?.open();
    sockets.at(-1)?.lose(1013, '{"retry_after_ms":0}');
    assert.equal(sockets.length, before);
    await clock.advanceTo(() => sockets.length > before);
    waits.push(clock.now() - from);
  }
  assert.equal(clock.mostTimers, 1);
  const backedOff = waits.filter((_, n) => n % 4 === 3);
  assert.ok(waits.every((wait, n) => n % 4 === 3 || wait === 0) && backedOff.length === 10, waits.join());
  // The delays of the profile from the second on.
  assert.ok(backedOff.every((wait) => wait >= 15_000 && wait <= 30_000), waits.join());
});

test("a hostile server gets an attempt every few seconds, however short the waits that it asks for", async () => {
  for (const reason of ['{"retry_after_ms":0}', '{"retry_after_ms":0,"spread_ms":1}', `{"retry_after_ms":0,"reservation":"${"0".repeat(32)}"}`]) {
    const { clock, sockets } = client();
    // An attempt and its connection take 12 ms: chromium makes at most 85 handshakes a second.
    while (clock.now() < 3_600_000) {
      await clock.advance(12);
      sockets.at(-1)?.open();
      sockets.at(-1)?.lose(1013, reason);
      const { length } = sockets;
      await clock.advanceTo(() => sockets.length > length);
    }
    // Four for each delay of the profile, of 15 to 30 s: of 306,000 that the handshakes would allow.
    assert.ok(sockets.length >= 4 * 3_600 / 30 && sockets.length <= 4 * (3_600 / 15 + 1), `${reason}: ${sockets.length}`);
    assert.equal(clock.mostTimers, 1);
  }
});

test("listeners that throw or that call the client change no decision", async () => {
  if ("Bun" in globalThis) {
    // Bun's runner of tests fails a test whose listener throws, and lets nothing else see the error.
    return;
  }
  const reported: unknown[] = [];
  process.setUncaughtExceptionCaptureCallback((error) => reported.push(error));
  const { ws, clock, sockets } = client();
  const fail = (event: Event) => {
    throw new Error(`a listener of ${event.type}`);
  };
  for (const type of ["open", "message", "close", "error", "statechange"]) {
    ws.addEventListener(type, fail);
  }
  ws.onclose = fail;
  sockets[0]?.open();
  sockets[0]?.message("x");
  sockets[0]?.onerror?.({} as never);
  sockets[0]?.lose();
  await clock.advance(10_000 + 15_000);
  assert.equal(sockets.length, 2);
  await new Promise((resolve) => setImmediate(resolve));
  process.setUncaughtExceptionCaptureCallback(null);
  assert.ok(reported.length >= 6 && reported.every((error) => String(error).includes("a listener of")));
});

test("a listener may close the client or reconnect in the middle of any event", async () => {
  for (const type of ["open", "message", "close", "error", "statechange"]) {
    for (const action of ["close", "reconnectNow"] as const) {
      const { ws, clock, sockets } = client();
      let calls = 0;
      ws.addEventListener(type, () => {
        calls += 1;
        if (calls === 1) {
          ws[action]();
        }
      });
      await settled();
      sockets.at(-1)?.open();
      sockets.at(-1)?.message("x");
      sockets.at(-1)?.onerror?.({} as never);
      sockets.at(-1)?.lose();
      await settled();
      assert.ok(calls >= 1, type);
      await clock.advance(60_000);
      assert.equal(clock.mostTimers, 1, `${type}, ${action}`);
      assert.equal(ws.state.kind === "closed", action === "close", `${type}, ${action}: ${ws.state.kind}`);
      assert.equal(clock.timers.size, action === "close" ? 0 : 1, `${type}, ${action}`);
    }
  }
});

test("an answer of a function of the application that comes too late is not used", async () => {
  let answer: (url: string) => void = () => {};
  const clock = new VirtualClock();
  const { WebSocket, sockets } = recorder();
  const url = () => new Promise<string>((resolve) => (answer = resolve));
  const ws = new ReconnectingWebSocket(url, undefined, { clock, WebSocket, seed: 3n });
  const first = answer;
  await clock.advance(10_000);
  assert.equal(ws.state.kind, "waiting");
  first("wss://late");
  await settled();
  assert.equal(sockets.length, 0);
  await clock.advance(15_000);
  answer("wss://second");
  await settled();
  assert.deepEqual(sockets.map((socket) => socket.url), ["wss://second"]);
});
