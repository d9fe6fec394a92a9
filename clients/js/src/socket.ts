/** What this package needs of connections. */

/** The part of the interface of `WebSocket` that this package uses. */
export interface Socket {
  binaryType: BinaryType;
  readonly bufferedAmount: number;
  readonly extensions: string;
  readonly protocol: string;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  /** Called before `onopen` by connections that negotiate in between. */
  onupgrade?: (() => void) | null;
  /** Called before `onopen` by such connections with the messages that follow it. */
  onearly?: ((data: unknown) => void) | null;
  send(data: never): void;
  close(code?: number, reason?: string): void;
}

/** A constructor of connections, like `WebSocket`. */
export type Constructor = new (url: string, protocols?: string[]) => Socket;

/** Returns the constructor that was given, or that of the platform. */
export function constructorOf(given: Constructor | undefined): Constructor {
  const WebSocket = given ?? (globalThis as { WebSocket?: Constructor }).WebSocket;
  if (!WebSocket) {
    throw new TypeError("no WebSocket on this platform: give a constructor in the option WebSocket");
  }
  return WebSocket;
}
