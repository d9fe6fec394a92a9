/** What a connection that is kept up is given, and what it says about itself. */
import type { Clock } from "./clock.js";
import type { CloseCodes } from "./close-codes.js";
import type { OutboxOptions } from "./outbox.js";
import type { StopReason } from "./reconnect.js";
import type { Settings } from "./settings.js";
import type { Constructor } from "./socket.js";

/** An attempt to connect, for functions that make an address or subprotocols. */
export interface Attempt {
  /** The number of the attempt in this episode, from 1. */
  readonly number: number;
  /** The last connection was closed because its credentials were rejected. */
  readonly needsFreshCredentials: boolean;
  readonly signal: AbortSignal;
}

/** A value, or a function that makes it for each attempt. */
export type Made<T> = T | ((attempt: Attempt) => T | Promise<T>);

/** Makes the value of an attempt. */
export function made<T>(value: Made<T>, attempt: Attempt): T | Promise<T> {
  return typeof value === "function" ? (value as (attempt: Attempt) => T | Promise<T>)(attempt) : value;
}

/** Says whether the device has a network, and has the events `online` and `offline`. */
export interface Network extends EventTarget {
  readonly navigator?: { readonly onLine?: boolean };
}

export interface ReconnectingWebSocketOptions {
  /** When to reconnect; `parsePolicy` makes one. Default: `web-socket`, the profile for connections that are kept up. */
  readonly policy?: { readonly settings: Readonly<Settings> };
  /** The constructor of connections. Default: the platform's `WebSocket`. */
  readonly WebSocket?: Constructor;
  /** What happens to messages that cannot be sent yet. */
  readonly outbox?: OutboxOptions;
  /** Codes whose meaning differs from the registered one: `{ 1000: "reconnect", 4401: "reauthenticate" }`, or a preset. */
  readonly closeCodes?: CloseCodes;
  /** How long an attempt may take, in milliseconds. Default 10 s. */
  readonly connectTimeoutMs?: number;
  /** Closes the client when it is aborted. */
  readonly signal?: AbortSignal;
  /** For reproducible waits. Default: random. */
  readonly seed?: bigint;
  /** For tests. */
  readonly clock?: Clock;
  /** For tests. Default: the platform's. */
  readonly network?: Network;
}

/** What the client does at present. Times are in milliseconds of `clock.now()`, by default `performance.now()`. */
export type ConnectionState =
  | { readonly kind: "connecting" | "open" | "closed" }
  | { readonly kind: "waiting"; readonly until: number; readonly unreachable: boolean }
  | { readonly kind: "offline" }
  | { readonly kind: "stopped"; readonly reason: StopReason | "normal-end" };
