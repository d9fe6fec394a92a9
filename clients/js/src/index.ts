export { delays, firstSpread, timerMs } from "./delays.js";
export { draw, ownDraw, randomSeed, seedForCall } from "./numbers.js";
export { parsePolicy, Policy, policyFromJSON } from "./policy.js";
export { PROFILES } from "./profiles.js";
export type { Backoff, HintMode, Jitter, Settings } from "./settings.js";
export { compact, parseDuration, PolicyError } from "./text.js";
export type { CloseAction } from "./close-codes.js";
export { type Message, type OutboxOptions, SendError, type SendErrorKind } from "./outbox.js";
export type { StopReason } from "./reconnect.js";
export {
  type Attempt,
  type Clock,
  ConnectionCloseEvent,
  ConnectionErrorEvent,
  type ConnectionEventMap,
  type ConnectionState,
  type Constructor,
  DroppedEvent,
  type Network,
  ReconnectingWebSocket,
  type ReconnectingWebSocketOptions,
  type Socket,
  UnreachableEvent,
} from "./reconnecting-websocket.js";
