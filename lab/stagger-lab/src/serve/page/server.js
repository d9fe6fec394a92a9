// Requests to the server of this page.

/** Sends a question and returns the response, or throws an error with the server's sentence. */
export async function ask(path, question, signal) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(question),
    signal,
  });
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  throw new Error(answer.error ?? `the server answered with status ${response.status}`);
}

/** Returns the presets. */
export async function presets() {
  return (await fetch("/api/presets")).json();
}

/** Sends a question whose answer is a stream of events, and calls `on[name](data)` for each. Throws if it fails. */
export async function stream(path, question, signal, on) {
  const response = await ask(path, question, signal);
  let isDone = false;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new Parser((name, data) => {
    if (name === "failed") throw new Error(data.error);
    if (name === "done") isDone = true;
    on[name]?.(data);
  });
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    parser.push(value);
  }
  if (!isDone) throw new Error("the server has gone; start stagger serve again");
}

/** Server-sent events, in pieces of any size. */
export class Parser {
  constructor(onEvent) {
    this.onEvent = onEvent;
    this.rest = "";
  }

  push(text) {
    const events = (this.rest + text).split("\n\n");
    this.rest = events.pop();
    for (const event of events) {
      let name = "message";
      const data = [];
      for (const line of event.split("\n")) {
        if (line.startsWith("event:")) name = line.slice(6).trim();
        if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
      }
      if (data.length > 0) this.onEvent(name, JSON.parse(data.join("\n")));
    }
  }
}
