// The WebSocket of partysocket as it is shipped.
import ReconnectingWebSocket from "partysocket/ws";
import { WebSocket } from "ws";
import { start, url } from "./drill.mjs";

await start(() => new ReconnectingWebSocket(url, [], { WebSocket }));
