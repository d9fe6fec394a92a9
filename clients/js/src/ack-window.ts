/** The messages that a server has not acknowledged: the window of `AckedClient` in `stagger-ws`. */
import type { Clock } from "./clock.js";
import { type Message, SendError, type SendErrorKind, sizeOf } from "./outbox.js";
import { Watchdog } from "./watchdog.js";

/** What identifies a message. Only ids of one kind are compared. */
export type AckId = number | bigint | string;

/** What a message from the server acknowledges: only the message with this id, or all up to and including it. */
export type Ack<K> = { readonly one: K } | { readonly upTo: K };

/** How messages are identified and acknowledged, and how many may be unacknowledged. */
export interface Acks<K> {
  /** Returns the id of an outgoing message. Ids are unique among unacknowledged messages; for `upTo` they ascend. */
  id(message: Message): K;
  /**
   * Returns what an incoming message acknowledges; `undefined`: it is not an acknowledgement. Binary messages are a `Blob`, or an
   * `ArrayBuffer` if `binaryType` says so.
   */
  ack(data: unknown): Ack<K> | undefined;
  /** The maximum number of unacknowledged messages, at least 1. Default 64. */
  readonly window?: number;
  /** The maximum size of all unacknowledged messages, in bytes; a string counts two per UTF-16 unit. Default: no limit. */
  readonly maxBytes?: number;
  /**
   * Treats the connection as lost if a message that was sent over it is not acknowledged for this many milliseconds.
   * Choose a time longer than the server's slowest response. Default: no limit.
   */
  readonly ackTimeoutMs?: number;
  /** Whether acknowledgements are events `message`, too, for protocols whose acknowledgements carry data. Default `consume`. */
  readonly delivery?: "consume" | "pass-through";
}

/** The error of a message that the server had not acknowledged when the client was closed. */
export class NotAcknowledgedError extends Error {
  override name = "NotAcknowledgedError";

  /** @param wasSent The message was sent at least once, so the server may have it. */
  constructor(readonly wasSent: boolean) {
    const fate = wasSent ? "it was sent and may have arrived" : "it was never sent";
    super(`message not acknowledged: the client was closed; ${fate}: unacked has it`);
  }
}

/** The open connection that the window writes to. */
export interface Link {
  write(message: Message): void;
  /** Reports a message that no connection can write. */
  reject(error: unknown): void;
  /** Ends the connection, because the server does not acknowledge. */
  giveUp(reason: string): void;
}

/** The two ends of a promise. */
interface Promised {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface Entry<K> {
  readonly id: K;
  readonly message: Message;
  readonly bytes: number;
  /** Waits for the acknowledgement. */
  readonly sender: Promised | undefined;
  /** When it was last written, by the clock; `undefined`: never. */
  writtenAt: number | undefined;
}

export class AckWindow<K extends AckId> {
  readonly #acks: Acks<K>;
  readonly #clock: Clock;
  readonly #watchdog: Watchdog;
  readonly #maxMessages: number;
  readonly #maxBytes: number;
  /** Messages that have ever been written come first. */
  #entries: Entry<K>[] = [];
  #bytes = 0;
  /** How many entries have been written to the current connection. */
  #written = 0;
  #link: Link | undefined;
  /** The message whose acknowledgement has a time limit. */
  #watched: Entry<K> | undefined;
  /** The messages that wait for room, in order. */
  #waiting: (Promised & { readonly entry: Entry<K> })[] = [];
  #flushing: Promised[] = [];

  constructor(acks: Acks<K>, clock: Clock) {
    this.#acks = acks;
    this.#clock = clock;
    this.#watchdog = new Watchdog(clock);
    this.#maxMessages = Math.max(1, acks.window ?? 64);
    this.#maxBytes = acks.maxBytes ?? Infinity;
  }

  /** Returns the unacknowledged messages in order. */
  get messages(): Message[] {
    return this.#entries.map(({ message }) => message);
  }

  /** Returns the size of the messages that wait for a connection. */
  get unwrittenBytes(): number {
    return this.#entries.slice(this.#written).reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /**
   * Adds a message.
   *
   * @throws SendError if there is no room, or if the message is longer than the window.
   */
  push(message: Message): void {
    const entry = this.#entry(message, undefined);
    // A message does not overtake those that wait.
    if (this.#waiting.length > 0 || !this.#fits(entry)) {
      throw new SendError("full");
    }
    this.#add(entry);
    this.#write();
  }

  /** Adds a message, waiting for room, in the order of the calls. `sender` is told of its acknowledgement. */
  pushWhenRoom(message: Message, sender?: Promised): Promise<void> {
    return new Promise((resolve, reject) => {
      // What is thrown here rejects the promise.
      this.#waiting.push({ entry: this.#entry(message, sender), resolve, reject });
      this.#admit();
      this.#write();
    });
  }

  /** Waits until all messages are acknowledged, those that wait for room included. `ended` says why that cannot be. */
  flushed(ended: SendErrorKind | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#flushing.push({ resolve, reject });
      if (ended) {
        this.#fail(ended);
      } else {
        this.#settleFlushed();
      }
    });
  }

  /** Writes all unacknowledged messages to a connection that has opened. */
  up(link: Link): void {
    this.#link = link;
    this.#written = 0;
    this.#write();
  }

  /** Records that the connection has ended. The client has only one at a time, and closes it before the next one. */
  down(): void {
    this.#link = undefined;
    this.#written = 0;
    this.#watch();
  }

  /** Returns what an incoming message acknowledges, and whether it is delivered. */
  ackIn(data: unknown): { ack: Ack<K> | undefined; isDelivered: boolean } {
    const ack = this.#acks.ack(data);
    return { ack, isDelivered: ack === undefined || this.#acks.delivery === "pass-through" };
  }

  /** Removes acknowledged messages. Only messages that have been sent can be acknowledged. */
  acknowledge(ack: Ack<K>): void {
    const isSent = ({ writtenAt }: Entry<K>) => writtenAt !== undefined;
    let isCovered: (entry: Entry<K>, at: number) => boolean;
    if ("one" in ack) {
      isCovered = (entry) => entry.id === ack.one && isSent(entry);
    } else {
      // Ids ascend, so no later message is covered. NaN covers none.
      const first = this.#entries.findIndex((entry) => !(entry.id <= ack.upTo && isSent(entry)));
      isCovered = (_, at) => first < 0 || at < first;
    }
    const removed = this.#remove(isCovered);
    if (removed.length > 0) {
      removed.forEach(({ sender }) => sender?.resolve());
      this.#admit();
      this.#write();
      this.#settleFlushed();
    }
  }

  /** Fails all that wait. The messages stay, for the next connection. */
  giveUp(): void {
    this.#fail("gave-up");
  }

  /** Fails all that wait, and the acknowledgements. The messages stay, for the application. */
  close(): void {
    this.#fail("closed");
    for (const { sender, writtenAt } of this.#entries) {
      sender?.reject(new NotAcknowledgedError(writtenAt !== undefined));
    }
  }

  #entry(message: Message, sender: Promised | undefined): Entry<K> {
    const bytes = sizeOf(message);
    if (bytes > this.#maxBytes) {
      throw new SendError("too-long");
    }
    return { id: this.#acks.id(message), message: owned(message), bytes, sender, writtenAt: undefined };
  }

  #fits({ bytes }: Entry<K>): boolean {
    return this.#entries.length < this.#maxMessages && this.#bytes + bytes <= this.#maxBytes;
  }

  #add(entry: Entry<K>): void {
    this.#entries.push(entry);
    this.#bytes += entry.bytes;
  }

  /** Adds messages that wait, as many as there is room for. */
  #admit(): void {
    for (let next = this.#waiting[0]; next && this.#fits(next.entry); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#add(next.entry);
      next.resolve();
    }
  }

  #write(): void {
    for (let link = this.#link; link; link = this.#link) {
      const entry = this.#entries[this.#written];
      if (!entry) {
        break;
      }
      try {
        link.write(entry.message);
        entry.writtenAt = this.#clock.now();
        this.#written += 1;
      } catch (error) {
        // No connection can ever write it, and those behind it would wait forever.
        this.#remove((other) => other === entry);
        entry.sender?.reject(error);
        link.reject(error);
        this.#admit();
      }
    }
    this.#watch();
    this.#settleFlushed();
  }

  /** Removes messages, and returns them. */
  #remove(isRemoved: (entry: Entry<K>, at: number) => boolean): Entry<K>[] {
    const [kept, removed, written]: [Entry<K>[], Entry<K>[], number] = [[], [], this.#written];
    this.#entries.forEach((entry, at) => {
      if (!isRemoved(entry, at)) {
        kept.push(entry);
        return;
      }
      removed.push(entry);
      this.#bytes -= entry.bytes;
      this.#written -= at < written ? 1 : 0;
    });
    this.#entries = kept;
    return removed;
  }

  /** Watches over the oldest outstanding acknowledgement. */
  #watch(): void {
    const [link, limit] = [this.#link, this.#acks.ackTimeoutMs];
    const oldest = link && limit !== undefined && this.#written > 0 ? this.#entries[0] : undefined;
    if (oldest === this.#watched) {
      return;
    }
    this.#watched = oldest;
    if (!link || limit === undefined || oldest?.writtenAt === undefined) {
      this.#watchdog.disarm();
      return;
    }
    const expired = () => link.giveUp(`no acknowledgement for ${limit} ms`);
    this.#watchdog.arm(Math.max(1, oldest.writtenAt + limit - this.#clock.now()), expired);
  }

  #fail(kind: SendErrorKind): void {
    for (const { reject } of this.#waiting.splice(0)) {
      reject(new SendError(kind));
    }
    this.#settleFlushed();
    this.#flushing.splice(0).forEach(({ reject }) => reject(new SendError(kind)));
  }

  #settleFlushed(): void {
    // Messages wait for room only while others have it.
    if (this.#entries.length === 0) {
      this.#flushing.splice(0).forEach(({ resolve }) => resolve());
    }
  }
}

/** Returns a message that the application cannot change any more: it may be sent again. */
function owned(message: Message): Message {
  if (typeof message === "string" || message instanceof Blob) {
    return message;
  }
  if (ArrayBuffer.isView(message)) {
    return new Uint8Array(message.buffer, message.byteOffset, message.byteLength).slice();
  }
  return new Uint8Array(message).slice();
}
