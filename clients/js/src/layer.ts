/** Connections over others, for protocols above WebSocket. */
import { type Constructor, constructorOf, type Socket } from "./socket.js";

/** The part of a `MessageEvent` that layers use. */
export interface Received {
  readonly data: unknown;
  readonly origin?: string;
}

/** How a connection ended. */
export interface Ended {
  readonly code: number;
  readonly reason: string;
  readonly wasClean: boolean;
}

/** A connection that passes on what another one does. Subclasses override what they change. */
export abstract class Layer implements Socket {
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  onupgrade: (() => void) | null = null;
  onearly: ((data: unknown) => void) | null = null;
  readonly #inner: Socket;

  constructor(url: string, protocols: string[] | undefined, WebSocket: Constructor | undefined) {
    const Inner = constructorOf(WebSocket);
    const inner = protocols ? new Inner(url, protocols) : new Inner(url);
    this.#inner = inner;
    inner.onopen = () => this.opened();
    inner.onmessage = (event: Received) => this.received(event);
    inner.onerror = (event) => this.onerror?.(event);
    inner.onclose = (event: Ended) => this.ended(event);
    inner.onupgrade = () => this.onupgrade?.();
    inner.onearly = (data) => this.early(data);
  }

  get binaryType(): BinaryType {
    return this.#inner.binaryType;
  }

  set binaryType(type: BinaryType) {
    this.#inner.binaryType = type;
  }

  get bufferedAmount(): number {
    return this.#inner.bufferedAmount;
  }

  get extensions(): string {
    return this.#inner.extensions;
  }

  get protocol(): string {
    return this.#inner.protocol;
  }

  send(data: never): void {
    this.#inner.send(data);
  }

  close(code?: number, reason?: string): void {
    if (!this.onmessage) {
      // The client has done with it, so what still arrives must not count as received in any layer.
      this.#detach();
    }
    this.#inner.close(code, reason);
  }

  /** Handles the opening of the connection. */
  protected opened(): void {
    this.onopen?.({} as never);
  }

  /** Handles a message that was received before the connection opened. It is received again after that. */
  protected early(data: unknown): void {
    this.onearly?.(data);
  }

  /** Handles a message. */
  protected received(event: Received): void {
    this.onmessage?.(event as never);
  }

  /** Handles the end of the connection, which is reported once. */
  protected ended(event: Ended): void {
    this.onclose?.(event as never);
  }

  /** Reports an error of the application, which does not end the connection. */
  protected failed(error: unknown): void {
    this.onerror?.({ error } as never);
  }

  /** Ends the connection without waiting for the server: to the client it is lost. */
  protected lose(reason: string): void {
    this.#detach();
    try {
      this.#inner.close();
    } catch {
      // A connection that cannot be closed is left to the platform.
    }
    this.ended({ code: 1006, reason, wasClean: false });
  }

  #detach(): void {
    const inner = this.#inner;
    inner.onopen = inner.onmessage = inner.onclose = inner.onupgrade = inner.onearly = null;
    // Some implementations throw an error that nobody handles.
    inner.onerror = () => {};
  }
}
