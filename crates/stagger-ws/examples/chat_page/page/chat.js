import { ReconnectingWebSocket, SendError } from "./client/index.js";

const element = (id) => document.getElementById(id);
/** The run of the server, and the last line that it has sent. */
let known = {};

const room = () => {
  const url = new URL("room", location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.search = new URLSearchParams(known).toString();
  return url;
};
// A function, so that each attempt names the last line.
const ws = new ReconnectingWebSocket(room);
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
  const lines = element("lines");
  const isAtEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40;
  lines.append(line);
  if (isAtEnd) {
    lines.scrollTop = lines.scrollHeight;
  }
});
ws.addEventListener("close", (event) => (lastClose = event));
ws.addEventListener("statechange", show);
element("now").addEventListener("click", () => {
  ws.reconnectNow();
  element("text").focus();
});

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
      return `The chat does not reconnect by itself (${state.reason}).`;
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

function announce(text) {
  if (element("announcement").textContent !== text) {
    element("announcement").textContent = text;
  }
}

function tick() {
  const { state } = ws;
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
    ws.send(JSON.stringify({ name: name.value, text: text.value }));
    localStorage.setItem("name", name.value);
    text.value = "";
    text.setCustomValidity("");
  } catch (error) {
    if (!(error instanceof SendError)) {
      throw error;
    }
    text.setCustomValidity(error.message);
    text.reportValidity();
  }
});
element("text").addEventListener("input", ({ target }) => target.setCustomValidity(""));
