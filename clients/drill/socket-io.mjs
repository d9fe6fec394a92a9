// socket.io's client as it is shipped, over WebSocket only: an attempt is one connection. Needs socket-io-server.mjs.
import { io } from "socket.io-client";
import { start, url } from "./drill.mjs";

await start(() => io(url, { transports: ["websocket"], forceNew: true }));
