'use strict';
// Sends numbered events, continues after `Last-Event-ID`, and breaks each connection in the middle of an event.

const { appendFileSync } = require('fs');
const { createServer } = require('http');

const { PORT, NOTES, LAST, RETRY_MS } = process.env;

createServer((request, response) => {
  const after = request.headers['last-event-id'];
  appendFileSync(NOTES, `${request.method} ${after ?? 'none'}\n`);
  let number = Number(after ?? 0);
  if (number >= Number(LAST)) return response.writeHead(204).end();
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  response.write(`\uFEFFretry: ${RETRY_MS}\r\n\r\n: hello\r`);
  for (let sent = 0; sent < 3; sent += 1) {
    number += 1;
    response.write(`\nid: ${number}\r`);
    response.write(`\ndata: number\ndata: ${number}\r\n\r`);
  }
  // Nobody may see this one, nor its id.
  response.write(`\nid: ${number + 100}\ndata: broken`, () => request.socket.destroy());
}).listen(Number(PORT), '127.0.0.1', () => console.log('listening'));
