/** Resuming where the last connection ended: the negotiation of `stagger-ws`, for pages. */
import { Layer, type Received } from "./layer.js";
import { type Message, sizeOf } from "./outbox.js";
import type { Constructor } from "./socket.js";

/**
 * The state of the negotiation.
 *
 * - `resumed`: the server resumed; nothing is missing.
 * - `fresh`: the server started anew; messages may be missing.
 * - `rejected`: the server rejected the position, which the implementation should discard. The connection ends, and the client
 *   reconnects after spread and backoff.
 * - `{ send }`: not known yet: sends this message, and reads the next one.
 * - `pending`: not known yet: reads the next message.
 */
export type ResumeStatus = "resumed" | "fresh" | "rejected" | "pending" | { readonly send: Message };

/**
 * How a protocol resumes where the last connection ended, for {@link withResume}. An implementation tracks a position, sends it to
 * the server on each new connection, and decides from the answer whether the server resumed there.
 *
 * A page sees neither the headers of the upgrade nor its answer, so the position is in the query, or in the first message.
 */
export interface Resume {
  /** Adds the position to the address of the next attempt, after the function that makes it. */
  onRequest?(url: URL): void;
  /** Called when the server has accepted the upgrade. Default: waits for the first message. */
  onUpgrade?(protocol: string): ResumeStatus;
  /** Reads a message while the outcome is not known. If it is part of the sequence, {@link observe} is called for it, too. */
  onHandshakeMessage(data: unknown): ResumeStatus;
  /** Called when the outcome is known, before the event `open`. After `false` messages may be missing. */
  onDecided?(resumed: boolean): void;
  /** Updates the position, for each message that the page receives, before its event. */
  observe(data: unknown): void;
}

export interface ResumeOptions {
  /** The maximum size of the messages that arrive before the outcome is known, in bytes. Default 16 MiB. */
  readonly maxBytes?: number;
  /** The constructor of connections. Default: the platform's `WebSocket`. */
  readonly WebSocket?: Constructor;
}

/** What an empty message takes up. */
const MESSAGE_BYTES = 64;

/**
 * Returns a constructor of connections that resume, for the option `WebSocket` of a client.
 *
 * The event `open` comes when the outcome is known. Messages received before that follow it, and are observed like all others; until
 * then only what `resume` returns is sent, so this is also the place to log in. The attempt, negotiation included, may take no
 * longer than `connectTimeoutMs`. A close during the negotiation has the meaning of its code, and the connection does not count
 * as healthy.
 */
export function withResume(resume: Resume, options: ResumeOptions = {}): Constructor {
  const { maxBytes = 16 * 2 ** 20, WebSocket } = options;
  return class extends Layer {
    #isDecided = false;
    #buffered: Received[] = [];
    #bytes = 0;

    constructor(url: string, protocols?: string[]) {
      super(withPosition(url, resume), protocols, WebSocket);
    }

    protected override opened(): void {
      this.onupgrade?.();
      this.#continue(() => resume.onUpgrade?.(this.protocol) ?? "pending");
    }

    protected override received(event: Received): void {
      if (this.#isDecided) {
        this.#deliver(event);
        return;
      }
      this.#buffered.push(event);
      this.#bytes += MESSAGE_BYTES + sizeOf(event.data as Message);
      this.#continue(() => resume.onHandshakeMessage(event.data));
    }

    #continue(next: () => ResumeStatus): void {
      let status: ResumeStatus;
      try {
        status = next();
        if (typeof status === "object") {
          this.send(status.send as never);
        }
      } catch (error) {
        this.failed(error);
        this.lose("the negotiation has failed: see the event error");
        return;
      }
      if (status === "rejected") {
        this.lose("the server rejected the position");
      } else if (status === "resumed" || status === "fresh") {
        this.#decide(status === "resumed");
      } else if (this.#bytes > maxBytes) {
        this.lose(`more than ${maxBytes} bytes before the server answered the position: raise maxBytes`);
      }
    }

    #decide(resumed: boolean): void {
      this.#isDecided = true;
      this.#quietly(() => resume.onDecided?.(resumed));
      this.#buffered.forEach(({ data }) => this.early(data));
      super.opened();
      this.#buffered.splice(0).forEach((event) => this.#deliver(event));
    }

    #deliver(event: Received): void {
      // What the client does not receive any more must not advance the position.
      if (this.onmessage) {
        this.#quietly(() => resume.observe(event.data));
        super.received(event);
      }
    }

    #quietly(action: () => void): void {
      try {
        action();
      } catch (error) {
        this.failed(error);
      }
    }
  };
}

function withPosition(url: string, resume: Resume): string {
  if (!resume.onRequest) {
    return url;
  }
  const address = new URL(url, (globalThis as { location?: { href: string } }).location?.href);
  resume.onRequest(address);
  return String(address);
}
