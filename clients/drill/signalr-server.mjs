// A server for signalr.mjs, at the port that the drill selects: ours, not Microsoft's. It has what a connection needs to live, the
// handshake and the pings of the JSON hub protocol, and no hub.
import { WebSocketServer } from "ws";

const [END, PING] = ["\x1e", '{"type":6}\x1e'];
/** Half of the time after which the client gives up a silent server. */
const PING_MS = 15_000;

const server = new WebSocketServer({ host: "127.0.0.1", port: Number(process.env.PORT), maxPayload: 64 * 1024 });
server.on("connection", (socket) => {
  let pings;
  socket.once("message", (data) => {
    const [record] = String(data).split(END);
    let error;
    try {
      const { protocol, version } = JSON.parse(record);
      error = protocol === "json" && version === 1 ? undefined : `protocol ${protocol} ${version} is not supported`;
    } catch (invalid) {
      error = String(invalid);
    }
    socket.send(JSON.stringify(error === undefined ? {} : { error }) + END);
    if (error === undefined) {
      pings = setInterval(() => socket.send(PING), PING_MS);
    } else {
      socket.close();
    }
  });
  socket.on("close", () => clearInterval(pings));
  socket.on("error", () => {});
});
