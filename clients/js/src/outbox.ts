/** Messages that wait for a connection, at most as many as the application allows. */

export type Message = string | ArrayBufferLike | Blob | ArrayBufferView;

/** What happens to messages that cannot be sent yet. */
export interface OutboxOptions {
  /**
   * - `backpressure` (default): messages wait; if the outbox is full, `send` throws, and `sendWhenRoom` waits for room.
   * - `drop-oldest`: if it is full, a new message replaces the oldest.
   * - `drop-newest`: if it is full, a new message is dropped.
   * - `fail-fast`: no message waits for a connection; without one, `send` throws.
   *
   * `drop-oldest` and `drop-newest` report what they drop with the event `dropped`.
   */
  readonly kind?: "backpressure" | "drop-oldest" | "drop-newest" | "fail-fast";
  /** The maximum number of messages that wait, at least 1. Default 64. */
  readonly maxMessages?: number;
  /**
   * The maximum size of all messages that wait, in the outbox or in an open connection (its `bufferedAmount`), in bytes; a string
   * counts two per UTF-16 unit in the outbox. Default: no limit. What waits in a connection cannot be taken back, so `drop-oldest`
   * drops the new message then, and `fail-fast` throws `full`.
   */
  readonly maxBytes?: number;
  /** How long a message waits at most, in milliseconds. Default: no limit. */
  readonly ttlMs?: number;
}

/** Why a message was not sent. */
export type SendErrorKind = "not-connected" | "full" | "too-long" | "gave-up" | "closed";

const SENTENCES: Readonly<Record<SendErrorKind, string>> = {
  "not-connected": "not connected, and the outbox is fail-fast: wait for open",
  full: "the outbox is full: use sendWhenRoom, or raise the limits",
  "too-long": "it is longer than maxBytes: raise maxBytes",
  "gave-up": "the client has given up: call reconnectNow",
  closed: "the client is closed: create another one",
};

/** The error of a message that was not sent. */
export class SendError extends Error {
  override name = "SendError";

  constructor(readonly kind: SendErrorKind) {
    super(`message not sent: ${SENTENCES[kind]}`);
  }
}

interface Item {
  readonly message: Message;
  readonly bytes: number;
  readonly since: number;
}

export class Outbox {
  bytes = 0;
  #items: Item[] = [];
  #waiting: ((error?: SendError) => void)[] = [];
  readonly #kind: NonNullable<OutboxOptions["kind"]>;
  readonly #maxMessages: number;
  readonly #maxBytes: number;
  readonly #ttlMs: number;

  constructor(options: OutboxOptions) {
    this.#kind = options.kind ?? "backpressure";
    this.#maxMessages = Math.max(1, options.maxMessages ?? 64);
    this.#maxBytes = options.maxBytes ?? Infinity;
    this.#ttlMs = options.ttlMs ?? Infinity;
  }

  /**
   * Queues a message. Returns how many messages were dropped for it, itself included.
   *
   * @throws SendError if there is no room, or if no message waits for a connection.
   */
  push(message: Message, now: number): number {
    if (this.#kind === "fail-fast") {
      throw new SendError("not-connected");
    }
    const bytes = this.#sizeOf(message);
    let dropped = this.expire(now);
    while (this.#items.length >= this.#maxMessages || this.bytes + bytes > this.#maxBytes) {
      if (this.#kind === "drop-newest") {
        return dropped + 1;
      }
      if (this.#kind !== "drop-oldest") {
        throw new SendError("full");
      }
      this.shift();
      dropped += 1;
    }
    this.#items.push({ message, bytes, since: now });
    this.bytes += bytes;
    return dropped;
  }

  /**
   * Checks a message for an open connection, in which this many bytes wait. Returns whether it may be sent; otherwise it is dropped.
   *
   * @throws SendError if the message does not fit and is not to be dropped.
   */
  admits(message: Message, buffered: number): boolean {
    const fits = buffered + this.#sizeOf(message) <= this.#maxBytes;
    if (!fits && !this.#kind.startsWith("drop")) {
      throw new SendError("full");
    }
    return fits;
  }

  /** Returns the oldest message without removing it. */
  peek(): Message | undefined {
    return this.#items[0]?.message;
  }

  /** Removes the oldest message. */
  shift(): void {
    this.bytes -= this.#items.shift()?.bytes ?? 0;
    this.#wake();
  }

  /** Drops the messages that have waited for too long; returns their number. */
  expire(now: number): number {
    const before = this.#items.length;
    this.#items = this.#items.filter((item) => now - item.since < this.#ttlMs);
    this.bytes = this.#items.reduce((sum, item) => sum + item.bytes, 0);
    if (this.#items.length < before) {
      this.#wake();
    }
    return before - this.#items.length;
  }

  /** Waits until a message has left the outbox. */
  room(): Promise<void> {
    return new Promise((resolve, reject) => this.#waiting.push((error) => (error ? reject(error) : resolve())));
  }

  /** Fails all that wait for room, and removes all messages if the client is closed. */
  fail(kind: SendErrorKind): void {
    if (kind === "closed") {
      this.#items = [];
      this.bytes = 0;
    }
    this.#wake(new SendError(kind));
  }

  #sizeOf(message: Message): number {
    const bytes = sizeOf(message);
    if (bytes > this.#maxBytes) {
      throw new SendError("too-long");
    }
    return bytes;
  }

  #wake(error?: SendError): void {
    for (const settle of this.#waiting.splice(0)) {
      settle(error);
    }
  }
}

/** Returns the size of a message in bytes; a string counts two per UTF-16 unit. */
export function sizeOf(message: Message): number {
  return typeof message === "string" ? message.length * 2 : "size" in message ? message.size : message.byteLength;
}
