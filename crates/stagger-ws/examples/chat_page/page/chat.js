import { AckedWebSocket, SendError } from "./client/index.js";

const element = (id) => document.getElementById(id);
/** The run of the server, and the last line that it has sent. */
let known = {};

const room = () => {
  const url = new URL("room", location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.search = new URLSearchParams(known).toString();
  return url;
};
// The server recognizes by both what it has stored: a message is sent until it is acknowledged, so it may arrive twice.
const page = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
let sent = 0;
const acks = {
  id: (message) => JSON.parse(message).n,
  ack: (data) => {
    const { ack } = JSON.parse(data);
    return ack === undefined ? undefined : { upTo: ack };
  },
};
// A function, so that each attempt names the last line.
const ws = new AckedWebSocket(room, undefined, { acks });
let lastClose;

ws.addEventListener("message", ({ data }) => {
  const { run, id, name, text } = JSON.parse(data);
  if (run !== undefined) {
    known = run === known.run ? known : { run, after: 0 };
    return;
  }
  known.after = id;
  const line = document.createElement("p");
  line.append(Object.assign(document.createElement("b"), { textContent: name || "?" }), text);
  atEnd(() => element("lines").append(line));
});
ws.addEventListener("close", (event) => (lastClose = event));
ws.addEventListener("statechange", () => atEnd(show));
element("now").addEventListener("click", () => {
  ws.reconnectNow();
  element("text").focus();
});

/** Changes the page, and keeps the last line in view if it was. */
function atEnd(change) {
  const lines = element("lines");
  const isAtEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40;
  change();
  if (isAtEnd) {
    lines.scrollTop = lines.scrollHeight;
  }
}

/** Returns what is wrong in a state, or nothing. */
function trouble(state) {
  switch (state.kind) {
    case "waiting":
      if (lastClose?.code === 1013) {
        return "The server is busy and has set a time for you.";
      }
      return state.unreachable ? "The server has been unreachable for a while." : "The connection is lost.";
    case "offline":
      return "This device is offline. The chat connects when it is online again.";
    case "stopped":
      return state.reason === "permanent"
        ? "The server has closed the chat for good."
        : `The chat does not reconnect by itself (${state.reason}).`;
    default:
      return "";
  }
}

function secondsLeft(state) {
  return Math.max(0, Math.ceil((state.until - performance.now()) / 1000));
}

function show() {
  const { state } = ws;
  const message = trouble(state);
  if (message) {
    element("banner").hidden = false;
    element("trouble").textContent = message;
    element("status").textContent = "Not connected";
    announce(state.kind === "waiting" ? `${message} Next attempt in ${secondsLeft(state)} seconds.` : message);
  } else {
    // The banner stays during an attempt, so that the page does not jump.
    element("banner").hidden ||= state.kind === "open";
    element("status").textContent = state.kind === "open" ? "Connected" : "Connecting …";
    announce(element("status").textContent);
  }
  tick();
}

/** Changes a text that is read out, only if it is another. */
function announce(text, id = "announcement") {
  if (element(id).textContent !== text) {
    element(id).textContent = text;
  }
}

function tick() {
  const { state } = ws;
  const waiting = ws.unacked.length;
  const unsent = waiting === 1 ? "1 message waits to be sent." : `${waiting} messages wait to be sent.`;
  announce(waiting > 0 ? unsent : "", "unsent");
  let text = "";
  if (state.kind === "waiting") {
    text = `Next attempt in ${secondsLeft(state)}\u00a0s.`;
  } else if (state.kind === "connecting") {
    text = "Connecting …";
  }
  element("countdown").textContent = text;
}

setInterval(tick, 250);
show();

element("name").value = localStorage.getItem("name") ?? "";
element("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const [name, text] = [element("name"), element("text")];
  try {
    // Without a connection, the message waits.
    ws.send(JSON.stringify({ page, n: sent + 1, name: name.value, text: text.value }));
    sent += 1;
    tick();
    localStorage.setItem("name", name.value);
    text.value = "";
    text.setCustomValidity("");
  } catch (error) {
    if (!(error instanceof SendError)) {
      throw error;
    }
    const isFull = error.kind === "full";
    text.setCustomValidity(isFull ? "Too many messages wait. Send this one later." : "Connect first, and send it then.");
    text.reportValidity();
  }
});
element("text").addEventListener("input", ({ target }) => target.setCustomValidity(""));
