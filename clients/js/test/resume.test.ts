import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AckedWebSocket,
  type ConnectionCloseEvent,
  ConnectionErrorEvent,
  ownDraw,
  parsePolicy,
  ReconnectingWebSocket,
  type ReconnectingWebSocketOptions,
  type Resume,
  type ResumeOptions,
  type ResumeStatus,
  withHeartbeat,
  withResume,
} from "../src/index.js";
import { FakeSocket, recorder, VirtualClock } from "./virtual.js";

/** Tracks sequence numbers, which are asked for in the query. */
class Feed implements Resume {
  last = 0;
  readonly decided: boolean[] = [];
  readonly observed: unknown[] = [];

  onRequest(url: URL): void {
    url.searchParams.set("after", String(this.last));
  }

  onHandshakeMessage(data: unknown): ResumeStatus {
    switch (data) {
      case "resumed":
      case "fresh":
        return data;
      case "gone":
        this.last = 0;
        return "rejected";
      case "who":
        return { send: "me" };
      default:
        return "pending";
    }
  }

  onDecided(resumed: boolean): void {
    this.decided.push(resumed);
  }

  observe(data: unknown): void {
    this.observed.push(data);
    this.last = /^\d+$/.test(String(data)) ? Number(data) : this.last;
  }
}

function client(resume: Resume, options: ReconnectingWebSocketOptions = {}, limits: ResumeOptions = {}) {
  const clock = new VirtualClock();
  const { WebSocket, sockets } = recorder();
  const all = { clock, seed: 7n, ...options, WebSocket: withResume(resume, { WebSocket, ...limits }) };
  const ws = new ReconnectingWebSocket("wss://example/feed?x=1", undefined, all);
  const events: string[] = [];
  ws.addEventListener("open", () => events.push("open"));
  ws.addEventListener("message", ({ data }) => events.push(String(data)));
  ws.addEventListener("close", ({ code, reason }: ConnectionCloseEvent) => events.push(`${code} ${reason}`));
  ws.addEventListener("error", (event) => events.push(String((event as ConnectionErrorEvent).error)));
  const last = () => {
    const socket = sockets.at(-1);
    assert.ok(socket);
    return socket;
  };
  const next = async () => {
    await clock.advance(ws.state.kind === "waiting" ? ws.state.until - clock.now() : 0);
    return last();
  };
  return { ws, clock, sockets, events, last, next };
}

test("each attempt has the position, and the event open comes when the outcome is known", async () => {
  const feed = new Feed();
  const given = client(feed);
  given.last().open();
  given.ws.send("early");
  given.last().message("who");
  given.last().message("7");
  assert.deepEqual([given.ws.state.kind, given.events, given.last().sent], ["connecting", [], ["me"]]);
  given.last().message("fresh");
  given.last().message("8");
  assert.deepEqual(given.events, ["open", "who", "7", "fresh", "8"]);
  assert.deepEqual([given.last().sent, feed.decided], [["me", "early"], [false]]);
  given.last().lose();
  const second = await given.next();
  second.open();
  second.message("resumed");
  assert.deepEqual(feed.decided, [false, true]);
  assert.deepEqual(given.sockets.map(({ url }) => url), [
    "wss://example/feed?x=1&after=0",
    "wss://example/feed?x=1&after=8",
  ]);
  assert.equal(given.ws.url, "wss://example/feed?x=1");
});

test("the first message can be the client's", () => {
  const feed: Resume = {
    onUpgrade: (protocol) => ({ send: `from 4 ${protocol}` }),
    onHandshakeMessage: () => "resumed",
    observe: () => {},
  };
  const given = client(feed);
  given.last().protocol = "v1";
  given.last().open();
  assert.deepEqual([given.last().sent, given.events], [["from 4 v1"], []]);
  given.last().message("ok");
  assert.deepEqual(given.events, ["open", "ok"]);
});

test("a rejected position is discarded, and the client returns after spread and backoff", async () => {
  const waits: number[] = [];
  for (let seed = 0n; seed < 50n; seed += 1n) {
    const feed = new Feed();
    feed.last = 9;
    const given = client(feed, { seed });
    await given.clock.advance(9_999);
    given.last().open();
    given.last().message("gone");
    assert.deepEqual(given.events, ["1006 the server rejected the position"]);
    assert.ok(given.last().closedBy && given.ws.state.kind === "waiting");
    waits.push(given.ws.state.until - given.clock.now());
    assert.equal((await given.next()).url, "wss://example/feed?x=1&after=0");
    assert.deepEqual([feed.observed, feed.decided], [[], []]);
  }
  // The longer of the spread, up to 10 s, and the first backoff, from 7.5 to 15 s.
  assert.ok(Math.min(...waits) >= 7_500 && Math.max(...waits) <= 15_000);
});

test("a close during the negotiation has the meaning of its code", async () => {
  for (const [code, reason, want] of [
    [1008, "", "stopped"],
    [3000, "", "waiting"],
    [1013, '{"retry_after_ms":123000}', "waiting"],
  ] as const) {
    const asked: boolean[] = [];
    const { WebSocket, sockets } = recorder();
    const clock = new VirtualClock();
    const url = (attempt: { needsFreshCredentials: boolean }) => {
      asked.push(attempt.needsFreshCredentials);
      return "wss://example";
    };
    const ws = new ReconnectingWebSocket(url, undefined, { clock, seed: 7n, WebSocket: withResume(new Feed(), { WebSocket }) });
    sockets[0]?.open();
    sockets[0]?.lose(code, reason);
    assert.equal(ws.state.kind, want);
    const wait = ws.state.kind === "waiting" ? ws.state.until - clock.now() : 0;
    assert.equal(wait === 123_000, code === 1013);
    await clock.advance(wait);
    assert.deepEqual(asked, code === 1008 ? [false] : [false, code === 3000]);
  }
});

test("a negotiation, however long, proves no credentials", async () => {
  const { WebSocket, sockets } = recorder();
  const clock = new VirtualClock();
  const options = { clock, seed: 7n, connectTimeoutMs: 60_000, WebSocket: withResume(new Feed(), { WebSocket }) };
  const ws = new ReconnectingWebSocket("wss://example", undefined, options);
  for (const state of ["waiting", "stopped"]) {
    sockets.at(-1)?.open();
    await clock.advance(59_999);
    sockets.at(-1)?.lose(3000);
    assert.equal(ws.state.kind, state);
    await clock.advance(ws.state.kind === "waiting" ? ws.state.until - clock.now() : 0);
  }
});

test("a connection that is never negotiated is not healthy, however long it was open", async () => {
  let shortest = Infinity;
  for (let seed = 0n; seed < 100n; seed += 1n) {
    const given = client(new Feed(), { seed, connectTimeoutMs: 60_000 });
    given.last().open();
    await given.clock.advance(59_999);
    if (seed % 2n === 0n) {
      given.last().lose();
    } else {
      await given.clock.advance(1);
    }
    assert.ok(given.ws.state.kind === "waiting");
    shortest = Math.min(shortest, given.ws.state.until - given.clock.now());
  }
  assert.ok(shortest >= 7_500, `${shortest}`);
});

test("what arrives before the outcome is bounded in bytes and in number", () => {
  const big = client(new Feed(), {}, { maxBytes: 1_000 });
  big.last().open();
  big.last().message("x".repeat(500));
  assert.match(big.events[0] ?? "", /^1006 more than 1000 bytes .* raise maxBytes$/);
  const many = client(new Feed(), {}, { maxBytes: 1_000 });
  many.last().open();
  for (let n = 0; n < 16; n += 1) {
    assert.deepEqual(many.events, [], `${n}`);
    many.last().message("");
  }
  assert.equal(many.ws.state.kind, "waiting");
});

test("a function that throws ends the attempt, and while the connection is open it ends nothing", () => {
  const fail = (): never => {
    throw new Error("no");
  };
  for (const broken of [{ onUpgrade: fail }, { onHandshakeMessage: fail }]) {
    const given = client(Object.assign(new Feed(), broken));
    given.last().open();
    given.last().message("1");
    assert.deepEqual(given.events, ["Error: no", "1006 the negotiation has failed: see the event error"]);
  }
  const given = client(Object.assign(new Feed(), { observe: fail, onDecided: fail }));
  given.last().open();
  given.last().message("resumed");
  assert.deepEqual(given.events, ["Error: no", "open", "Error: no", "resumed"]);
  const request = client(Object.assign(new Feed(), { onRequest: fail }));
  assert.deepEqual([request.ws.state.kind, request.sockets.length], ["waiting", 0]);
});

test("what the page does not receive any more does not advance the position", () => {
  for (const end of ["close", "reconnectNow"] as const) {
    const feed = new Feed();
    const given = client(feed);
    const first = given.last();
    const late = first.onmessage as unknown as (event: unknown) => void;
    first.open();
    given.ws.onopen = () => given.ws[end]();
    first.message("7");
    first.message("resumed");
    late({ data: "8" });
    if (end === "reconnectNow") {
      assert.deepEqual([feed.observed, given.last().url], [[], "wss://example/feed?x=1&after=0"]);
    } else {
      // A connection that is being closed still receives.
      assert.deepEqual([feed.observed, given.events], [["7", "resumed", "8"], ["open", "7", "resumed", "8"]]);
    }
  }
});

test("an error of the application during the negotiation does not end the attempt", async () => {
  const { WebSocket, sockets } = recorder();
  const clock = new VirtualClock();
  const message = () => {
    throw new Error("no beat");
  };
  const beating = withHeartbeat({ message, intervalMs: 1_000, clock, WebSocket });
  const options = { clock, WebSocket: withResume(new Feed(), { WebSocket: beating }) };
  const ws = new ReconnectingWebSocket("wss://example", undefined, options);
  const errors: string[] = [];
  ws.addEventListener("error", (event) => errors.push(String((event as ConnectionErrorEvent).error)));
  sockets[0]?.open();
  await clock.advance(1_500);
  sockets[0]?.message("resumed");
  assert.deepEqual([errors, ws.state.kind, sockets.length], [["Error: no beat"], "open", 1]);
});

test("below another layer, too, a replaced connection does not advance the position", () => {
  const { WebSocket, sockets } = recorder();
  const [acks, feed] = [{ id: (message: unknown) => Number(message), ack: () => undefined }, new Feed()];
  const options = { acks, clock: new VirtualClock(), WebSocket: withResume(feed, { WebSocket }) };
  const ws = new AckedWebSocket("wss://example", undefined, options);
  sockets[0]?.open();
  sockets[0]?.message("fresh");
  ws.reconnectNow();
  sockets[0]?.message("8");
  assert.deepEqual(feed.observed, ["fresh"]);
});

test("acknowledged messages are sent when the outcome is known", () => {
  const { WebSocket, sockets } = recorder();
  const acks = { id: (message: unknown) => Number(message), ack: () => undefined };
  const options = { acks, clock: new VirtualClock(), WebSocket: withResume(new Feed(), { WebSocket }) };
  const ws = new AckedWebSocket("wss://example", undefined, options);
  ws.send("1");
  sockets[0]?.open();
  sockets[0]?.message("who");
  assert.deepEqual(sockets[0]?.sent, ["me"]);
  sockets[0]?.message("resumed");
  assert.deepEqual(sockets[0]?.sent, ["me", "1"]);
});

test("acknowledgements that arrive during the negotiation count before anything is sent again", async () => {
  const { WebSocket, sockets } = recorder();
  const acks = {
    id: (message: unknown) => Number(message),
    ack: (data: unknown) => (String(data).startsWith("ack ") ? { upTo: Number(String(data).slice(4)) } : undefined),
  };
  const [clock, feed] = [new VirtualClock(), new Feed()];
  const ws = new AckedWebSocket("wss://example", undefined, { acks, clock, WebSocket: withResume(feed, { WebSocket }) });
  const received: unknown[] = [];
  ws.addEventListener("message", ({ data }) => received.push(data));
  sockets[0]?.open();
  sockets[0]?.message("fresh");
  ws.send("1");
  ws.send("2");
  sockets[0]?.lose();
  assert.ok(ws.state.kind === "waiting");
  await clock.advance(ws.state.until - clock.now());
  sockets[1]?.open();
  sockets[1]?.message("ack 1");
  sockets[1]?.message("resumed");
  assert.deepEqual([sockets[1]?.sent, received], [["2"], ["fresh", "resumed"]]);
});

/** A feed of numbered messages: each connection gets what follows its position, in order, as long as it is not killed. */
class Numbers extends FakeSocket {
  /** The next message under way to the client: 0 is the answer to the position. */
  next = 0;

  get after(): number {
    return Number(new URL(this.url).searchParams.get("after"));
  }

  deliver(newest: number): void {
    const number = this.after + this.next;
    if (this.next > 0 && number > newest) {
      return;
    }
    this.message(this.next === 0 ? (this.after === 0 ? "fresh" : "resumed") : String(number));
    this.next += 1;
  }
}

test("the page receives every message once and in order over random kills, for 1,000 seeds", async () => {
  let [kills, resumed] = [0, 0];
  for (let seed = 0n; seed < 1_000n; seed += 1n) {
    const [feed, clock, sockets] = [new Feed(), new VirtualClock(), [] as Numbers[]];
    const WebSocket = class extends Numbers {
      constructor(url: string) {
        super(url);
        sockets.push(this);
      }
    };
    const policy = parsePolicy("constant base=5ms jitter=none max-attempts=inf");
    const ws = new ReconnectingWebSocket("wss://example", undefined, { clock, policy, seed, WebSocket: withResume(feed, { WebSocket }) });
    const received: number[] = [];
    ws.addEventListener("message", ({ data }) => (/\d/.test(String(data)) ? received.push(Number(data)) : undefined));
    let newest = 0;
    for (let n = 0; n < 60 || received.length < newest; n += 1) {
      assert.ok(n < 500);
      // After 60 events, nothing is killed, and nothing new is published.
      const action = n < 60 ? Number(ownDraw(seed, BigInt(n)) % 8n) : n % 2;
      const socket = sockets.at(-1);
      if (ws.state.kind === "waiting") {
        await clock.advance(5);
      } else if (socket && !socket.sent.includes("opened")) {
        socket.sent.push("opened");
        socket.open();
      } else if (action <= 4) {
        socket?.deliver(newest);
      } else if (action <= 6) {
        newest += 1;
      } else {
        socket?.lose();
        kills += 1;
      }
    }
    assert.deepEqual(received, Array.from({ length: newest }, (_, n) => n + 1));
    resumed += feed.decided.filter((is) => is).length;
    ws.close();
  }
  assert.ok(kills > 2_000 && resumed > 1_000, `${kills} kills, ${resumed} times resumed`);
});
