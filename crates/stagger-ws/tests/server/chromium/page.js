import * as stagger from "./client.js";
import { follow } from "./feed.js";

globalThis.violations = [];
document.addEventListener("securitypolicyviolation", ({ blockedURI, effectiveDirective }) => {
  violations.push(blockedURI === "eval" ? blockedURI : effectiveDirective);
});
try {
  new Function("");
} catch {
  globalThis.isEvalBlocked = true;
}

globalThis.stagger = stagger;

/** Opens a connection that is kept up, and keeps a record of it. Times are of `performance.now()`. */
globalThis.connect = (url, policy, protocols, acks) => {
  const record = { attempts: [], opened: [], closed: [], controls: [], states: [], messages: 0, errors: 0, open: 0, mostOpen: 0 };
  class Recorded extends WebSocket {
    constructor(...address) {
      record.attempts.push(performance.now());
      super(...address);
      this.addEventListener("open", () => {
        record.open += 1;
        record.mostOpen = Math.max(record.mostOpen, record.open);
        this.addEventListener("close", () => (record.open -= 1));
      });
    }
  }
  const Client = acks ? stagger.AckedWebSocket : stagger.ReconnectingWebSocket;
  const ws = new Client(url, protocols, { policy: stagger.parsePolicy(policy), WebSocket: Recorded, acks });
  ws.addEventListener("open", () => record.opened.push(performance.now()));
  ws.addEventListener("message", () => (record.messages += 1));
  ws.addEventListener("error", () => (record.errors += 1));
  ws.addEventListener("statechange", () => record.states.push(ws.state.kind));
  ws.addEventListener("close", ({ code, reason, retryInMs }) => {
    const at = performance.now();
    record.closed.push({ at, code, reason, retryInMs });
    if (retryInMs !== undefined) {
      // A timer without the client, one tick later: a page fires its timers in the order of their times, however busy it is.
      setTimeout(() => record.controls.push(performance.now()), retryInMs + 4);
    }
  });
  return { ws, record };
};

/** Opens a connection that sends 1, 2, 3 and so on until `stop`, which returns the last when the server has acknowledged it. */
globalThis.count = (url, policy) => {
  const ack = (data) => (String(data).startsWith("ack ") ? { upTo: Number(data.slice(4)) } : undefined);
  const connection = connect(url, policy, undefined, { id: Number, ack, window: 16 });
  let [last, isStopped] = [0, false];
  const send = async () => {
    while (!isStopped) {
      await connection.ws.sendWhenRoom(`${last + 1}`);
      last += 1;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const sending = send();
  const stop = async () => {
    isStopped = true;
    await sending;
    await connection.ws.flushed();
    return last;
  };
  return { ...connection, stop };
};

/** Sends to and receives from the server of `javascript/mod.rs` until `stop`, which returns the number of messages. */
globalThis.feed = (url, heartbeatMs) => {
  const feed = follow(stagger, url, heartbeatMs);
  let isStopped = false;
  const sending = feed.send(Infinity, () => isStopped);
  const stop = () => {
    isStopped = true;
    return sending;
  };
  return { ...feed, stop };
};
globalThis.isReady = true;
