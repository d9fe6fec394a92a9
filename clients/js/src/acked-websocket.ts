/** A WebSocket that is kept up, with at-least-once delivery. */
import { type Ack, type AckId, type Acks, AckWindow, type Link } from "./ack-window.js";
import { PLATFORM } from "./clock.js";
import { Layer, type Received } from "./layer.js";
import type { Made, ReconnectingWebSocketOptions } from "./options.js";
import { type Message, SendError, type SendErrorKind } from "./outbox.js";
import { ReconnectingWebSocket } from "./reconnecting-websocket.js";
import type { Constructor } from "./socket.js";

export interface AckedWebSocketOptions<K extends AckId> extends ReconnectingWebSocketOptions {
  /** How messages are identified and acknowledged. */
  readonly acks: Acks<K>;
}

/**
 * A {@link ReconnectingWebSocket} with at-least-once delivery: unacknowledged messages are kept, and sent again over the next
 * connection, in order and before anything else. It is the other half of servers for `AckedClient` of `stagger-ws`.
 *
 * A server may receive a message twice. To store each message exactly once, it stores a message before it acknowledges it, and
 * detects duplicates by their id: it skips them, and acknowledges them again.
 *
 * After giving up the window is unchanged, and {@link reconnectNow} sends it again. It is kept in memory: to let messages outlive
 * the page, store what {@link unacked} returns.
 */
export class AckedWebSocket<K extends AckId = number> extends ReconnectingWebSocket {
  readonly #window: AckWindow<K>;

  constructor(
    url: Made<string | URL>,
    protocols: Made<string | string[] | undefined>,
    options: AckedWebSocketOptions<K>,
  ) {
    const window = new AckWindow(options.acks, options.clock ?? PLATFORM);
    super(url, protocols, { ...options, WebSocket: withWindow(window, options.WebSocket) });
    this.#window = window;
    this.addEventListener("statechange", () => {
      if (this.state.kind === "stopped") {
        window.giveUp();
      }
    });
  }

  /** Returns the unacknowledged messages in order; after {@link close} those that were left. Some of them may have arrived. */
  get unacked(): Message[] {
    return this.#window.messages;
  }

  /** Returns the bytes that wait, in the window, in the outbox and in the connection. */
  override get bufferedAmount(): number {
    return super.bufferedAmount + this.#window.unwrittenBytes;
  }

  /**
   * Accepts a message for delivery without waiting: it is sent until it is acknowledged.
   *
   * @throws SendError if the window is full, if the message is longer than the window, or if the client has given up or is closed.
   */
  override send(message: Message): void {
    const ended = this.#ended();
    if (ended) {
      throw new SendError(ended);
    }
    this.#window.push(message);
  }

  /**
   * Accepts a message for delivery like {@link send}, but waits while the window is full, in the order of the calls. Waits neither
   * for a connection nor for an acknowledgement.
   *
   * @throws SendError as {@link send} does, also later.
   */
  override async sendWhenRoom(message: Message): Promise<void> {
    const ended = this.#ended();
    if (ended) {
      throw new SendError(ended);
    }
    await this.#window.pushWhenRoom(message);
  }

  /**
   * Accepts a message like {@link sendWhenRoom}, and waits until the server has acknowledged it, across connections. While the
   * client has given up it goes on waiting, for {@link reconnectNow}.
   *
   * @throws SendError if the message was not accepted.
   * @throws NotAcknowledgedError if the client is closed first; its `wasSent` says whether the message may have arrived.
   */
  async sendAcked(message: Message): Promise<void> {
    const ended = this.#ended();
    if (ended) {
      throw new SendError(ended);
    }
    await new Promise<void>((resolve, reject) => {
      this.#window.pushWhenRoom(message, { resolve, reject }).catch(reject);
    });
  }

  /**
   * Sends a message that is not acknowledged, like {@link ReconnectingWebSocket.send}: over the open connection, or from the outbox
   * after the messages of the window. It is not sent again.
   *
   * @throws SendError if the message can neither be sent nor queued.
   */
  sendOnce(message: Message): void {
    super.send(message);
  }

  /**
   * Processes an acknowledgement that was received by other means than the connection. A message that has never been sent cannot be
   * acknowledged.
   */
  acknowledge(ack: Ack<K>): void {
    this.#window.acknowledge(ack);
  }

  /**
   * Waits until all messages are acknowledged, those sent meanwhile included.
   *
   * @throws SendError `gave-up` or `closed` if that is no longer possible.
   */
  flushed(): Promise<void> {
    return this.#window.flushed(this.#ended());
  }

  /** Closes for good, like {@link ReconnectingWebSocket.close}, without waiting for acknowledgements: {@link flushed} does. */
  override close(code?: number, reason?: string): void {
    super.close(code, reason);
    this.#window.close();
  }

  #ended(): SendErrorKind | undefined {
    switch (this.state.kind) {
      case "closed":
        return "closed";
      case "stopped":
        return "gave-up";
      default:
        return undefined;
    }
  }
}

/**
 * Returns a constructor of connections that write the window when they open, and take acknowledgements out of what they receive.
 * The client closes every connection that it has done with, lost ones too.
 */
function withWindow<K extends AckId>(window: AckWindow<K>, WebSocket: Constructor | undefined): Constructor {
  return class extends Layer implements Link {
    constructor(url: string, protocols?: string[]) {
      super(url, protocols, WebSocket);
    }

    write(message: Message): void {
      this.send(message as never);
    }

    reject(error: unknown): void {
      this.failed(error);
    }

    giveUp(reason: string): void {
      this.lose(reason);
    }

    override close(code?: number, reason?: string): void {
      window.down();
      super.close(code, reason);
    }

    protected override opened(): void {
      window.up(this);
      super.opened();
    }

    protected override early(data: unknown): void {
      // Before anything is sent again.
      this.#process(data);
    }

    protected override received(event: Received): void {
      if (this.#process(event.data)) {
        super.received(event);
      }
    }

    /** Processes a message that may be an acknowledgement; returns whether the client receives it. */
    #process(data: unknown): boolean {
      try {
        const { ack, isDelivered } = window.ackIn(data);
        if (ack) {
          window.acknowledge(ack);
        }
        return isDelivered;
      } catch (error) {
        // Thrown by the function of the application.
        this.failed(error);
        return true;
      }
    }
  };
}
