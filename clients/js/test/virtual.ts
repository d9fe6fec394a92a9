/** Virtual time, and connections without a network. */
import type { Clock, Network, Socket } from "../src/index.js";

/** A clock that stands still until it is advanced. Milliseconds. */
export class VirtualClock implements Clock {
  #now = 1_000;
  #ahead = 0;
  #next = 1;
  readonly timers = new Map<number, { at: number; callback: () => void }>();
  /** The greatest number of timers at a time. */
  mostTimers = 0;
  fired = 0;

  now(): number {
    return this.#now;
  }

  wall(): number {
    return 1_700_000_000_000 + this.#now + this.#ahead;
  }

  setTimeout(callback: () => void, ms: number): number {
    if (!(ms >= 0 && ms < 2 ** 31)) {
      throw new RangeError(`a timer of ${ms} ms fires at once`);
    }
    const id = this.#next++;
    this.timers.set(id, { at: this.#now + ms, callback });
    this.mostTimers = Math.max(this.mostTimers, this.timers.size);
    return id;
  }

  clearTimeout(timer: unknown): void {
    this.timers.delete(timer as number);
  }

  /** Lets time pass, fires the timers at their times, and lets promises settle after each. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settled();
    for (;;) {
      const due = [...this.timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (!due) {
        break;
      }
      this.timers.delete(due[0]);
      this.#now = Math.max(this.#now, due[1].at);
      this.fired += 1;
      due[1].callback();
      await settled();
    }
    this.#now = Math.max(this.#now, end);
  }

  /** Lets time pass until the timers have made this true. */
  async advanceTo(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) {
      const next = Math.min(...[...this.timers.values()].map(({ at }) => at));
      await this.advance(next - this.#now);
    }
  }

  /** Lets time pass without firing a timer, as for a page that is frozen. */
  freeze(ms: number): void {
    this.#now += ms;
  }

  /** Lets only the wall clock go on, as for a device that sleeps. */
  sleep(ms: number): void {
    this.#ahead += ms;
  }
}

export async function settled(): Promise<void> {
  for (let turn = 0; turn < 30; turn += 1) {
    await Promise.resolve();
  }
}

interface Closing {
  readonly code: number;
  readonly reason: string;
  readonly wasClean: boolean;
}

/** A connection that a test opens and closes. */
export class FakeSocket implements Socket {
  binaryType: BinaryType = "blob";
  bufferedAmount = 0;
  extensions = "";
  protocol = "";
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  readonly sent: unknown[] = [];
  closedBy: [number | undefined, string | undefined] | undefined;

  constructor(
    readonly url: string,
    readonly protocols: readonly string[] = [],
  ) {}

  send(data: unknown): void {
    this.sent.push(data);
  }

  close(code?: number, reason?: string): void {
    this.closedBy ??= [code, reason];
  }

  open(): void {
    this.onopen?.({} as never);
  }

  message(data: unknown): void {
    this.onmessage?.({ data, origin: "wss://example" } as never);
  }

  lose(code = 1006, reason = ""): void {
    const event: Closing = { code, reason, wasClean: code !== 1006 };
    this.onclose?.(event as never);
  }
}

/** Returns a constructor that records its connections. */
export function recorder(): { WebSocket: new (url: string, protocols?: string[]) => FakeSocket; sockets: FakeSocket[] } {
  const sockets: FakeSocket[] = [];
  class Recorded extends FakeSocket {
    constructor(url: string, protocols?: string[]) {
      super(url, protocols);
      sockets.push(this);
    }
  }
  return { WebSocket: Recorded, sockets };
}

/** A network that a test switches off. */
export class FakeNetwork extends EventTarget implements Network {
  navigator = { onLine: true };

  set(onLine: boolean): void {
    this.navigator.onLine = onLine;
    this.dispatchEvent(new Event(onLine ? "online" : "offline"));
  }
}
