// A client that sends numbered messages, and receives what the server has stored, while the server is killed.
import { setTimeout as delay } from "node:timers/promises";
import { follow } from "./feed.mjs";

const { CLIENT, ADDRESS, MESSAGES } = process.env;
const messages = Number(MESSAGES);
const { ws, record, send } = follow(await import(CLIENT), `ws://${ADDRESS}/feed`, 30);
await send(messages);
while (record.received.length < messages || record.pongs < 3) {
  await delay(2);
}
ws.close();
console.log(JSON.stringify({ ...record, left: ws.unacked.length }));
