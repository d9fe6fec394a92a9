/** Heartbeats of applications: pages cannot send pings, and do not see those of the server. */
import { type Clock, LONGEST_TIMER_MS, PLATFORM } from "./clock.js";
import { type Ended, Layer, type Received } from "./layer.js";
import type { Message } from "./outbox.js";
import type { Constructor } from "./socket.js";
import { Watchdog } from "./watchdog.js";

export interface HeartbeatOptions {
  /** The message, or a function that makes it. The server has to answer it, with any message. */
  readonly message: Message | (() => Message);
  /** Returns whether a message is nothing but the answer to a heartbeat, which the page does not receive. Default: none is. */
  isReply?(data: unknown): boolean;
  /** How often a heartbeat is sent, in milliseconds. Default 20 s. */
  readonly intervalMs?: number;
  /** How long after a heartbeat nothing may be received, in milliseconds, at most `intervalMs`. Default: `intervalMs`. */
  readonly timeoutMs?: number;
  /** The constructor of connections. Default: the platform's `WebSocket`. */
  readonly WebSocket?: Constructor;
  /** For tests. */
  readonly clock?: Clock;
}

/**
 * Returns a constructor of connections that send a message at every interval while they are open, and that are lost when nothing was
 * received within the timeout after it. For the option `WebSocket` of a client. Each connection has one timer more.
 *
 * Any message counts, not only the answer. A page that was frozen, or a device that has slept, grants the timeout once more, because
 * what has arrived meanwhile may not have been handled yet. In a hidden page browsers delay timers to one in a minute: heartbeats are
 * as rare then, and an unresponsive server is found after two to three minutes.
 *
 * @throws RangeError if an interval is not above 0, or if the timeout is above the interval.
 */
export function withHeartbeat(options: HeartbeatOptions): Constructor {
  const { message, intervalMs = 20_000, timeoutMs = intervalMs, clock = PLATFORM } = options;
  for (const [name, ms] of [["intervalMs", intervalMs], ["timeoutMs", timeoutMs]] as const) {
    if (!(ms > 0)) {
      throw new RangeError(`${name} is ${ms}; use more than 0`);
    }
  }
  if (timeoutMs > intervalMs) {
    throw new RangeError(`timeoutMs ${timeoutMs} is above intervalMs ${intervalMs}: lower timeoutMs or raise intervalMs`);
  }
  return class extends Layer {
    readonly #watchdog = new Watchdog(clock);
    #timer: unknown;
    /** When the heartbeat was sent that nothing was received after. */
    #sentAt: number | undefined;

    constructor(url: string, protocols?: string[]) {
      super(url, protocols, options.WebSocket);
    }

    override close(code?: number, reason?: string): void {
      this.#stop();
      super.close(code, reason);
    }

    protected override opened(): void {
      this.#beatIn(intervalMs);
      super.opened();
    }

    protected override received(event: Received): void {
      if (this.#sentAt !== undefined) {
        this.#watchdog.disarm();
        this.#beatIn(this.#sentAt + intervalMs - clock.now());
        this.#sentAt = undefined;
      }
      let isReply = false;
      try {
        isReply = options.isReply?.(event.data) ?? false;
      } catch (error) {
        this.failed(error);
      }
      if (!isReply) {
        super.received(event);
      }
    }

    protected override ended(event: Ended): void {
      this.#stop();
      super.ended(event);
    }

    #beatIn(ms: number): void {
      this.#timer = clock.setTimeout(() => this.#beat(), Math.min(Math.max(ms, 0), LONGEST_TIMER_MS));
    }

    #beat(): void {
      try {
        this.send((typeof message === "function" ? message() : message) as never);
      } catch (error) {
        // Without a heartbeat, silence says nothing about the server.
        this.#beatIn(intervalMs);
        this.failed(error);
        return;
      }
      this.#sentAt = clock.now();
      this.#watchdog.arm(timeoutMs, () => this.lose(`nothing was received for ${timeoutMs} ms after a heartbeat`));
    }

    #stop(): void {
      this.#watchdog.disarm();
      clock.clearTimeout(this.#timer);
      this.#timer = this.#sentAt = undefined;
    }
  };
}
