'use strict';
// Writes every message to a file, echoes it, and closes on request.

const { appendFileSync } = require('fs');
const { WebSocketServer } = require('ws');

const note = (line) => appendFileSync(process.env.NOTES, line + '\n');
const address = { host: '127.0.0.1', port: Number(process.env.PORT) };

new WebSocketServer(address, () => console.log('listening')).on('connection', (socket) => {
  note('open');
  socket.on('message', (data) => {
    const text = data.toString();
    note(text);
    const [word, code, ...reason] = text.split(' ');
    if (word === 'leave') socket.close(Number(code), reason.join(' '));
    else socket.send(text);
  });
});
