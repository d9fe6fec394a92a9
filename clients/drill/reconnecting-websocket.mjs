// reconnecting-websocket as it is shipped.
import ReconnectingWebSocket from "reconnecting-websocket";
import { WebSocket } from "ws";
import { start, url } from "./drill.mjs";

await start(() => {
  // The package draws its first delay when it is loaded, once for each page. Here, all clients are in one process.
  const minReconnectionDelay = 1000 + Math.random() * 4000;
  new ReconnectingWebSocket(url, [], { WebSocket, minReconnectionDelay });
});
