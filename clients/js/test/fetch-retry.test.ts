import assert from "node:assert/strict";
import { type Answer, createServer, type Incoming } from "node:http";
import { test } from "node:test";
import { fetchRetry, type FetchRetryOptions } from "../src/fetch-retry.js";
import { parsePolicy } from "../src/policy.js";
import { RetryError } from "../src/retry.js";
import type { RetryEvent, RetryStop } from "../src/retry-call.js";

const FAST = parsePolicy("constant base=1ms jitter=none max-attempts=3");

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** Runs a server whose answer depends on the number of the request, from 1, and returns what it has received. */
async function served(
  answer: (n: number, answer: Answer, request: Incoming) => void,
  use: (url: string, options: FetchRetryOptions & { retries: RetryEvent[]; stops: RetryStop[] }) => Promise<void>,
): Promise<Seen[]> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (data) => (body += new TextDecoder().decode(data)));
    request.on("end", () => {
      seen.push({ method: request.method, url: request.url, headers: request.headers, body });
      answer(seen.length, response, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const [retries, stops]: [RetryEvent[], RetryStop[]] = [[], []];
  try {
    await use(`http://127.0.0.1:${server.address().port}/`, {
      policy: FAST,
      seed: 1n,
      onRetry: (event) => retries.push(event),
      onStop: (stop) => stops.push(stop),
      retries,
      stops,
    });
  } finally {
    server.closeAllConnections();
    server.close();
  }
  return seen;
}

function status(code: number, headers: Record<string, string> = {}, body = "") {
  return (_: number, answer: Answer) => {
    answer.writeHead(code, headers);
    answer.end(body);
  };
}

/** Answers with this status once, and then with 200. */
function once(code: number, headers: Record<string, string> = {}) {
  return (n: number, answer: Answer) => status(n === 1 ? code : 200, n === 1 ? headers : {}, "done")(n, answer);
}

test("a safe request is sent again after 503, and its success is returned", async () => {
  const seen = await served(once(503), async (url, options) => {
    const response = await fetchRetry(url, {}, options);
    assert.deepEqual([response.status, await response.text()], [200, "done"]);
    assert.deepEqual(options.retries.map(({ error }) => String(error)), ["StatusError: the server responded with status 503"]);
  });
  assert.equal(seen.length, 2);
});

test("a 403 that announces a wait is sent again if that was asked for, and does not refresh credentials", async () => {
  for (const [code, headers, isLimited] of [
    [403, { "Retry-After": "0" }, true],
    [403, { "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": String(Date.now() - 1_000) }, true],
    [413, { "Retry-After": "0" }, true],
    [403, { "X-RateLimit-Remaining": "4999" }, false],
    [413, {}, false],
  ] as const) {
    let refreshed = 0;
    const refreshCredentials = () => {
      refreshed += 1;
    };
    for (const announcedWaits of [true, false]) {
      const seen = await served(once(code, headers), async (url, options) => {
        const response = await fetchRetry(url, {}, { ...options, announcedWaits, refreshCredentials });
        assert.equal(response.status, announcedWaits && isLimited ? 200 : code);
      });
      assert.equal(seen.length, announcedWaits && isLimited ? 2 : 1, `${code} ${JSON.stringify(headers)}`);
    }
    assert.equal(refreshed, code === 413 ? 0 : isLimited ? 1 : 2, `${code} ${JSON.stringify(headers)}`);
  }
});

test("the last response is returned with its body when the attempts are used up", async () => {
  const seen = await served(status(503, {}, "down"), async (url, options) => {
    const response = await fetchRetry(url, {}, options);
    assert.deepEqual([response.status, await response.text()], [503, "down"]);
    assert.deepEqual(options.stops.map(({ reason, attempts }) => [reason, attempts]), [["attempts", 3]]);
  });
  assert.equal(seen.length, 3);
});

test("only requests that may be sent twice are, whatever the response", async () => {
  const key = { "Idempotency-Key": "one" };
  for (const [init, options, requests] of [
    [{ method: "POST", body: "x" }, {}, 1],
    [{ method: "PATCH", body: "x" }, {}, 1],
    [{ method: "PUT", body: "x" }, {}, 2],
    [{ method: "DELETE" }, {}, 2],
    [{ method: "POST", body: "x", headers: key }, {}, 2],
    [{ method: "POST", body: "x" }, { idempotent: true }, 2],
    [{ method: "POST", body: "x" }, { idempotencyKeys: true }, 2],
  ] as const) {
    for (const lost of [false, true]) {
      const answer = lost ? (n: number, answer: Answer) => (n === 1 ? answer.destroy() : answer.end("done")) : once(503, { "Retry-After": "0" });
      const seen = await served(answer, async (url, base) => {
        const call = fetchRetry(url, init as RequestInit, { ...base, ...options });
        if (requests === 1 && lost) {
          const error = await call.then(() => undefined, (error: RetryError) => error);
          assert.deepEqual([error?.reason, error?.attempts, error?.cause instanceof TypeError], ["unsafe_to_retry", 1, true]);
        } else {
          assert.equal((await call).status, requests === 1 ? 503 : 200);
        }
      });
      assert.equal(seen.length, requests, JSON.stringify([init, options, lost]));
      const keys = new Set(seen.map(({ headers }) => headers["idempotency-key"]));
      assert.equal(keys.size, 1, "every attempt has the same key");
      if ("idempotencyKeys" in options) {
        assert.match([...keys].join(), /^"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$/);
      }
    }
  }
});

test("a request is sent once for statuses that another attempt would meet again", async () => {
  for (const code of [200, 204, 304, 400, 401, 403, 404, 409, 410, 422, 501, 505, 511]) {
    const seen = await served(status(code), async (url, options) => {
      assert.equal((await fetchRetry(url, {}, options)).status, code);
    });
    assert.equal(seen.length, 1, String(code));
  }
});

test("bodies of every kind but streams are sent again, unchanged", async () => {
  const form = new FormData();
  form.set("name", "value");
  const bytes = new TextEncoder().encode("bytes");
  for (const [body, text] of [
    ["text", "text"],
    [bytes, "bytes"],
    [bytes.buffer, "bytes"],
    [new Blob(["blob"]), "blob"],
    [new URLSearchParams({ a: "1" }), "a=1"],
    [form, undefined],
  ] as const) {
    const seen = await served(once(503), async (url, options) => {
      assert.equal((await fetchRetry(url, { method: "PUT", body }, options)).status, 200);
    });
    assert.deepEqual(seen.length, 2);
    for (const { headers, body } of seen) {
      const boundary = /boundary=(.*)$/.exec(headers["content-type"] ?? "")?.[1];
      assert.ok(text === undefined ? boundary !== undefined && body.startsWith(`--${boundary}`) : body === text, body);
    }
  }
});

test("a stream is sent once, also by a method that is safe", async () => {
  const stream = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode("stream"));
      controller.close();
    },
  });
  const seen = await served(once(503), async (url, options) => {
    const init = { method: "PUT", body: stream, duplex: "half" } as RequestInit;
    assert.equal((await fetchRetry(url, init, options)).status, 503);
    assert.equal(options.stops[0]?.reason, "unsafe_to_retry");
  });
  assert.deepEqual(seen.map(({ body }) => body), ["stream"]);
});

test("a Request is cloned for each attempt, with its headers and body", async () => {
  for (const body of ["again", new URLSearchParams({ a: "1" })]) {
    let type: string | undefined;
    const seen = await served(once(503), async (url, options) => {
      const request = new Request(url, { method: "PUT", body, headers: { "x-mine": "1" } });
      // Bun has no type for a text.
      type = request.headers.get("content-type") ?? undefined;
      assert.equal((await fetchRetry(request, {}, options)).status, 200);
    });
    const sent = [String(body), "1", type];
    assert.deepEqual(seen.map(({ body, headers }) => [body, headers["x-mine"], headers["content-type"]]), [sent, sent]);
    assert.ok(type !== undefined || typeof body === "string");
  }
});

test("absurd hints neither stop the clock nor end in a loop", async () => {
  for (const [value, requests] of [
    ["1e308", 3],
    ["-5", 3],
    ["NaN", 3],
    ["0", 3],
    ["99999999999999999999999", 3],
    ["Fri, 31 Dec 9999 23:59:59 GMT", 3],
    [String(Date.now() - 1_000), 3],
    ["31622400", 1],
    ["Thu, 01 Jan 1970 00:00:00 GMT", 3],
    ["301", 1],
  ] as const) {
    const seen = await served(status(503, { "Retry-After": value }), async (url, options) => {
      assert.equal((await fetchRetry(url, {}, options)).status, 503);
      assert.equal(options.stops[0]?.reason, requests === 1 ? "hint" : "attempts", value);
    });
    assert.equal(seen.length, requests, value);
  }
});

test("a flood of 429 ends with the attempts of the policy", async () => {
  const seen = await served(status(429, { "retry-after-ms": "1" }), async (url, options) => {
    const responses = await Promise.all(Array.from({ length: 50 }, () => fetchRetry(url, {}, options)));
    assert.ok(responses.every(({ status }) => status === 429));
  });
  assert.equal(seen.length, 150);
});

test("a hint is not undercut", async () => {
  let first = 0;
  await served(once(503, { "retry-after-ms": "60" }), async (url, options) => {
    first = performance.now();
    await fetchRetry(url, {}, options);
    assert.ok(performance.now() - first >= 60);
  });
});

test("the token of a reservation is presented once, and lets an unsafe request return", async () => {
  const token = "0123456789abcdef0123456789abcdef";
  const answer = (n: number, answer: Answer) => status(n < 3 ? 503 : 200, n === 1 ? { "stagger-reservation": `5;token=${token}` } : {})(n, answer);
  for (const [method, requests] of [["POST", 2], ["PUT", 3]] as const) {
    const seen = await served(answer, async (url, options) => {
      await fetchRetry(url, { method, body: "x" }, options);
    });
    const tokens = seen.map(({ headers }) => headers["stagger-reservation-token"]);
    assert.deepEqual(tokens, [undefined, token, undefined].slice(0, requests), method);
  }
});

test("the number of the attempt is sent only if that is asked for", async () => {
  for (const [attemptHeader, numbers] of [[true, ["1", "2"]], [false, [undefined, undefined]], [undefined, [undefined, undefined]]] as const) {
    const seen = await served(once(503), async (url, options) => {
      await fetchRetry(url, {}, attemptHeader === undefined ? options : { ...options, attemptHeader });
    });
    assert.deepEqual(seen.map(({ headers }) => headers["x-retry-attempt"]), numbers);
  }
});

test("a loop of redirects is followed once", async () => {
  const seen = await served(status(302, { Location: "/" }), async (url, options) => {
    const error = await fetchRetry(url, {}, options).then(() => undefined, (error: RetryError) => error);
    assert.deepEqual([error?.reason, error?.attempts], ["permanent", 1]);
  });
  // The Fetch Standard allows 20 redirects; Bun follows 126.
  assert.ok(seen.length <= ("Bun" in globalThis ? 127 : 21), String(seen.length));
});

test("a refused connection proves that nothing was sent only if no redirect can have been followed", async () => {
  // The port of a server that has ended.
  let gone = "";
  await served(status(200), async (url) => {
    gone = url;
  });
  // Deno may have sent the request on another connection before, so there nothing proves it.
  const proven = "Deno" in globalThis ? 1 : 3;
  for (const [redirect, attempts] of [["follow", 1], ["error", proven]] as const) {
    const error = await fetchRetry(gone, { method: "POST", body: "x", redirect }, { policy: FAST }).then(() => undefined, (error: RetryError) => error);
    assert.ok(error instanceof RetryError);
    assert.equal(error.attempts, attempts, redirect);
  }
  // A server that redirects a POST, which it has carried out, to one that is down.
  const seen = await served(status(307, { Location: gone }), async (url, options) => {
    const error = await fetchRetry(url, { method: "POST", body: "x" }, options).then(() => undefined, (error: RetryError) => error);
    assert.equal(error?.reason, "unsafe_to_retry");
  });
  assert.equal(seen.length, 1);
});

test("a body that breaks off after the headers is the caller's, and is not retried", async () => {
  const answer = (_: number, answer: Answer) => {
    answer.writeHead(200, { "Content-Length": "1000" });
    answer.write("half");
    setTimeout(() => answer.destroy(), 20);
  };
  const seen = await served(answer, async (url, options) => {
    const response = await fetchRetry(url, {}, options);
    await assert.rejects(response.text());
  });
  assert.equal(seen.length, 1);
});

test("the endless body of a failed attempt is cancelled, not read", async () => {
  let [sent, closed] = [0, 0];
  const chunk = new Uint8Array(1 << 16);
  const answer = (n: number, answer: Answer) => {
    if (n === 2) {
      answer.end("done");
      return;
    }
    answer.writeHead(503, { "Content-Length": "8000000000" });
    const more = () => {
      while (closed === 0 && answer.write(chunk)) {
        sent += chunk.length;
      }
    };
    answer.on("drain", more);
    answer.on("close", () => (closed += 1));
    more();
  };
  await served(answer, async (url, options) => {
    assert.equal(await (await fetchRetry(url, {}, options)).text(), "done");
    // The connection is closed as soon as the server sees it.
    for (let turn = 0; turn < 1_000 && closed === 0; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  });
  assert.equal(closed, 1);
  assert.ok(sent < 20_000_000, `${sent} bytes`);
});

test("a timeout covers the headers and not the body, and is one of each attempt", async () => {
  let closed = 0;
  const answer = (n: number, answer: Answer) => {
    answer.on("close", () => (closed += 1));
    if (n > 1) {
      answer.writeHead(200);
      answer.write("slow");
      setTimeout(() => answer.end(" body"), 700);
    }
  };
  const seen = await served(answer, async (url, options) => {
    const response = await fetchRetry(url, {}, { ...options, timeoutMs: 500 });
    assert.equal(closed, 1, "the connection of the attempt that timed out is closed");
    assert.equal(await response.text(), "slow body");
    assert.deepEqual(options.retries.map(({ error }) => (error as Error).name), ["TimeoutError"]);
  });
  assert.equal(seen.length, 2);
});

test("an abort ends the call with the reason of its signal, and the body of a response", async () => {
  const controller = new AbortController();
  await served(status(503, { "Retry-After": "100" }), async (url, options) => {
    const policy = parsePolicy("default max-hint=inf");
    const onRetry = () => queueMicrotask(() => controller.abort("enough"));
    const call = fetchRetry(new Request(url, { signal: controller.signal }), {}, { ...options, policy, onRetry });
    await assert.rejects(call, (error) => error === controller.signal.reason);
  });
  const later = new AbortController();
  const answer = (_: number, answer: Answer) => {
    answer.write("half");
  };
  await served(answer, async (url, options) => {
    const response = await fetchRetry(url, { signal: later.signal }, options);
    setTimeout(() => later.abort(), 10);
    await assert.rejects(response.text(), (error) => (error as Error).name === "AbortError");
  });
});

test("arguments that are no request fail at once with the error of the platform", async () => {
  let [sent, refused] = [0, 0];
  const send = async () => {
    sent += 1;
    return new Response();
  };
  for (const [input, init] of [
    ["http://[", {}],
    ["http://user:pw@127.0.0.1/", {}],
    ["http://127.0.0.1/", { method: "b a d" }],
    ["http://127.0.0.1/", { body: "x" }],
    ["http://127.0.0.1/", { headers: { "a b": "c" } }],
  ] as const) {
    try {
      new Request(input, init);
    } catch {
      await assert.rejects(fetchRetry(input, init, { fetch: send }), (error) => error instanceof TypeError);
      refused += 1;
    }
  }
  // Deno accepts credentials in an address, and Bun two more.
  assert.deepEqual([sent, refused], [0, "Bun" in globalThis ? 2 : "Deno" in globalThis ? 4 : 5]);
});
