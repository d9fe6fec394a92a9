// SignalR's client with automatic reconnect, over WebSocket without negotiation: an attempt is one connection. Needs
// signalr-server.mjs.
import { HttpTransportType, HubConnectionBuilder, LogLevel } from "@microsoft/signalr";
import { start, url } from "./drill.mjs";

await start((id) => {
  const connection = new HubConnectionBuilder()
    .withUrl(url.replace("ws:", "http:"), { transport: HttpTransportType.WebSockets, skipNegotiation: true })
    .withAutomaticReconnect()
    .configureLogging(LogLevel.None)
    .build();
  connection.start().catch((error) => {
    console.error(`client ${id}: ${error}`);
    process.exit(1);
  });
});
