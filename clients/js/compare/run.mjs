// Compares the client with others, in virtual time, and measures the sizes that docs/guide/browsers.md names:
//
//   npm install --prefix DIRECTORY --ignore-scripts reconnecting-websocket@4.4.0 partysocket@1.3.0 cockatiel@3.2.1 \
//     p-retry@7.1.1 socket.io-client@4.8.4 @microsoft/signalr@10.0.11
//   npm run build && node compare/run.mjs DIRECTORY ESBUILD
//
// They are no dependencies of this package. ESBUILD is the program, by default `esbuild` in PATH.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

const [directory = ".", esbuild = "esbuild"] = process.argv.slice(2);
const modules = resolve(directory, "node_modules");
const ours = resolve(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "../dist/index.js");

/** Time that passes only in `advance`. */
const clock = { now: 0, timers: new Map(), next: 1 };
const settled = () => new Promise((done) => setImmediate(done));
globalThis.setTimeout = (callback, ms = 0, ...rest) => {
  const timer = clock.next++;
  clock.timers.set(timer, { at: clock.now + Math.max(0, ms), callback: () => callback(...rest) });
  return timer;
};
globalThis.clearTimeout = (timer) => clock.timers.delete(timer);
performance.now = () => clock.now;
Date.now = () => clock.now;

async function advance(ms) {
  const end = clock.now + ms;
  await settled();
  for (;;) {
    const due = [...clock.timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
    if (!due) {
      break;
    }
    clock.timers.delete(due[0]);
    clock.now = Math.max(clock.now, due[1].at);
    due[1].callback();
    await settled();
  }
  clock.now = end;
}

let sockets = [];
/** A connection that opens and ends when the statement says so. */
class Fake extends EventTarget {
  static CONNECTING = 0;
  static OPEN = 1;
  static CLOSING = 2;
  static CLOSED = 3;
  readyState = 0;
  bufferedAmount = 0;
  sent = [];
  constructor(url, protocols) {
    super();
    Object.assign(this, { url: String(url), protocols, at: clock.now });
    for (const type of ["open", "message", "error", "close"]) {
      this.addEventListener(type, (event) => this[`on${type}`]?.(event));
    }
    sockets.push(this);
  }
  open() {
    this.readyState = 1;
    this.dispatchEvent(new Event("open"));
  }
  end(code = 1006, reason = "") {
    this.readyState = 3;
    this.dispatchEvent(Object.assign(new Event("close"), { code, reason, wasClean: code !== 1006 }));
  }
  close() {
    this.readyState = 3;
  }
  send(message) {
    this.sent.push(message);
  }
}

const { default: Rws } = await import(pathToFileURL(join(modules, "reconnecting-websocket/dist/reconnecting-websocket.mjs")));
const { WebSocket: Party } = await import(pathToFileURL(join(modules, "partysocket/dist/index.js")));
const { ReconnectingWebSocket: Ours } = await import(pathToFileURL(ours));
const clients = {
  "stagger-client": (url, options = {}) => new Ours(url, undefined, { WebSocket: Fake, ...options }),
  "reconnecting-websocket": (url, options = {}) => new Rws(url, undefined, { WebSocket: Fake, ...options }),
  partysocket: (url, options = {}) => new Party(url, undefined, { WebSocket: Fake, ...options }),
};

/** Opens a client, and its first connection for so many milliseconds. */
async function opened(make, lived, options, url = "ws://example") {
  sockets = [];
  clock.timers.clear();
  const client = make(url, options);
  await advance(0);
  sockets.at(-1)?.open();
  await advance(lived);
  return client;
}

const stop = (client) => client.close();
/** Each returns what is to be said of a client. */
const statements = {
  "waits of 6 clients after the loss of a healthy connection, in ms": async (make) => {
    const waits = [];
    for (let n = 0; n < 6; n += 1) {
      const client = await opened(make, 60_000);
      const lost = clock.now;
      sockets.at(-1).end();
      await advance(120_000);
      waits.push(Math.round(sockets[1].at - lost));
      stop(client);
    }
    return waits.join(" ");
  },
  "attempts in 10 minutes of a server that accepts and closes at once": async (make) => {
    const client = await opened(make, 0);
    const begun = clock.now;
    let last;
    while (clock.now < begun + 600_000) {
      if (last !== sockets.at(-1)) {
        last = sockets.at(-1);
        if (last.readyState === 0) {
          last.open();
        }
        last.end();
      }
      await advance(50);
    }
    stop(client);
    return sockets.length;
  },
  "attempts in 10 minutes of a server that refuses": async (make) => {
    sockets = [];
    const client = make("ws://example");
    await advance(0);
    const begun = clock.now;
    let last;
    while (clock.now < begun + 600_000) {
      if (last !== sockets.at(-1)) {
        last = sockets.at(-1);
        last?.end();
      }
      await advance(50);
    }
    stop(client);
    return sockets.length;
  },
  "codes after which it reconnects, of 1000 1001 1006 1008 1011 1012 1013 4000": async (make) => {
    const codes = [];
    for (const code of [1000, 1001, 1006, 1008, 1011, 1012, 1013, 4000]) {
      const client = await opened(make, 60_000);
      sockets.at(-1).end(code);
      await advance(200_000);
      if (sockets.length > 1) {
        codes.push(code);
      }
      stop(client);
    }
    return codes.join(" ");
  },
  "wait after 1013 with {\"retry_after_ms\":60000}, in ms": async (make) => {
    const client = await opened(make, 60_000);
    const lost = clock.now;
    sockets.at(-1).end(1013, '{"retry_after_ms":60000}');
    await advance(200_000);
    stop(client);
    return Math.round(sockets[1].at - lost);
  },
  "goes on after a function for the address has failed once": async (make) => {
    let calls = 0;
    await opened(make, 0, {}, () => (++calls === 1 ? Promise.reject(new Error("no token")) : Promise.resolve("ws://example")));
    await advance(200_000);
    return sockets.length > 0;
  },
  "connects at once when it is told to during a wait": async (make) => {
    const client = await opened(make, 60_000);
    sockets.at(-1).end();
    await advance(10);
    (client.reconnectNow ?? client.reconnect).call(client);
    await advance(0);
    const count = sockets.length;
    stop(client);
    return count === 2;
  },
  "messages of 1,000 that wait without a connection, by default": async (make) => {
    sockets = [];
    const client = make("ws://example");
    await advance(0);
    for (let n = 0; n < 1_000; n += 1) {
      try {
        client.send(`${n}`);
      } catch {
        break;
      }
    }
    sockets.at(-1).open();
    await advance(0);
    stop(client);
    return sockets.at(-1).sent.length;
  },
  "attempts nothing while navigator.onLine is false": async (make) => {
    const network = Object.assign(new EventTarget(), { navigator: { onLine: false } });
    Object.defineProperty(globalThis, "navigator", { value: network.navigator, configurable: true });
    const client = await opened(make, 60_000, { network });
    const before = sockets.length;
    sockets.at(-1).end();
    await advance(40_000);
    stop(client);
    Object.defineProperty(globalThis, "navigator", { value: undefined, configurable: true });
    return sockets.length === before;
  },
  "clients of 20 that attempt within 100 ms after their page was frozen for an hour during a wait": async (make) => {
    const all = [];
    for (let n = 0; n < 20; n += 1) {
      const client = make("ws://example");
      await advance(0);
      all.push([client, sockets.at(-1)]);
    }
    all.forEach(([, socket]) => socket.open());
    await advance(60_000);
    all.forEach(([, socket]) => socket.end());
    await settled();
    sockets = [];
    // No timer fires meanwhile.
    clock.now += 3_600_000;
    const thawed = clock.now;
    await advance(30_000);
    all.forEach(([client]) => stop(client));
    return sockets.filter(({ at }) => at < thawed + 100).length;
  },
  "timers that are left after close() during a wait": async (make) => {
    const client = await opened(make, 60_000);
    sockets.at(-1).end();
    await advance(10);
    stop(client);
    await settled();
    return clock.timers.size;
  },
  "knows the time of its next attempt": async (make) => {
    const client = await opened(make, 60_000);
    sockets.at(-1).end();
    await advance(10);
    const known = client.state?.until !== undefined;
    stop(client);
    return known;
  },
};

process.on("unhandledRejection", () => {});
for (const [statement, run] of Object.entries(statements)) {
  console.log(`\n${statement}`);
  for (const [name, make] of Object.entries(clients)) {
    console.log(`  ${name.padEnd(24)}${await run(make)}`);
  }
}

const { default: pRetry } = await import(pathToFileURL(join(modules, "p-retry/index.js")));
const { retry, handleAll, ExponentialBackoff } = await import(pathToFileURL(join(modules, "cockatiel/dist/index.js")));
const { delays, parsePolicy, randomSeed, timerMs } = await import(pathToFileURL(ours));

/** Returns the waits of 9 failures, which are the timers that a function sets. */
async function waits(run) {
  const [seen, virtual] = [[], globalThis.setTimeout];
  globalThis.setTimeout = (callback, ms = 0) => {
    seen.push(Math.round(ms));
    return virtual(callback, 0);
  };
  const ended = run(() => Promise.reject(new Error("failed"))).catch(() => {});
  for (let n = 0; n < 50; n += 1) {
    await advance(1);
  }
  await ended;
  globalThis.setTimeout = virtual;
  return seen.join(" ");
}

console.log("\nwaits between 9 failures, in ms");
const functions = {
  "p-retry, no options": (fail) => pRetry(fail, { retries: 8 }),
  "p-retry, randomize": (fail) => pRetry(fail, { retries: 8, randomize: true, maxTimeout: 10_000 }),
  "cockatiel, no backoff": (fail) => retry(handleAll, { maxAttempts: 8 }).execute(fail),
  "cockatiel, ExponentialBackoff": (fail) => retry(handleAll, { maxAttempts: 8, backoff: new ExponentialBackoff() }).execute(fail),
};
for (const [name, run] of Object.entries(functions)) {
  console.log(`  ${name.padEnd(32)}${await waits(run)}`);
}
const policy = parsePolicy("exponential base=1s cap=10s max-attempts=9");
console.log(`  ${"stagger-client, base=1s cap=10s".padEnd(32)}${[...delays(policy, randomSeed())].map(timerMs).join(" ")}`);

const sizes = {
  "stagger-client, ReconnectingWebSocket": [ours, "ReconnectingWebSocket"],
  "stagger-client, and parsePolicy": [ours, "ReconnectingWebSocket, parsePolicy"],
  "stagger-client, AckedWebSocket": [ours, "AckedWebSocket"],
  "stagger-client, retry": [ours, "retry"],
  "stagger-client, retry and parsePolicy": [ours, "retry, parsePolicy"],
  "reconnecting-websocket": ["reconnecting-websocket", "default"],
  "partysocket, WebSocket": ["partysocket/ws", "default"],
  "p-retry": ["p-retry", "default"],
  "cockatiel, retry and ExponentialBackoff": ["cockatiel", "retry, handleAll, ExponentialBackoff"],
  "socket.io-client": ["socket.io-client", "io"],
  "@microsoft/signalr": ["@microsoft/signalr", "HubConnectionBuilder"],
};
console.log("\nbytes, minified, and compressed by gzip");
for (const [name, [from, what]] of Object.entries(sizes)) {
  const input = `export { ${what === "default" ? "default" : what} } from ${JSON.stringify(from)};`;
  const options = ["--bundle", "--minify", "--format=esm", "--target=es2022", "--platform=browser"];
  const bundle = execFileSync(esbuild, options, { input, cwd: resolve(directory), maxBuffer: 1 << 24 });
  console.log(`  ${name.padEnd(44)}${String(bundle.length).padStart(8)}${String(gzipSync(bundle, { level: 9 }).length).padStart(8)}`);
}
for (const name of ["reconnecting-websocket", "partysocket", "p-retry", "cockatiel", "socket.io-client", "@microsoft/signalr"]) {
  console.log(`  ${name} ${JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8")).version}`);
}
process.exit();
