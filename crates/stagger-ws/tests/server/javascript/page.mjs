// A client that sends numbered messages, and receives what the server has stored, while the server is killed.
import { setTimeout as delay } from "node:timers/promises";

const { CLIENT, ADDRESS, MESSAGES } = process.env;
const { AckedWebSocket, parsePolicy, withHeartbeat, withResume } = await import(CLIENT);
const messages = Number(MESSAGES);

let [last, pongs, resumed] = [0, 0, 0];
const received = [];
const feed = {
  onRequest: (url) => url.searchParams.set("after", last),
  onHandshakeMessage: (data) => data,
  onDecided: (isResumed) => (resumed += isResumed ? 1 : 0),
  observe: (data) => (last = data.startsWith("say ") ? Number(data.slice(4)) : last),
};
const isReply = (data) => data === "pong" && (pongs += 1) > 0;
const heartbeat = { message: "ping", isReply, intervalMs: 30, timeoutMs: 30 };
const acks = {
  id: Number,
  ack: (data) => (data.startsWith("ack ") ? { upTo: Number(data.slice(4)) } : undefined),
  window: 8,
};
const policy = parsePolicy("constant base=10ms jitter=full spread=10ms max-attempts=inf stable-after=0s");
const WebSocket = withHeartbeat({ ...heartbeat, WebSocket: withResume(feed) });
const ws = new AckedWebSocket(`ws://${ADDRESS}/feed`, undefined, { acks, policy, WebSocket });
let opened = 0;
ws.addEventListener("open", () => (opened += 1));
ws.addEventListener("message", ({ data }) => data.startsWith("say ") && received.push(Number(data.slice(4))));

const acknowledged = [];
for (let id = 1; id <= messages; id += 1) {
  acknowledged.push(ws.sendAcked(String(id)));
  await delay(2);
}
await Promise.all(acknowledged);
await ws.flushed();
while (received.length < messages || pongs < 3) {
  await delay(2);
}
ws.close();
console.log(JSON.stringify({ received, opened, resumed, pongs, left: ws.unacked.length }));
