// What runs in the worker of workers.mjs: a request that is refused once, and a connection that is lost once.
import { fetchRetry, parsePolicy, ReconnectingWebSocket } from "stagger-client";

// Node has its own workers; Deno and Bun have those of browsers.
const { parentPort } = globalThis.process?.versions.bun || globalThis.Deno ? {} : await import("node:worker_threads");
const say = parentPort ? (message) => parentPort.postMessage(message) : globalThis.postMessage;

const start = async (port) => {
  const policy = parsePolicy("constant base=10ms jitter=full max-attempts=3");
  const response = await fetchRetry(`http://127.0.0.1:${port}/`, {}, { policy });
  const body = await response.text();
  const ws = new ReconnectingWebSocket(`ws://127.0.0.1:${port}/`, undefined, { policy: parsePolicy("web-socket spread=50ms") });
  ws.addEventListener("message", ({ data }) => {
    ws.close();
    say([body, data]);
  });
};
if (parentPort) {
  parentPort.on("message", start);
} else {
  globalThis.onmessage = ({ data }) => start(data);
}
