/** What a close code means, and the advice in the reason of a close frame: as the client of `stagger-ws`. */
import { MILLISECOND } from "./numbers.js";

/**
 * How the client reacts to a close code: it does not reconnect (`end`, `fatal`), reconnects (`reconnect`), reconnects without
 * counting the connection as healthy (`unhealthy`), or reconnects with fresh credentials, once per healthy connection
 * (`reauthenticate`).
 */
export type CloseAction = "end" | "fatal" | "reconnect" | "unhealthy" | "reauthenticate";

/**
 * The codes whose action differs from the registered one, or a function that returns the action: `undefined` is the registered one.
 * {@link centrifugo}, {@link discord}, {@link graphqlWs} and {@link pusher} are such functions.
 */
export type CloseCodes =
  | Readonly<Record<number, CloseAction>>
  | ((code: number, reason: string) => CloseAction | undefined);

/** The interval, in nanoseconds from the close, in which the server wants this client back. */
export interface Within {
  readonly from: bigint;
  readonly to: bigint;
  /** The token that the server accepts at that time. */
  readonly reservation?: string;
}

/** The registered codes; all others reconnect. Sources: RFC 6455, section 7.4.1, and IANA's registry of close codes. */
const ACTIONS: Readonly<Record<number, CloseAction>> = {
  1000: "end",
  1002: "fatal",
  1003: "fatal",
  1007: "fatal",
  1008: "fatal",
  1009: "fatal",
  1010: "fatal",
  1011: "unhealthy",
  1015: "fatal",
  3000: "reauthenticate",
  3003: "reauthenticate",
};

/**
 * The shortest waits after 1012 and 1013 without advice and what is drawn above them, in milliseconds, from the messages that the
 * registry refers to.
 */
const WAITS: Readonly<Record<number, readonly [number, number]>> = { 1012: [5_000, 25_000], 1013: [30_000, 90_000] };

/** The maximum length of a reason in bytes: RFC 6455, section 5.5. */
const MAX_REASON = 123;
/** The longest wait, and the longest spread, that a server can ask for: a day. */
const MAX_ADVICE_MS = 86_400_000;
/** What is longer than 366 days cannot be meant, such as a time since 1970: then it is no advice. */
const LONGEST_MS = 366 * MAX_ADVICE_MS;

/** Returns the action for a close frame. What a function in `changed` throws is passed on. */
export function closeAction(code: number, reason: string, changed: CloseCodes = {}): CloseAction | Within {
  const given = typeof changed === "function" ? changed(code, reason) : changed[code];
  const action = given ?? ACTIONS[code] ?? "reconnect";
  if (action !== "reconnect" && action !== "unhealthy") {
    return action;
  }
  const wait = given ? undefined : WAITS[code];
  return advice(reason) ?? (wait ? within(...wait) : action);
}

function within(retryAfterMs: number, spreadMs: number): Within {
  const nanos = (ms: number) => BigInt(Math.min(ms, MAX_ADVICE_MS)) * MILLISECOND;
  return { from: nanos(retryAfterMs), to: nanos(retryAfterMs) + nanos(spreadMs) };
}

/** Parses `{"retry_after_ms":8000,"spread_ms":20000}`, or a reservation. Unknown fields are ignored. */
function advice(reason: string): Within | undefined {
  // A letter has at least a byte.
  if (reason.length > MAX_REASON) {
    return undefined;
  }
  try {
    const { retry_after_ms: after, spread_ms: spread = 0, reservation } = JSON.parse(reason) as Readonly<Record<string, unknown>>;
    if (isCount(after) && isCount(spread)) {
      const isReserved = typeof reservation === "string" && /^[0-9a-fA-F]{32}$/.test(reservation);
      return isReserved ? { ...within(after, 0), reservation } : within(after, spread);
    }
  } catch {
    // No JSON, or `null`.
  }
  return undefined;
}

/** Returns whether this is a whole number of milliseconds that a server can mean. */
function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= LONGEST_MS;
}
