/** What a connection that is kept up has in common with a `WebSocket`, besides its methods. */
import type { ConnectionCloseEvent, ConnectionErrorEvent, ConnectionEventMap } from "./events.js";

type Handler<E> = ((event: E) => void) | null;

/** An event target with the constants and the handlers of `WebSocket`. */
export class ConnectionTarget extends EventTarget {
  // Getters, because esbuild before 0.18 lowers all private members of a class with static fields.
  static get CONNECTING(): 0 {
    return 0;
  }
  static get OPEN(): 1 {
    return 1;
  }
  static get CLOSING(): 2 {
    return 2;
  }
  static get CLOSED(): 3 {
    return 3;
  }
  readonly CONNECTING = 0;
  readonly OPEN = 1;
  readonly CLOSING = 2;
  readonly CLOSED = 3;

  onopen: Handler<Event> = null;
  onmessage: Handler<MessageEvent> = null;
  onclose: Handler<ConnectionCloseEvent> = null;
  onerror: Handler<ConnectionErrorEvent> = null;

  constructor() {
    super();
    for (const type of ["open", "message", "close", "error"] as const) {
      // As listeners, so that the platform reports their exceptions.
      super.addEventListener(type, (event) => this[`on${type}`]?.(event as never));
    }
  }
}

export interface ConnectionTarget {
  addEventListener<K extends keyof ConnectionEventMap>(
    type: K,
    listener: (event: ConnectionEventMap[K]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
}
