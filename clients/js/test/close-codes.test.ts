import assert from "node:assert/strict";
import { test } from "node:test";
import { closeAction, type CloseCodes, type Within } from "../src/close-codes.js";
import { centrifugo, ConnectionErrorEvent, discord, graphqlWs, pusher, ReconnectingWebSocket } from "../src/index.js";
import { recorder, VirtualClock } from "./virtual.js";
import { vectors } from "./vectors.js";

type Action = string | [number, number];
const { runs, reasons } = vectors<{ runs: [string, number, number, Action][]; reasons: [string, number, string, Action][] }>(
  "close-codes.json",
);
const PRESETS: Readonly<Record<string, CloseCodes | undefined>> = { rfc6455: {}, graphqlWs, centrifugo, pusher, discord };

function shown(action: string | Within): Action {
  return typeof action === "string" ? action : [Number(action.from / 1_000_000n), Number(action.to / 1_000_000n)];
}

test("every close code means in every preset what it means for stagger-ws", () => {
  let compared = 0;
  for (const [name, first, last, action] of runs) {
    for (let code = first; code <= last; code += 1) {
      assert.deepEqual(shown(closeAction(code, "", PRESETS[name])), action, `${name} ${code}`);
      compared += 1;
    }
  }
  assert.equal(compared, 5 * 4_000);
});

test("the reason of Centrifugo takes precedence over the code, as for stagger-ws", () => {
  for (const [name, code, reason, action] of reasons) {
    assert.deepEqual(shown(closeAction(code, reason, PRESETS[name])), action, `${code} ${reason}`);
  }
  assert.ok(reasons.length >= 30);
});

test("a function of the application decides, or leaves a code as it is registered", () => {
  const codes = (code: number) => (code === 4401 ? "fatal" : pusher(code));
  assert.deepEqual([closeAction(4401, "", codes), closeAction(4301, "", codes), closeAction(4100, "", codes)], [
    "fatal",
    "fatal",
    "reconnect",
  ]);
  assert.equal(closeAction(1008, "", codes), "fatal");
  // What is decided has not the registered wait.
  assert.equal(closeAction(1013, "", { 1013: "reconnect" }), "reconnect");
});

test("a function of the application that throws is reported, and the client reconnects", async () => {
  const clock = new VirtualClock();
  const { WebSocket, sockets } = recorder();
  const closeCodes = () => {
    throw new Error("no such code");
  };
  const ws = new ReconnectingWebSocket("wss://example", undefined, { clock, WebSocket, seed: 7n, closeCodes });
  const errors: string[] = [];
  ws.addEventListener("error", (event) => errors.push(String((event as ConnectionErrorEvent).error)));
  sockets[0]?.open();
  sockets[0]?.lose(1008);
  assert.deepEqual([ws.state.kind, errors], ["waiting", ["Error: no such code"]]);
  await clock.advance(15_000);
  assert.equal(sockets.length, 2);
});
