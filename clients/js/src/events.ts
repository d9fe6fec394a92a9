/** The events of a connection that is kept up. */

/** The event `close`: an attempt has failed, or a connection was lost. */
export class ConnectionCloseEvent extends Event {
  /** @param retryInMs How long the wait before the next attempt is; `undefined`: there is none. */
  constructor(
    readonly code: number,
    readonly reason: string,
    readonly wasClean: boolean,
    readonly retryInMs: number | undefined,
  ) {
    super("close");
  }
}

/** The event `error`: `error` is what a function of the application or the constructor of connections has thrown. */
export class ConnectionErrorEvent extends Event {
  constructor(readonly error: unknown) {
    super("error");
  }
}

/** The event `unreachable`: at least ten attempts in a row have failed. It is repeated when the outage has doubled. */
export class UnreachableEvent extends Event {
  constructor(
    readonly attempts: number,
    readonly lastedMs: number,
  ) {
    super("unreachable");
  }
}

/** The event `dropped`: messages were removed from the outbox without being sent. */
export class DroppedEvent extends Event {
  constructor(readonly messages: number) {
    super("dropped");
  }
}

/** The events by their names. */
export interface ConnectionEventMap {
  open: Event;
  message: MessageEvent;
  close: ConnectionCloseEvent;
  error: ConnectionErrorEvent;
  statechange: Event;
  unreachable: UnreachableEvent;
  dropped: DroppedEvent;
}
