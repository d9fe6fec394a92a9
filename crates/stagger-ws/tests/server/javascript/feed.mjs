/**
 * Sends numbered messages to the server of this directory, and receives what it has stored, from the last one received on. The
 * first parameter is the package.
 */
export const follow = ({ AckedWebSocket, parsePolicy, withHeartbeat, withResume }, url, heartbeatMs) => {
  const record = { last: 0, received: [], opened: 0, resumed: 0, pongs: 0, closed: [] };
  const feed = {
    onRequest: (url) => url.searchParams.set("after", record.last),
    onHandshakeMessage: (data) => data,
    onDecided: (isResumed) => (record.resumed += isResumed ? 1 : 0),
    observe: (data) => (record.last = data.startsWith("say ") ? Number(data.slice(4)) : record.last),
  };
  const isReply = (data) => data === "pong" && (record.pongs += 1) > 0;
  const heartbeat = { message: "ping", isReply, intervalMs: heartbeatMs, timeoutMs: heartbeatMs };
  const acks = {
    id: Number,
    ack: (data) => (data.startsWith("ack ") ? { upTo: Number(data.slice(4)) } : undefined),
    window: 8,
  };
  const policy = parsePolicy("constant base=10ms jitter=full spread=10ms max-attempts=inf stable-after=0s");
  const WebSocket = withHeartbeat({ ...heartbeat, WebSocket: withResume(feed) });
  const ws = new AckedWebSocket(url, undefined, { acks, policy, WebSocket });
  ws.addEventListener("open", () => (record.opened += 1));
  ws.addEventListener("close", ({ code, reason }) => record.closed.push({ at: performance.now(), code, reason }));
  ws.addEventListener("message", ({ data }) => data.startsWith("say ") && record.received.push(Number(data.slice(4))));
  /** Sends the messages up to this number, one in two milliseconds, and waits until the server has acknowledged all. */
  const send = async (upTo, isStopped = () => false) => {
    const acknowledged = [];
    for (let id = 1; id <= upTo && !isStopped(); id += 1) {
      acknowledged.push(ws.sendAcked(String(id)));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    await Promise.all(acknowledged);
    await ws.flushed();
    return acknowledged.length;
  };
  return { ws, record, send };
};
