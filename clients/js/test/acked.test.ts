import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Acks,
  AckedWebSocket,
  ConnectionErrorEvent,
  type Message,
  NotAcknowledgedError,
  ownDraw,
  parsePolicy,
  type ReconnectingWebSocketOptions,
  SendError,
} from "../src/index.js";
import { FakeSocket, recorder, settled, VirtualClock } from "./virtual.js";

/** Messages are "7 hello", and acknowledgements "ack 7" for all up to 7, or "one 7". */
const NUMBERED: Acks<number> = {
  id: (message) => parseInt(String(message), 10),
  ack: (data) => {
    const [word, id] = String(data).split(" ");
    return word === "ack" ? { upTo: Number(id) } : word === "one" ? { one: Number(id) } : undefined;
  },
};

function client(acks: Partial<Acks<number>> = {}, options: ReconnectingWebSocketOptions = {}) {
  const clock = new VirtualClock();
  const { WebSocket, sockets } = recorder();
  const all = { clock, WebSocket, seed: 7n, ...options, acks: { ...NUMBERED, ...acks } };
  const ws = new AckedWebSocket("wss://example", undefined, all);
  const received: unknown[] = [];
  ws.addEventListener("message", ({ data }) => received.push(data));
  const last = () => {
    const socket = sockets.at(-1);
    assert.ok(socket);
    return socket;
  };
  /** Loses the connection unless it is lost already, and opens the next one. */
  const reopen = async () => {
    if (ws.state.kind !== "waiting") {
      last().lose();
    }
    await clock.advance(ws.state.kind === "waiting" ? ws.state.until - clock.now() : 0);
    last().open();
  };
  return { ws, clock, sockets, received, last, reopen };
}

/** A server that stores each message once, before it acknowledges it. Connections are killed with all that is under way. */
class Store {
  readonly stored: number[] = [];
  readonly arrived: number[] = [];
  toServer: string[] = [];
  toClient: string[] = [];

  constructor(readonly word: string) {}

  /** Receives the next message that is under way. */
  receive(): void {
    const message = this.toServer.shift();
    if (message === undefined) {
      return;
    }
    const id = parseInt(message, 10);
    this.arrived.push(id);
    const last = this.stored.at(-1) ?? 0;
    assert.ok(id <= last + 1, `${id} arrived after ${last}`);
    if (id === last + 1) {
      this.stored.push(id);
    }
    this.toClient.push(`${this.word} ${id}`);
  }

  kill(): void {
    [this.toServer, this.toClient] = [[], []];
  }
}

const MESSAGES = 12;

/** Runs a client against a store; what happens next is chosen by `choose`, a number from 0 to 7. Returns kills and duplicates. */
async function run(word: string, choose: (step: number) => number): Promise<{ kills: number; twice: number }> {
  const store = new Store(word);
  class Connection extends FakeSocket {
    override send(data: unknown): void {
      store.toServer.push(String(data));
    }
  }
  const sockets: Connection[] = [];
  const Recorded = class extends Connection {
    constructor(url: string) {
      super(url);
      sockets.push(this);
    }
  };
  const clock = new VirtualClock();
  const policy = parsePolicy("constant base=5ms jitter=none max-attempts=inf");
  const options = { clock, policy, WebSocket: Recorded, seed: 1n, acks: { ...NUMBERED, window: 4 } };
  const ws = new AckedWebSocket("wss://example", undefined, options);
  const acknowledged: number[] = [];
  let [sent, kills] = [0, 0];
  const step = async (action: number) => {
    const socket = sockets.at(-1);
    if (action <= 1 && sent < MESSAGES) {
      sent += 1;
      const id = sent;
      void ws.sendAcked(`${id} x`).then(() => acknowledged.push(id));
    } else if (action <= 3) {
      store.receive();
    } else if (action <= 5) {
      const message = store.toClient.shift();
      if (message !== undefined) {
        socket?.message(message);
      }
    } else if (ws.state.kind === "waiting") {
      await clock.advance(5);
    } else if (ws.state.kind === "connecting") {
      socket?.open();
    } else if (action === 7) {
      store.kill();
      socket?.lose();
      kills += 1;
    }
    assert.ok(ws.unacked.length <= 4);
  };
  for (let n = 0; n < 100; n += 1) {
    await step(choose(n));
  }
  for (let n = 0; acknowledged.length < MESSAGES; n += 1) {
    assert.ok(n < 1_000, `${acknowledged} of ${sent}: ${ws.state.kind}`);
    await step(n % 7);
    await settled();
  }
  const all = Array.from({ length: MESSAGES }, (_, n) => n + 1);
  assert.deepEqual([store.stored, acknowledged, ws.unacked], [all, all, []]);
  await ws.flushed();
  ws.close();
  return { kills, twice: store.arrived.length - store.stored.length };
}

test("nothing is lost, doubled or out of order over random kills, for 1,000 seeds", async () => {
  let [kills, twice] = [0, 0];
  for (let seed = 0n; seed < 1_000n; seed += 1n) {
    const word = seed % 2n === 0n ? "ack" : "one";
    const seen = await run(word, (step) => Number(ownDraw(seed, BigInt(step)) % 8n));
    kills += seen.kills;
    twice += seen.twice;
  }
  // The test must meet what it is about: messages that arrived, and whose acknowledgement was lost.
  assert.ok(kills > 4_000 && twice > 1_000, `${kills} kills, ${twice} duplicates`);
});

test("nothing is lost, doubled or out of order after a kill at any point", async () => {
  const course = [6, 0, 2, 0, 4, 1, 3, 6, 0, 5, 2];
  for (let at = 0; at < 60; at += 1) {
    for (const word of ["ack", "one"]) {
      const { kills } = await run(word, (step) => (step === at ? 7 : course[step % course.length] ?? 6));
      assert.ok(kills <= 1, `${at}`);
    }
  }
});

test("exactly the unacknowledged messages are sent again, in order and before anything else", async () => {
  const given = client();
  given.ws.onopen = () => given.ws.sendOnce("hello");
  given.last().open();
  for (const message of ["1 a", "2 b", "3 c", "4 d"]) {
    given.ws.send(message);
  }
  given.last().message("one 2");
  given.last().lose();
  given.ws.send("5 e");
  given.ws.sendOnce("plain");
  assert.deepEqual([given.last().sent.length, given.ws.bufferedAmount], [5, (4 * 3 + 5) * 2]);
  await given.reopen();
  assert.deepEqual(given.last().sent, ["1 a", "3 c", "4 d", "5 e", "hello", "plain"]);
  given.last().message("ack 4");
  assert.deepEqual([given.ws.unacked, given.received], [["5 e"], []]);
});

test("only messages that have been sent can be acknowledged", () => {
  const given = client();
  given.ws.send("1 a");
  given.ws.acknowledge({ upTo: 9 });
  given.ws.acknowledge({ one: 1 });
  assert.deepEqual(given.ws.unacked, ["1 a"]);
  given.last().open();
  for (const absurd of ["ack NaN", "one 2", "ack -1", "ack", "", "one Infinity"]) {
    given.last().message(absurd);
  }
  assert.deepEqual([given.ws.unacked, given.received], [["1 a"], [""]]);
  given.ws.acknowledge({ upTo: 9 });
  assert.deepEqual(given.ws.unacked, []);
});

test("the window is bounded in messages and in bytes, and messages that wait are not overtaken", async () => {
  const given = client({ window: 2, maxBytes: 100 });
  given.last().open();
  given.ws.send("1");
  given.ws.send("2");
  const isKind = (kind: string) => (error: unknown) => error instanceof SendError && error.kind === kind;
  assert.throws(() => given.ws.send("3"), isKind("full"));
  const accepted: number[] = [];
  for (const id of [3, 4, 5]) {
    void given.ws.sendWhenRoom(String(id)).then(() => accepted.push(id));
  }
  given.last().message("one 1");
  assert.throws(() => given.ws.send("6"), isKind("full"));
  await settled();
  assert.deepEqual([accepted, given.ws.unacked], [[3], ["2", "3"]]);
  given.last().message("ack 3");
  await settled();
  assert.deepEqual([accepted, given.last().sent], [[3, 4, 5], ["1", "2", "3", "4", "5"]]);
  given.last().message("ack 5");
  assert.throws(() => given.ws.send(`6 ${"x".repeat(50)}`), isKind("too-long"));
  given.ws.send(`6 ${"x".repeat(40)}`);
  assert.throws(() => given.ws.send(`7 ${"x".repeat(40)}`), isKind("full"));
  const long = given.ws.sendWhenRoom(`7 ${"x".repeat(40)}`);
  // There is room for it, but not before the one that waits.
  assert.throws(() => given.ws.send("8"), isKind("full"));
  given.last().message("ack 6");
  await long;
  given.last().message("ack 7");
  given.ws.send(`8 ${"x".repeat(40)}`);
});

test("close and an aborted signal settle every promise, and say which messages may have arrived", async () => {
  for (const end of ["close", "abort"] as const) {
    const controller = new AbortController();
    const given = client({ window: 2 }, { signal: controller.signal });
    given.last().open();
    const outcomes = ["1 a", "2 b", "3 c"].map((message) => given.ws.sendAcked(message).catch((error: unknown) => error));
    const flushed = given.ws.flushed().catch((error: unknown) => error);
    given.last().lose();
    given.last().message("late");
    given.ws.acknowledge({ one: 1 });
    if (end === "close") {
      given.ws.close();
    } else {
      controller.abort();
    }
    const [first, second, third] = await Promise.all(outcomes);
    assert.equal(first, undefined);
    assert.ok(second instanceof NotAcknowledgedError && second.wasSent, String(second));
    assert.match(second.message, /was sent and may have arrived/);
    // It got the room of the first.
    assert.ok(third instanceof NotAcknowledgedError && !third.wasSent, String(third));
    const kind = (error: unknown) => error instanceof SendError && error.kind;
    assert.equal(kind(await flushed), "closed");
    assert.deepEqual(given.ws.unacked, ["2 b", "3 c"]);
    assert.equal(kind(await given.ws.sendAcked("4 d").catch((error: unknown) => error)), "closed");
    assert.equal(kind(await given.ws.flushed().catch((error: unknown) => error)), "closed");
    assert.throws(() => given.ws.send("4 d"), (error) => kind(error) === "closed");
  }
});

test("a message that still waits for room when the client is closed was not accepted", async () => {
  const given = client({ window: 1 });
  given.ws.send("1 a");
  const waiting = given.ws.sendAcked("2 b");
  const failed = assert.rejects(waiting, (error) => error instanceof SendError && error.kind === "closed");
  given.ws.close();
  await failed;
  assert.deepEqual(given.ws.unacked, ["1 a"]);
});

test("after giving up the window is unchanged, and reconnectNow sends it again", async () => {
  const given = client({ window: 1 });
  given.last().open();
  const delivered = given.ws.sendAcked("1 a");
  const waiting = given.ws.sendWhenRoom("2 b");
  const flushed = given.ws.flushed();
  const gaveUp = (error: unknown) => error instanceof SendError && error.kind === "gave-up";
  const failed = Promise.all([assert.rejects(waiting, gaveUp), assert.rejects(flushed, gaveUp)]);
  given.last().lose(1008);
  await failed;
  assert.throws(() => given.ws.send("3 c"), gaveUp);
  await assert.rejects(given.ws.flushed(), gaveUp);
  given.ws.reconnectNow();
  given.last().open();
  given.last().message("ack 1");
  await delivered;
  assert.deepEqual([given.last().sent, given.ws.unacked], [["1 a"], []]);
});

test("a connection whose server does not acknowledge in time is lost", async () => {
  const given = client({ ackTimeoutMs: 5_000 });
  given.last().open();
  await given.clock.advance(60_000);
  given.ws.send("1 a");
  await given.clock.advance(3_000);
  given.ws.send("2 b");
  given.last().message("one 1");
  await given.clock.advance(4_999);
  assert.equal(given.ws.state.kind, "open");
  const reasons: string[] = [];
  given.ws.addEventListener("close", ({ reason }) => reasons.push(reason));
  await given.clock.advance(1);
  assert.deepEqual([given.ws.state.kind, reasons], ["waiting", ["no acknowledgement for 5000 ms"]]);
  assert.ok(given.sockets[0]?.closedBy);
  await given.reopen();
  assert.deepEqual(given.last().sent, ["2 b"]);
  // The time counts from the second connection.
  given.last().message("ack 2");
  await given.clock.advance(60_000);
  assert.deepEqual([given.ws.state.kind, given.clock.timers.size], ["open", 0]);
});

test("in a hidden page, whose timers are always late, the time is granted only once more", async () => {
  const given = client({ ackTimeoutMs: 5_000 });
  given.last().open();
  given.ws.send("1 a");
  for (const state of ["open", "waiting"]) {
    given.clock.freeze(5_000 + 55_000);
    await given.clock.advance(0);
    assert.equal(given.ws.state.kind, state);
  }
});

test("a connection that was replaced is neither written to nor missed when it ends late", async () => {
  const given = client();
  const first = given.last();
  const end = first.onclose as unknown as (event: unknown) => void;
  first.open();
  given.ws.reconnectNow();
  given.ws.send("1 a");
  given.last().open();
  end({ code: 1000, reason: "", wasClean: true });
  given.ws.send("2 b");
  assert.deepEqual([first.sent, given.last().sent], [[], ["1 a", "2 b"]]);
});

test("a page that was frozen gets the time of the acknowledgement once more", async () => {
  for (const stop of ["freeze", "sleep"] as const) {
    const given = client({ ackTimeoutMs: 5_000 });
    given.last().open();
    given.ws.send("1 a");
    given.clock[stop](3_600_000);
    await given.clock.advance(stop === "freeze" ? 0 : 5_000);
    assert.equal(given.ws.state.kind, "open");
    given.ws.send("2 b");
    await given.clock.advance(4_999);
    assert.equal(given.ws.state.kind, "open");
    await given.clock.advance(1);
    assert.equal(given.ws.state.kind, "waiting", stop);
  }
});

test("a message that no connection can send is dropped, and those behind it are sent", async () => {
  class Picky extends FakeSocket {
    override send(data: unknown): void {
      if (String(data).includes("bad")) {
        throw new TypeError("cannot be sent");
      }
      super.send(data);
    }
  }
  const sockets: Picky[] = [];
  const Recorded = class extends Picky {
    constructor(url: string) {
      super(url);
      sockets.push(this);
    }
  };
  const given = client({ window: 2 }, { WebSocket: Recorded });
  const errors: unknown[] = [];
  given.ws.addEventListener("error", (event) => errors.push(event instanceof ConnectionErrorEvent && event.error));
  const bad = given.ws.sendAcked("1 bad");
  const refused = assert.rejects(bad, (error) => error instanceof TypeError);
  given.ws.send("2 b");
  void given.ws.sendAcked("3 c");
  sockets[0]?.open();
  await refused;
  assert.deepEqual([sockets[0]?.sent, given.ws.unacked, errors.length], [["2 b", "3 c"], ["2 b", "3 c"], 1]);
});

test("a function of the application that throws loses no message, and ends nothing", () => {
  const given = client({
    ack: (data) => {
      throw new Error(`cannot read ${String(data)}`);
    },
  });
  const errors: string[] = [];
  given.ws.addEventListener("error", (event) => errors.push(String((event as ConnectionErrorEvent).error)));
  given.last().open();
  given.last().message("news");
  assert.deepEqual([given.received, errors], [["news"], ["Error: cannot read news"]]);
  assert.throws(() => client({ id: () => { throw new RangeError("no id"); } }).ws.send("x"), (error) => error instanceof RangeError);
});

test("what the application does to a buffer after sending it is not sent again", async () => {
  const given = client({ id: (message: Message) => (message as Uint8Array)[0] ?? 0 });
  given.last().open();
  const bytes = Uint8Array.from([9, 1, 2, 9]);
  given.ws.send(bytes.subarray(1, 3));
  bytes.fill(7);
  await given.reopen();
  assert.deepEqual(given.last().sent, [Uint8Array.from([1, 2])]);
});

test("acknowledgements are delivered, too, if the application asks for it", () => {
  const given = client({ delivery: "pass-through" });
  given.last().open();
  given.ws.send("1 a");
  given.last().message("ack 1");
  assert.deepEqual([given.received, given.ws.unacked], [["ack 1"], []]);
});

test("a connection that was given up before it opened is not written to", async () => {
  const given = client({}, { connectTimeoutMs: 1_000 });
  given.ws.send("1 a");
  await given.clock.advance(1_000);
  const first = given.last();
  first.open();
  await given.reopen();
  assert.deepEqual([first.sent, given.last().sent], [[], ["1 a"]]);
  assert.equal(given.ws.bufferedAmount, 0);
});
