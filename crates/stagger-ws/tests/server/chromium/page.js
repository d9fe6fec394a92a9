import * as stagger from "./client.js";

globalThis.violations = [];
document.addEventListener("securitypolicyviolation", ({ blockedURI, effectiveDirective }) => {
  violations.push(blockedURI === "eval" ? blockedURI : effectiveDirective);
});
try {
  new Function("");
} catch {
  globalThis.isEvalBlocked = true;
}

/** Opens a connection that is kept up, and keeps a record of it. Times are of `performance.now()`. */
globalThis.connect = (url, policy, protocols) => {
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
  const ws = new stagger.ReconnectingWebSocket(url, protocols, { policy: stagger.parsePolicy(policy), WebSocket: Recorded });
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
globalThis.isReady = true;
