export { delays, firstSpread, timerMs } from "./delays.js";
export { draw, ownDraw, randomSeed, seedForCall } from "./numbers.js";
export { QuietPeriods, type QuietPeriodsOptions } from "./quiet-periods.js";
export { parsePolicy, Policy, policyFromJSON } from "./policy.js";
export { PROFILES } from "./profiles.js";
export type { Backoff, HintMode, Jitter, Settings } from "./settings.js";
export { compact, parseDuration, PolicyError } from "./text.js";
export type { CloseAction, CloseCodes } from "./close-codes.js";
export { type Message, type OutboxOptions, SendError, type SendErrorKind } from "./outbox.js";
export { type DeniedRequest, fetchRetry, type FetchRetryOptions, StatusError } from "./fetch-retry.js";
export type { StopReason } from "./reconnect.js";
export type { Clock } from "./clock.js";
export { type Failure, retry, RetryError, type RetryOptions } from "./retry.js";
export {
  type RetryBudget,
  type ServerHealth,
  SuccessRateBudget,
  type SuccessRateBudgetOptions,
  TokenBudget,
  type TokenBudgetOptions,
} from "./retry-budget.js";
export type { CallOptions, PolicyLike, RetryAttempt, RetryEvent, RetryStop } from "./retry-call.js";
export type { DelaySource, RetryStopReason } from "./retry-machine.js";
export {
  ConnectionCloseEvent,
  ConnectionErrorEvent,
  type ConnectionEventMap,
  DroppedEvent,
  UnreachableEvent,
} from "./events.js";
export type { Attempt, ConnectionState, Network, ReconnectingWebSocketOptions } from "./options.js";
export { WindowBudget, type WindowBudgetOptions } from "./window-budget.js";
export { ReconnectingWebSocket } from "./reconnecting-websocket.js";
export type { Constructor, Socket } from "./socket.js";
export { type Ack, type AckId, type Acks, NotAcknowledgedError } from "./ack-window.js";
export { AckedWebSocket, type AckedWebSocketOptions } from "./acked-websocket.js";
export { type HeartbeatOptions, withHeartbeat } from "./heartbeat.js";
export { type Resume, type ResumeOptions, type ResumeStatus, withResume } from "./resume.js";
export { centrifugo, discord, graphqlWs, pusher } from "./presets.js";
