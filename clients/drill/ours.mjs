// Our own client, with the policy and the seed of the drill, so that it draws the delays of the simulation.
// Compile it first: `cargo xtask ci --only packages --only js`.
import { ownDraw, parsePolicy, ReconnectingWebSocket, seedForCall } from "../js/dist/index.js";
import { policy, seed, start, url } from "./drill.mjs";

// The platform's WebSocket, or without one (Node before version 22), that of the package `ws`.
const WebSocket = globalThis.WebSocket ?? (await import("ws")).WebSocket;
const settings = parsePolicy(policy);
// Client number `id` has the same seed in the simulation.
const own = seedForCall(seed, 0n);
await start((id) => {
  new ReconnectingWebSocket(url, undefined, { policy: settings, seed: ownDraw(own, BigInt(id)), WebSocket });
});
