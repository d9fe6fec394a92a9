// Runs the package in a worker of this runtime, against a server that refuses the first request and ends the first connection.
// `cargo xtask js-runtimes` copies both files beside an installed package.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";

let requests = 0;
const server = createServer((_, response) => {
  requests += 1;
  response.writeHead(requests === 1 ? 503 : 200);
  response.end("done");
});
let connections = 0;
server.on("upgrade", ({ headers }, socket) => {
  connections += 1;
  socket.on("error", () => {});
  const accept = createHash("sha1").update(`${headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
  const head = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];
  socket.write([...head, `Sec-WebSocket-Accept: ${accept.digest("base64")}`, "", ""].join("\r\n"));
  if (connections === 1) {
    setTimeout(() => socket.destroy(), 20);
  } else {
    // A text frame without a mask.
    socket.write(Uint8Array.from([0x81, 2, 0x68, 0x69]));
  }
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

const file = new URL("worker.mjs", import.meta.url);
const said = new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error(`no answer after ${requests} requests and ${connections} connections`)), 20_000);
  const { port } = server.address();
  if (globalThis.process?.versions.bun || globalThis.Deno) {
    const worker = new Worker(file, { type: "module" });
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = reject;
    worker.postMessage(port);
  } else {
    import("node:worker_threads").then(({ Worker }) => {
      const worker = new Worker(file);
      worker.on("message", resolve).on("error", reject).postMessage(port);
    });
  }
});
assert.deepEqual([await said, requests, connections], [["done", "hi"], 2, 2]);
process.exit(0);
