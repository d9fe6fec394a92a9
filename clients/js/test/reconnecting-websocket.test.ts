import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ConnectionCloseEvent,
  parsePolicy,
  ReconnectingWebSocket,
  type ReconnectingWebSocketOptions,
  SendError,
  UnreachableEvent,
} from "../src/index.js";
import { draw, seedForCall } from "../src/numbers.js";
import { ReconnectMachine, TRANSIENT } from "../src/reconnect.js";
import { WEB_SOCKET } from "../src/web-socket-policy.js";
import { FakeNetwork, FakeSocket, recorder, settled, VirtualClock } from "./virtual.js";

type Url = ConstructorParameters<typeof ReconnectingWebSocket>[0];

/** Creates a client in virtual time. */
function client(options: ReconnectingWebSocketOptions = {}, url: Url = "wss://example/feed") {
  const clock = new VirtualClock();
  const network = new FakeNetwork();
  const { WebSocket, sockets } = recorder();
  const ws = new ReconnectingWebSocket(url, undefined, { clock, network, WebSocket, seed: 7n, ...options });
  const events: Event[] = [];
  for (const type of ["open", "close", "error", "message", "unreachable", "dropped"]) {
    ws.addEventListener(type, (event) => events.push(event));
  }
  const last = () => {
    const socket = sockets.at(-1);
    assert.ok(socket);
    return socket;
  };
  const types = () => events.map((event) => event.type);
  return { ws, clock, network, sockets, events, last, types };
}

/** Returns how long the client waits, in milliseconds. */
function waitOf({ ws, clock }: { ws: ReconnectingWebSocket; clock: VirtualClock }): number {
  assert.equal(ws.state.kind, "waiting", JSON.stringify(ws.state));
  return ws.state.kind === "waiting" ? ws.state.until - clock.now() : NaN;
}

test("the default policy is the profile web-socket", () => {
  assert.deepEqual(parsePolicy("web-socket").settings, WEB_SOCKET);
});

test("the waits of a client are those of the machine for its seed, rounded up to milliseconds", async () => {
  const given = client();
  const machine = new ReconnectMachine(WEB_SOCKET, 7n);
  let now = 1_000n * 1_000_000n;
  let step = machine.reconnectNow(now);
  given.last().open();
  machine.opened(1, now);
  await given.clock.advance(60_000);
  now += 60_000_000_000n;
  for (let n = 0; n < 20; n += 1) {
    given.last().lose();
    step = machine.ended(machine.generation, TRANSIENT, now);
    assert.ok(step.kind === "wait");
    const wait = waitOf(given);
    assert.equal(wait, Math.ceil(Number(step.after) / 1e6));
    await given.clock.advance(wait);
    now += BigInt(wait) * 1_000_000n;
    machine.due(now);
    assert.equal(given.sockets.length, n + 2);
  }
});

test("the loss of a healthy connection is spread, and a failure after it backs off", async () => {
  const spreads: number[] = [];
  for (let seed = 0n; seed < 200n; seed += 1n) {
    const given = client({ seed });
    given.last().open();
    await given.clock.advance(10_000);
    given.last().lose();
    spreads.push(waitOf(given));
    await given.clock.advance(10_000);
    given.last().lose();
    const wait = waitOf(given);
    assert.ok(wait >= 7_500 && wait <= 15_000, `${wait}`);
  }
  assert.ok(Math.min(...spreads) < 500 && Math.max(...spreads) > 9_500 && Math.max(...spreads) <= 10_000);
  const mean = spreads.reduce((sum, wait) => sum + wait, 0) / spreads.length;
  assert.ok(Math.abs(mean - 5_000) < 800, `${mean}`);
});

test("a connection that is not healthy does not restart the backoff", async () => {
  const given = client();
  for (let n = 0; n < 6; n += 1) {
    given.last().open();
    await given.clock.advance(9_999);
    given.last().lose();
    const wait = waitOf(given);
    assert.ok(wait >= (n === 0 ? 7_500 : 15_000), `${n}: ${wait}`);
    await given.clock.advance(wait);
  }
});

test("one loss that is reported many times schedules one attempt, with one timer", async () => {
  const given = client();
  const first = given.last();
  const lose = first.onclose as unknown as (event: unknown) => void;
  first.open();
  for (let n = 0; n < 1_000; n += 1) {
    first.onerror?.({} as never);
    lose({ code: 1006, reason: "", wasClean: false });
  }
  assert.deepEqual(given.types().filter((type) => type === "close"), ["close"]);
  await given.clock.advance(waitOf(given));
  assert.equal(given.sockets.length, 2);
  assert.equal(given.clock.mostTimers, 1);
});

test("close codes have the meaning that they have for stagger-ws", async () => {
  for (const [code, want] of [
    [1000, "normal-end"], [1002, "permanent"], [1003, "permanent"], [1007, "permanent"], [1008, "permanent"],
    [1009, "permanent"], [1010, "permanent"], [1015, "permanent"], [1001, "wait"], [1005, "wait"], [1006, "wait"],
    [1011, "wait"], [1014, "wait"], [3008, "wait"], [4000, "wait"], [4401, "wait"], [4999, "wait"],
  ] as const) {
    const given = client();
    given.last().open();
    await given.clock.advance(20_000);
    given.last().lose(code);
    const { state } = given.ws;
    assert.equal(state.kind === "stopped" ? state.reason : "wait", want, `${code}`);
  }
});

test("a connection whose server failed is not healthy, however long it was open", async () => {
  const shortest = { 1001: Infinity, 1011: Infinity };
  for (let seed = 0n; seed < 50n; seed += 1n) {
    for (const code of [1001, 1011] as const) {
      const given = client({ seed });
      given.last().open();
      await given.clock.advance(20_000);
      given.last().lose(code);
      shortest[code] = Math.min(shortest[code], waitOf(given));
    }
  }
  assert.ok(shortest[1001] < 1_000 && shortest[1011] >= 7_500, JSON.stringify(shortest));
});

/** Returns what the client asked for and its last state, when each of four connections is closed with 3000 after this time. */
async function expiring(ms: number, text: string) {
  const asked: boolean[] = [];
  const given = client({ policy: parsePolicy(text) }, ({ needsFreshCredentials }) => {
    asked.push(needsFreshCredentials);
    return "wss://example";
  });
  for (let n = 0; n < 4 && given.ws.readyState === 0; n += 1) {
    given.last().open();
    await given.clock.advance(ms);
    given.last().lose(3000);
    await given.clock.advance(given.ws.state.kind === "waiting" ? waitOf(given) : 60_000);
  }
  return { asked, state: given.ws.state };
}

test("rejected credentials are replaced once, unless the connection was healthy", async () => {
  for (const [ms, text, isHealthy] of [
    [9_999, "web-socket", false],
    [10_000, "web-socket", true],
    [3_600_000, "web-socket", true],
    [400, "exponential base=10ms stable-after=500ms", false],
    [500, "exponential base=10ms stable-after=500ms", true],
    // Zero is no proof, so the default counts.
    [9_999, "exponential base=10ms stable-after=0s", false],
    [10_000, "exponential base=10ms stable-after=0s", true],
  ] as const) {
    const { asked, state } = await expiring(ms, text);
    assert.deepEqual(
      [asked, state.kind],
      isHealthy ? [[false, true, true, true, true], "connecting"] : [[false, true], "stopped"],
      `${ms} ms, ${text}`,
    );
  }
});

test("an attempt that fails does not make rejected credentials good", async () => {
  const asked: boolean[] = [];
  const given = client({}, ({ needsFreshCredentials }) => {
    asked.push(needsFreshCredentials);
    return "wss://example";
  });
  given.last().open();
  given.last().lose(3000);
  await given.clock.advance(waitOf(given));
  given.last().lose();
  await given.clock.advance(waitOf(given));
  assert.deepEqual(asked, [false, true, true]);
});

test("advice in a close frame decides the wait, for each client another", async () => {
  const waits = new Set<number>();
  for (let seed = 0n; seed < 100n; seed += 1n) {
    const given = client({ seed });
    given.last().open();
    given.last().lose(1013, '{"retry_after_ms":8000,"spread_ms":20000}');
    const wait = waitOf(given);
    assert.equal(wait, Math.ceil(Number(draw(8_000_000_000n, 28_000_000_000n, seedForCall(seed, 1n))) / 1e6));
    waits.add(wait);
  }
  assert.ok(waits.size > 95 && Math.min(...waits) < 9_000 && Math.max(...waits) > 27_000);
});

test("without advice, 1012 waits 5 to 30 s and 1013 30 to 120 s", () => {
  for (let seed = 0n; seed < 100n; seed += 1n) {
    for (const [code, from, to] of [[1012, 5_000, 30_000], [1013, 30_000, 120_000]] as const) {
      const given = client({ seed });
      given.last().open();
      given.last().lose(code, "busy");
      const wait = waitOf(given);
      assert.ok(wait >= from && wait <= to, `${code}: ${wait}`);
    }
  }
});

test("a reservation is kept to the millisecond and presented once", async () => {
  const token = "00000000000000020123456789abcdef";
  for (const [protocols, url, presented] of [
    [undefined, `wss://example/feed?stagger-reservation=${token}`, []],
    [["chat"], "wss://example/feed", ["chat", `stagger-reservation.${token}`]],
  ] as const) {
    const clock = new VirtualClock();
    const { WebSocket, sockets } = recorder();
    const names = protocols === undefined ? undefined : [...protocols];
    const ws = new ReconnectingWebSocket("wss://example/feed", names, { clock, WebSocket, seed: 7n });
    sockets[0]?.open();
    sockets[0]?.lose(1013, `{"retry_after_ms":1520,"reservation":"${token}"}`);
    await clock.advance(1_519);
    assert.equal(sockets.length, 1);
    await clock.advance(1);
    assert.deepEqual([sockets[1]?.url, sockets[1]?.protocols], [url, presented]);
    assert.equal(ws.url, "wss://example/feed");
    sockets[1]?.lose();
    await clock.advance(60_000);
    assert.deepEqual([sockets[2]?.url, sockets[2]?.protocols.length], ["wss://example/feed", protocols ? 1 : 0]);
  }
});

test("messages that wait are sent in order when a connection opens", async () => {
  const given = client();
  given.ws.send("a");
  given.ws.send("b");
  assert.equal(given.ws.bufferedAmount, 4);
  given.last().open();
  given.ws.send("c");
  assert.deepEqual([given.last().sent, given.ws.bufferedAmount], [["a", "b", "c"], 0]);
});

test("each kind of outbox is bounded and says what it does when it is full", async () => {
  const run = (kind: "backpressure" | "drop-oldest" | "drop-newest" | "fail-fast") => {
    const given = client({ outbox: { kind, maxMessages: 2 } });
    const errors = ["a", "b", "c"].map((message) => {
      try {
        given.ws.send(message);
        return "";
      } catch (error) {
        return error instanceof SendError ? error.kind : "?";
      }
    });
    given.last().open();
    return [errors.filter(Boolean).join(), given.last().sent.join(), given.types().join()];
  };
  assert.deepEqual(run("backpressure"), ["full", "a,b", "open"]);
  assert.deepEqual(run("drop-oldest"), ["", "b,c", "dropped,open"]);
  assert.deepEqual(run("drop-newest"), ["", "a,b", "dropped,open"]);
  assert.deepEqual(run("fail-fast"), ["not-connected,not-connected,not-connected", "", "open"]);
});

test("bytes and age of waiting messages are bounded, too", async () => {
  const given = client({ outbox: { maxBytes: 10, ttlMs: 5_000 } });
  assert.throws(() => given.ws.send("123456"), (error) => error instanceof SendError && error.kind === "too-long");
  given.ws.send(new Uint8Array(8));
  assert.throws(() => given.ws.send("12"), (error) => error instanceof SendError && error.kind === "full");
  await given.clock.advance(5_000);
  given.ws.send("12");
  given.last().open();
  assert.deepEqual([given.last().sent, given.types()], [["12"], ["dropped", "open"]]);
});

test("sendWhenRoom waits for room, and fails when the client is closed", async () => {
  const given = client({ outbox: { maxMessages: 1 } });
  const sent = ["a", "b"].map((message) => given.ws.sendWhenRoom(message));
  await settled();
  given.last().open();
  await Promise.all(sent);
  assert.deepEqual(given.last().sent, ["a", "b"]);
  given.last().lose();
  given.ws.send("c");
  const late = given.ws.sendWhenRoom("d");
  const failed = assert.rejects(late, (error) => error instanceof SendError && error.kind === "closed");
  given.ws.close();
  await failed;
});

test("what waits in an open connection is limited by maxBytes, and each kind of outbox says what it does", async () => {
  for (const kind of ["backpressure", "drop-oldest", "drop-newest", "fail-fast"] as const) {
    const given = client({ outbox: { kind, maxBytes: 100 } });
    given.last().open();
    given.last().bufferedAmount = 96;
    given.ws.send("ab");
    given.last().bufferedAmount = 97;
    const send = () => given.ws.send("cd");
    if (kind.startsWith("drop")) {
      send();
      assert.deepEqual(given.types(), ["open", "dropped"]);
    } else {
      assert.throws(send, (error) => error instanceof SendError && error.kind === "full");
    }
    assert.throws(() => given.ws.send("x".repeat(51)), (error) => error instanceof SendError && error.kind === "too-long");
    assert.deepEqual([given.last().sent, given.ws.bufferedAmount], [["ab"], 97]);
  }
});

test("sendWhenRoom waits until the open connection has sent what waits in it", async () => {
  const given = client({ outbox: { maxBytes: 100 } });
  given.last().open();
  given.last().bufferedAmount = 99;
  const sent = given.ws.sendWhenRoom("ab");
  await given.clock.advance(1_000);
  assert.deepEqual(given.last().sent, []);
  given.last().bufferedAmount = 10;
  await given.clock.advance(50);
  await sent;
  assert.deepEqual(given.last().sent, ["ab"]);
  given.last().bufferedAmount = 99;
  const late = assert.rejects(given.ws.sendWhenRoom("cd"), (error) => error instanceof SendError && error.kind === "closed");
  given.ws.close();
  await given.clock.advance(50);
  await late;
});

test("the state has the time of the next attempt, and every change is an event", async () => {
  const given = client();
  const states: string[] = [];
  given.ws.addEventListener("statechange", () => states.push(given.ws.state.kind));
  await settled();
  given.last().open();
  await settled();
  given.last().lose();
  await settled();
  const wait = waitOf(given);
  assert.equal(given.ws.readyState, ReconnectingWebSocket.CONNECTING);
  await given.clock.advance(wait);
  given.ws.close();
  await settled();
  assert.deepEqual(states, ["connecting", "open", "waiting", "connecting", "closed"]);
  const close = given.events.find((event) => event instanceof ConnectionCloseEvent);
  assert.equal(close instanceof ConnectionCloseEvent && close.retryInMs, wait);
});

test("after ten failed attempts there is an event, and again when the outage has doubled", async () => {
  const given = client();
  for (let n = 0; n < 25; n += 1) {
    given.last().lose();
    await given.clock.advance(waitOf(given));
  }
  const reports = given.events.filter((event) => event instanceof UnreachableEvent) as UnreachableEvent[];
  assert.equal(reports[0]?.attempts, 10);
  assert.ok(reports.length === 2 && (reports[1]?.lastedMs ?? 0) >= 2 * (reports[0]?.lastedMs ?? 0));
  assert.ok(given.ws.state.kind === "connecting");
});

test("an attempt that does not end is given up after its time", async () => {
  const given = client({ connectTimeoutMs: 3_000 });
  await given.clock.advance(3_000);
  assert.ok(given.last().closedBy && waitOf(given) >= 7_500);
  given.last().open();
  assert.equal(given.ws.state.kind, "waiting");
});

test("an attempt that fails without a close is over at once, and one with a close is reported once", async () => {
  const given = client();
  given.last().onerror?.({ type: "error" } as never);
  await given.clock.advance(0);
  assert.deepEqual([given.types(), given.ws.state.kind], [["error", "close"], "waiting"]);
  const both = client();
  both.last().onerror?.({ type: "error" } as never);
  both.last().lose();
  await both.clock.advance(7_000);
  assert.deepEqual([both.types(), both.sockets.length], [["error", "close"], 1]);
  // An error while the connection is open ends nothing: its close does.
  const open = client();
  open.last().open();
  open.last().onerror?.({ type: "error" } as never);
  await open.clock.advance(20_000);
  assert.equal(open.ws.state.kind, "open");
});

test("an address that a function makes is made anew for each attempt, and its failure is a failed attempt", async () => {
  let calls = 0;
  const given = client({}, async ({ number }) => {
    calls += 1;
    if (number === 1) {
      throw new Error("no token");
    }
    return `wss://example/?token=${calls}`;
  });
  await settled();
  assert.deepEqual(given.types(), ["error", "close"]);
  await given.clock.advance(waitOf(given));
  assert.equal(given.last().url, "wss://example/?token=2");
});

test("an attempt that a listener has replaced neither ends nor delays the new one", async () => {
  let calls = 0;
  const given = client({ connectTimeoutMs: 3_000 }, () => {
    calls += 1;
    if (calls === 2) {
      throw new Error("no token");
    }
    return "wss://example";
  });
  given.ws.addEventListener("error", () => given.ws.reconnectNow());
  given.last().lose();
  await given.clock.advance(waitOf(given));
  // The second attempt has failed in the middle of the event, and the third is under way with its time limit.
  assert.deepEqual([calls, given.ws.state.kind, given.types()], [3, "connecting", ["close", "error"]]);
  await given.clock.advance(3_000);
  assert.deepEqual([given.ws.state.kind, given.types()], ["waiting", ["close", "error", "close"]]);
});

test("an address that cannot be right is not tried again", async () => {
  class Rejecting extends FakeSocket {
    constructor(url: string) {
      super(url);
      throw new DOMException("no address", "SyntaxError");
    }
  }
  const given = client({ WebSocket: Rejecting });
  assert.deepEqual(given.ws.state, { kind: "stopped", reason: "permanent" });
});

test("reconnectNow ends a wait, replaces a connection, and starts again after giving up", async () => {
  const given = client();
  const first = given.last();
  first.lose();
  given.ws.reconnectNow();
  assert.deepEqual([given.sockets.length, given.clock.timers.size], [2, 1]);
  given.last().open();
  const second = given.last();
  given.ws.reconnectNow();
  assert.deepEqual([second.closedBy?.[0], given.sockets.length], [1000, 3]);
  second.lose();
  assert.equal(given.ws.state.kind, "connecting");
  given.last().open();
  given.last().lose(1008);
  assert.equal(given.ws.state.kind, "stopped");
  assert.throws(() => given.ws.send("x"), (error) => error instanceof SendError && error.kind === "gave-up");
  given.ws.reconnectNow();
  assert.equal(given.ws.state.kind, "connecting");
});

test("close cancels everything, in every state", async () => {
  for (const prepare of [
    () => {},
    (socket: FakeSocket) => socket.open(),
    (socket: FakeSocket) => socket.lose(),
    (socket: FakeSocket) => (socket.open(), socket.lose(1008)),
  ]) {
    const controller = new AbortController();
    const given = client({ signal: controller.signal });
    prepare(given.last());
    const wasOpen = given.ws.readyState === 1;
    controller.abort();
    await settled();
    given.network.set(true);
    given.ws.reconnectNow();
    await given.clock.advance(600_000);
    assert.deepEqual([given.sockets.length, given.clock.timers.size, given.ws.state.kind], [1, 0, "closed"]);
    assert.equal(given.ws.readyState, wasOpen ? 2 : 3);
    given.last().lose(1000);
    assert.deepEqual([given.ws.readyState, given.types().at(-1)], [3, "close"]);
    assert.throws(() => given.ws.send("x"), (error) => error instanceof SendError && error.kind === "closed");
  }
  const aborted = new AbortController();
  aborted.abort();
  const given = client({ signal: aborted.signal });
  assert.deepEqual([given.sockets.length, given.ws.readyState], [0, 3]);
  assert.throws(() => client().ws.close(1001), (error) => error instanceof DOMException);
});

test("waits that were overslept are spread again, once", async () => {
  for (const oversleep of ["freeze", "sleep"] as const) {
    const waits: number[] = [];
    for (let seed = 0n; seed < 100n; seed += 1n) {
      const given = client({ seed });
      given.last().lose();
      const wait = waitOf(given);
      given.clock[oversleep](3_600_000);
      // A frozen page has missed the time of its timer; that of a device that slept fires when the page's clock says so.
      await given.clock.advance(oversleep === "freeze" ? 0 : wait);
      assert.equal(given.sockets.length, 1);
      waits.push(waitOf(given));
      given.clock[oversleep](3_600_000);
      await given.clock.advance(oversleep === "freeze" ? 0 : 10_000);
      assert.equal(given.sockets.length, 2);
    }
    assert.ok(Math.max(...waits) <= 10_000 && Math.max(...waits) > 9_000 && Math.min(...waits) < 1_000, oversleep);
  }
});

test("a wait that is longer than timers can be is made of several", async () => {
  const given = client({ policy: parsePolicy("constant base=60d jitter=none") });
  const day = 86_400_000;
  given.last().lose();
  await given.clock.advance(60 * day - 1);
  assert.equal(given.sockets.length, 1);
  await given.clock.advance(1);
  assert.deepEqual([given.sockets.length, given.clock.fired], [2, 3]);
});

test("without a network no attempt is made, and its return is spread", async () => {
  const waits: number[] = [];
  for (let seed = 0n; seed < 50n; seed += 1n) {
    const given = client({ seed });
    given.network.set(false);
    given.last().lose();
    await given.clock.advance(40_000);
    assert.deepEqual([given.ws.state.kind, given.sockets.length], ["offline", 1]);
    given.network.set(true);
    waits.push(waitOf(given));
    await given.clock.advance(10_000);
    assert.equal(given.sockets.length, 2);
  }
  assert.ok(Math.max(...waits) > 8_000 && Math.max(...waits) <= 10_000 && Math.min(...waits) < 2_000);
});

test("a network that is wrongly reported as absent delays an attempt by a minute at most", async () => {
  const given = client();
  given.network.navigator.onLine = false;
  given.last().lose();
  await given.clock.advance(15_000 + 60_000);
  assert.equal(given.sockets.length, 2);
});

test("the return of the network shortens a backoff, but not a wait that the server asks for", async () => {
  const given = client();
  given.last().lose();
  given.network.set(true);
  assert.ok(waitOf(given) <= 10_000);
  const asked = client();
  asked.last().open();
  asked.last().lose(1013, '{"retry_after_ms":60000}');
  asked.network.set(true);
  assert.equal(waitOf(asked), 60_000);
});
