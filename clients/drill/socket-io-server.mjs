// A server for socket-io.mjs, at the port that the drill selects.
import { Server } from "socket.io";

new Server({ transports: ["websocket"] }).listen(Number(process.env.PORT), { host: "127.0.0.1" });
