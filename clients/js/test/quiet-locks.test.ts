import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { fetchRetry } from "../src/fetch-retry.js";
import { SECOND } from "../src/numbers.js";
import { parsePolicy } from "../src/policy.js";
import { lockProbe } from "../src/quiet-locks.js";
import { QuietPeriod } from "../src/quiet-period.js";
import { QuietPeriods } from "../src/quiet-periods.js";
import { delivered, FakeLocks, settled, unrefed, VirtualClock } from "./virtual.js";

const policy = parsePolicy("constant base=1s jitter=none hint=exact");
const locks = new FakeLocks();

/** Tabs that share a channel, and a server that asked the first of them for 10 s of quiet. */
class Tabs {
  readonly clock = new VirtualClock();
  readonly tabs: QuietPeriods[];
  readonly #spy: BroadcastChannel;
  /** What the tabs have told each other. */
  readonly told: { stagger: string; target: string }[] = [];
  /** When the server received the requests after the first one, in milliseconds after it. */
  readonly seen: number[] = [];
  answers: ((response: Response) => void)[] = [];

  private constructor(
    readonly name: string,
    count: number,
  ) {
    this.tabs = Array.from({ length: count }, () => new QuietPeriods({ channel: name, clock: this.clock }));
    this.#spy = unrefed(name);
    this.#spy.onmessage = ({ data }: MessageEvent) => this.told.push(data);
  }

  static async paused(name: string, count: number): Promise<Tabs> {
    locks.reset();
    const self = new Tabs(name, count);
    const refuse = async () => new Response(null, { status: 429, headers: { "Retry-After": "10" } });
    await fetchRetry("https://api.example/", { method: "POST" }, { ...self.#options(0), fetch: refuse });
    await delivered(() => self.told.length > 0 && self.tabs.every((tab) => !tab.isOpen("key")));
    return self;
  }

  /** Makes a call in a tab. Its request is answered by one of `answers`. */
  call(tab: number, init: RequestInit = {}): Promise<number | string> {
    const send = (_: RequestInfo | URL, { signal }: RequestInit) => {
      this.seen.push(this.clock.now() - 1_000);
      return new Promise<Response>((resolve, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason));
        this.answers.push(resolve);
      });
    };
    const call = fetchRetry("https://api.example/", init, { ...this.#options(tab), fetch: send });
    return call.then(({ status }) => status, (error) => String(error));
  }

  async callAll(): Promise<(number | string)[]> {
    return Promise.all(this.tabs.map((_, n) => this.call(n)));
  }

  /** Answers what was received, and lets the other tabs hear it. */
  async answer(status: number, headers: Record<string, string> = {}): Promise<void> {
    const told = this.told.length;
    this.answers.splice(0).forEach((resolve) => resolve(new Response(null, { status, headers })));
    await settled();
    await delivered(() => this.told.length > told);
    // The spy was the last to open its channel.
    await settled();
  }

  close(): void {
    [...this.tabs, this.#spy].forEach((channel) => channel.close());
  }

  #options(tab: number) {
    return { policy, clock: this.clock, quiet: this.tabs[tab] as QuietPeriods, quietKey: "key", seed: 1n };
  }
}

for (const count of [2, 10]) {
  test(`one of ${count} tabs sends the first request after a pause, and the others start after its answer`, async () => {
    const tabs = await Tabs.paused(`locks-${count}`, count);
    const all = tabs.callAll();
    await tabs.clock.advance(9_999);
    assert.deepEqual(tabs.seen, []);
    await tabs.clock.advance(20_000);
    assert.deepEqual(tabs.seen, [10_000]);
    const target = tabs.told[0]?.target;
    assert.deepEqual([...new Set(locks.names)], [`stagger locks-${count} ${target} 0`]);
    await tabs.answer(200);
    assert.deepEqual(tabs.told.slice(1), [{ stagger: "answered", target }]);
    // Calls ask at most a second after their last look; the rate is not known, so the first of a tab starts within a second.
    await tabs.clock.advance(2_000);
    const starts = tabs.seen.slice(1).map((at) => at - 29_999);
    assert.equal(starts.length, count - 1);
    assert.ok(starts.every((at) => at >= 0 && at <= 2_000), starts.join());
    tabs.answers.forEach((resolve) => resolve(new Response("done")));
    assert.deepEqual(new Set(await all), new Set([200]));
    assert.deepEqual([locks.held.size, tabs.clock.timers.size], [0, 0]);
    tabs.close();
  });
}

test("the answer to the probe is told, and no other", async () => {
  const tabs = await Tabs.paused("locks-told", 1);
  const all = [tabs.call(0), tabs.call(0), tabs.call(0)];
  await tabs.clock.advance(10_000);
  await tabs.answer(200);
  while (tabs.seen.length < 3) {
    await tabs.clock.advance(100);
    tabs.answers.splice(0).forEach((resolve) => resolve(new Response("done")));
  }
  await Promise.all(all);
  const last = unrefed(tabs.name);
  last.postMessage({ stagger: "last" });
  await delivered(() => tabs.told.length > 2);
  assert.deepEqual(tabs.told.map(({ stagger }) => stagger), ["pause", "answered", "last"]);
  last.close();
  tabs.close();
});

test("a tab that shares nothing asks for no lock", async () => {
  locks.reset();
  const [quiet, clock] = [new QuietPeriods(), new VirtualClock()];
  const answers = [new Response(null, { status: 429, headers: { "Retry-After": "10" } }), new Response("done")];
  const options = { policy, clock, quiet, fetch: async () => answers.shift() as Response };
  await fetchRetry("https://api.example/", { method: "POST" }, options);
  const call = fetchRetry("https://api.example/", {}, options);
  await clock.advance(10_000);
  assert.equal((await call).status, 200);
  assert.deepEqual(locks.names, []);
});

test("a probe that is not answered holds its lock for 30 s", async () => {
  const tabs = await Tabs.paused("locks-hanging", 1);
  void tabs.call(0);
  await tabs.clock.advance(39_999);
  assert.deepEqual([tabs.seen.length, locks.held.size], [1, 1]);
  await tabs.clock.advance(1);
  assert.equal(locks.held.size, 0);
  tabs.close();
});

test("a pause that begins while a lock is asked for holds the call, and releases the lock", async () => {
  const tabs = await Tabs.paused("locks-pause", 1);
  const [first] = tabs.told;
  let answer = () => {};
  locks.before = () => new Promise((resolve) => (answer = resolve));
  void tabs.call(0);
  await tabs.clock.advance(10_000);
  const other = unrefed(tabs.name);
  other.postMessage({ ...first, ms: 5_000 });
  await delivered(() => tabs.told.length > 1);
  locks.before = undefined;
  answer();
  await tabs.clock.advance(4_999);
  assert.deepEqual([tabs.seen.length, locks.held.size], [0, 0]);
  await tabs.clock.advance(1);
  assert.deepEqual([tabs.seen.length, locks.held.size], [1, 1]);
  other.close();
  tabs.close();
});

test("a probe that is refused begins the pause again in all tabs, and then there is one probe again", async () => {
  const tabs = await Tabs.paused("locks-refused", 10);
  void tabs.callAll();
  await tabs.clock.advance(10_100);
  assert.deepEqual(tabs.seen, [10_000]);
  await tabs.answer(503, { "Retry-After": "20" });
  await tabs.clock.advance(19_000);
  assert.equal(tabs.seen.length, 1);
  await tabs.clock.advance(5_000);
  assert.deepEqual(tabs.seen, [10_000, 30_100]);
  tabs.close();
});

test("if the tab with the probe is closed, another sends it within a second", async () => {
  const tabs = await Tabs.paused("locks-closed", 10);
  void tabs.callAll();
  await tabs.clock.advance(15_000);
  assert.equal(tabs.seen.length, 1);
  // As the browser does.
  locks.reset();
  await tabs.clock.advance(1_000);
  assert.equal(tabs.seen.length, 2);
  await tabs.clock.advance(20_000);
  assert.equal(tabs.seen.length, 2);
  tabs.close();
});

test("a call that is aborted while it is the probe leaves it to another tab", async () => {
  const tabs = await Tabs.paused("locks-aborted", 2);
  const controller = new AbortController();
  const probe = tabs.call(0, { signal: controller.signal });
  await tabs.clock.advance(10_000);
  void tabs.call(1);
  await tabs.clock.advance(5_000);
  assert.equal(tabs.seen.length, 1);
  controller.abort("enough");
  assert.equal(await probe, "enough");
  await tabs.clock.advance(1_000);
  assert.equal(tabs.seen.length, 2);
  tabs.close();
});

test("a tab that has the probe for more than 30 s is passed over by one other tab at a time", async () => {
  const tabs = await Tabs.paused("locks-frozen", 10);
  locks.isStuck = (name) => name.endsWith(" 0");
  void tabs.callAll();
  await tabs.clock.advance(40_999);
  assert.equal(tabs.seen.length, 0);
  await tabs.clock.advance(1_501);
  assert.equal(tabs.seen.length, 1);
  // The second tab does not release its lock either.
  locks.isStuck = (name) => !name.endsWith(" 2");
  await tabs.clock.advance(30_500);
  assert.equal(tabs.seen.length, 1);
  await tabs.clock.advance(35_000);
  assert.equal(tabs.seen.length, 2);
  tabs.close();
});

test("if a probe is not answered, one other tab sends the next after 30 s, and no second one passes it over", async () => {
  const tabs = await Tabs.paused("locks-silent-server", 10);
  void tabs.callAll();
  await tabs.clock.advance(39_999);
  assert.equal(tabs.seen.length, 1);
  await tabs.clock.advance(30_000);
  assert.equal(tabs.seen.length, 2);
  await tabs.clock.advance(30_000);
  assert.equal(tabs.seen.length, 3);
  tabs.close();
});

test("a tab that is slow sends no probe of its own between two readings of the clock", async () => {
  const tabs = await Tabs.paused("locks-slow", 2);
  tabs.clock.step = 3;
  void tabs.callAll();
  await tabs.clock.advance(20_000);
  assert.equal(tabs.seen.length, 1);
  tabs.close();
});

test("a script that holds all locks delays the first request by 5 min", async () => {
  const tabs = await Tabs.paused("locks-hostile", 1);
  locks.isStuck = () => true;
  void tabs.call(0);
  await tabs.clock.advance(309_999);
  assert.equal(tabs.seen.length, 0);
  await tabs.clock.advance(2_000);
  // It asks for ten locks one after the other.
  await delivered(() => tabs.seen.length > 0);
  assert.equal(tabs.seen.length, 1);
  tabs.close();
});

test("a call that is aborted while the platform has not answered is over, and a lock that comes later is released", async () => {
  const tabs = await Tabs.paused("locks-late", 2);
  let answer = () => {};
  locks.before = () => new Promise((resolve) => (answer = resolve));
  const controller = new AbortController();
  const call = tabs.call(0, { signal: controller.signal });
  await tabs.clock.advance(12_000);
  controller.abort("enough");
  assert.equal(await call, "enough");
  answer();
  await settled();
  assert.deepEqual([locks.held.size, tabs.seen.length], [0, 0]);
  assert.equal(tabs.clock.timers.size, 0);
  tabs.close();
});

test("without locks, and where they are refused or never answered, each tab has a probe of its own", async () => {
  for (const [kind, wait, before] of [
    ["missing", 0, undefined],
    ["refused", 0, () => Promise.reject(new Error("SecurityError"))],
    ["silent", 30_000, () => new Promise<void>(() => {})],
  ] as const) {
    const tabs = await Tabs.paused(`locks-${kind}`, 2);
    locks.before = before;
    if (kind === "missing") {
      locks.remove();
    }
    void tabs.callAll();
    await tabs.clock.advance(10_000 + wait);
    assert.deepEqual(tabs.seen, [10_000 + wait, 10_000 + wait], kind);
    locks.reset();
    tabs.close();
  }
});

test("locks that others hold do not hold a probe, and no listener is left at a signal", async () => {
  const tabs = await Tabs.paused("locks-others", 1);
  locks.held.set("lock of the application", "tab");
  void tabs.call(0);
  await tabs.clock.advance(10_000);
  assert.equal(tabs.seen.length, 1);
  const { signal } = new AbortController();
  let listeners = 0;
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  signal.addEventListener = (...given: Parameters<typeof add>) => {
    listeners += 1;
    add(...given);
  };
  signal.removeEventListener = (...given: Parameters<typeof remove>) => {
    listeners -= 1;
    remove(...given);
  };
  const unlock = await lockProbe("a lock", tabs.clock, signal);
  assert.equal(listeners, 0);
  unlock?.();
  tabs.close();
});

test("locks that are asked for with one signal share its listener, and a platform that throws locks nothing", async () => {
  locks.reset();
  const clock = new VirtualClock();
  const { signal } = new AbortController();
  const asked = Array.from({ length: 20 }, (_, n) => lockProbe(`lock ${n}`, clock, signal));
  assert.equal(getEventListeners(signal, "abort").length, 1);
  const unlocks = await Promise.all(asked);
  assert.equal(getEventListeners(signal, "abort").length, 0);
  unlocks.forEach((unlock) => unlock?.());
  locks.request = () => {
    throw new Error("no locks here");
  };
  assert.equal(typeof (await lockProbe("another", clock, signal)), "function");
  Reflect.deleteProperty(locks, "request");
});

test("how long a tab had the probe of an earlier pause does not count", () => {
  const quiet = new QuietPeriod(60n * SECOND);
  quiet.pause(SECOND, 0n);
  quiet.probedElsewhere("tab", SECOND);
  assert.equal(quiet.patience("tab", 33n * SECOND), "passes-over");
  quiet.pause(SECOND, 33n * SECOND);
  assert.equal(quiet.patience("tab", 34n * SECOND), "waits");
  quiet.probedElsewhere("tab", 34n * SECOND);
  assert.equal(quiet.patience("tab", 35n * SECOND), "waits");
});

test("an answer that another tab reports ends no pause that goes on, and begins nothing while there is none", () => {
  const quiet = new QuietPeriod(60n * SECOND);
  quiet.answeredElsewhere(0n, SECOND);
  assert.equal(quiet.state, "open");
  quiet.pause(10n * SECOND, SECOND);
  quiet.answeredElsewhere(0n, 10n * SECOND);
  assert.equal(quiet.state, "quiet");
  // In a tab that was told a little later, the pause ends a little later.
  quiet.answeredElsewhere(0n, 11n * SECOND - SECOND / 4n);
  assert.equal(quiet.state, "returning");
});

test("after the answer to another tab the first call starts within one interval of the pace, and before all of it is drawn", () => {
  for (const [random, wanted] of [[0n, 0n], [1n << 63n, SECOND / 2n], [(1n << 64n) - 1n, SECOND]] as const) {
    const quiet = new QuietPeriod(60n * SECOND);
    quiet.pause(10n * SECOND, SECOND);
    quiet.answeredElsewhere(random, 11n * SECOND);
    const turn = quiet.admit(undefined, undefined, 11n * SECOND);
    assert.equal(turn.kind === "wait" ? turn.after : 0n, wanted);
  }
});
