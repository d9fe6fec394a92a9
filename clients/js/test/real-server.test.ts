import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer, type Upgraded } from "node:http";
import { test } from "node:test";
import { parsePolicy, ReconnectingWebSocket } from "../src/index.js";

/** Sends a frame without a mask, as servers do; the payload is short. */
function frame(socket: Upgraded, opcode: number, payload: Uint8Array): void {
  socket.write(Uint8Array.from([0x80 | opcode, payload.length, ...payload]));
}

/** Returns the payload of a short frame of a client. */
function unmasked(data: Uint8Array): Uint8Array {
  const mask = data.slice(2, 6);
  return data.slice(6, 6 + ((data[1] ?? 0) & 127)).map((byte, at) => byte ^ (mask[at % 4] ?? 0));
}

/** Accepts an upgrade. */
function accept(request: { headers: Record<string, string | undefined> }, socket: Upgraded): void {
  const hash = createHash("sha1");
  hash.update(new TextEncoder().encode(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`));
  const head = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];
  socket.write([...head, `Sec-WebSocket-Accept: ${hash.digest("base64")}`, "", ""].join("\r\n"));
}

/** Closes a connection with code 1013 and this reason. */
function closeWith(socket: Upgraded, reason: string): void {
  frame(socket, 8, Uint8Array.from([1013 >> 8, 1013 & 255, ...new TextEncoder().encode(reason)]));
  // The server ends the connection after the client's close frame: RFC 6455, section 7.1.1.
  socket.on("data", () => socket.end());
}

/** Starts a server that accepts every connection and hands it on, with its number from 1. */
async function serve(handle: (socket: Upgraded, n: number) => void) {
  const opened: number[] = [];
  const sockets: Upgraded[] = [];
  const server = createServer();
  server.on("upgrade", (request, socket) => {
    sockets.push(socket);
    accept(request, socket);
    handle(socket, opened.push(performance.now()));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = () => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  };
  return { url: `ws://127.0.0.1:${server.address().port}`, opened, stop };
}

test("a client comes back to a real server as the advice in its close frame says", async () => {
  const received: string[] = [];
  const { url, opened, stop } = await serve((socket, n) => {
    if (n === 1) {
      closeWith(socket, '{"retry_after_ms":200,"spread_ms":50}');
      return;
    }
    socket.on("data", (data) => {
      received.push(new TextDecoder().decode(unmasked(data)));
      frame(socket, 1, new TextEncoder().encode("welcome"));
    });
  });
  const policy = parsePolicy("web-socket spread=1s");
  const ws = new ReconnectingWebSocket(url, undefined, { policy, seed: 5n });
  const answer = await new Promise((resolve) => {
    ws.addEventListener("close", () => ws.send("hello"), { once: true });
    ws.addEventListener("message", (event) => resolve(event.data));
  });
  const apart = (opened[1] ?? 0) - (opened[0] ?? 0);
  ws.close();
  stop();
  assert.deepEqual([answer, received, opened.length], ["welcome", ["hello"], 2]);
  // The machine may be busy, but no client comes before its time.
  assert.ok(apart >= 200 && apart < 5_000, `${apart} ms`);
});

test("a real server that asks for the client back at once, again and again, gets no tight loop", async () => {
  const { url, opened, stop } = await serve((socket) => closeWith(socket, '{"retry_after_ms":0}'));
  const policy = parsePolicy("constant base=150ms jitter=none max-attempts=inf max-hint=inf");
  const ws = new ReconnectingWebSocket(url, undefined, { policy, seed: 5n });
  await new Promise<void>((resolve) => {
    ws.addEventListener("close", () => opened.length === 14 && resolve());
  });
  ws.close();
  stop();
  // Every fourth wait is that of the policy, however fast the machine and its sockets are.
  for (const n of [4, 8, 12]) {
    assert.ok((opened[n] ?? 0) - (opened[n - 1] ?? 0) >= 150, `${n}: ${opened.join()}`);
  }
});
