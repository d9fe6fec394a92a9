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

/** How a connection has ended. */
export type Closing = Pick<CloseEvent, "code" | "reason" | "wasClean">;

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

/** Begins a connection that presents a reservation, if there is one: among the subprotocols, or else in the query. */
export function connect(
  url: string,
  protocols: string | string[] | undefined,
  reservation: string | undefined,
  given: Constructor | undefined,
): Socket {
  const WebSocket = constructorOf(given);
  const names = protocols === undefined ? [] : [protocols].flat();
  let address = url;
  if (reservation !== undefined) {
    if (names.length > 0) {
      names.push(`stagger-reservation.${reservation}`);
    } else {
      // Browsers fail a connection whose server selects none of the subprotocols, so the token is not the only one.
      address += `${address.includes("?") ? "&" : "?"}stagger-reservation=${reservation}`;
    }
  }
  return names.length > 0 ? new WebSocket(address, names) : new WebSocket(address);
}

/** Takes the handlers off a connection: its late events are lost. */
export function forget(socket: Socket): void {
  socket.onopen = socket.onmessage = socket.onclose = null;
  // Some implementations throw an error that nobody handles.
  socket.onerror = () => {};
}

/** Closes a connection. One that cannot be closed is left to the platform. */
export function close(socket: Socket, code?: number, reason?: string): void {
  try {
    socket.close(code, reason);
  } catch {
    // It was not open yet, or the reason is too long.
  }
}
