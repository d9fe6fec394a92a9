/**
 * Close codes of protocols with codes of their own, for the option `closeCodes`: the presets of `stagger-ws`. A vector that is written
 * by its tests holds all codes together. Codes 1012 and 1013 wait as registered, and advice in the reason is followed.
 */
import type { CloseAction } from "./close-codes.js";

/**
 * Returns the actions of Centrifugo. Below 3000, only 1009 is fatal; 3000 to 3499 and 4000 to 4499 reconnect; 3500 to 3999 and 4500 to
 * 4999 are fatal. A reason `{"reason": …, "reconnect": …}` takes precedence over the code.
 *
 * Source: https://centrifugal.dev/docs/server/codes, and `onClose` in centrifuge-js.
 */
export function centrifugo(code: number, reason: string): CloseAction | undefined {
  const said = reconnects(reason);
  if (said === false) {
    return "fatal";
  }
  if (said !== true && (code === 1009 || within(code, 3500, 3999) || within(code, 4500, 4999))) {
    return "fatal";
  }
  return within(code, 1012, 1013) ? undefined : "reconnect";
}

/**
 * Returns the actions of Discord's gateway: 4004 and 4010 to 4014 are fatal, all others reconnect, including 1000 and 1001. Starting a
 * new session (after 4007 and 4009) is up to the application.
 *
 * Source: https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway-gateway-close-event-codes.
 */
export function discord(code: number): CloseAction | undefined {
  if (within(code, 1000, 1001)) {
    return "reconnect";
  }
  return code === 4004 || within(code, 4010, 4014) ? "fatal" : undefined;
}

const GRAPHQL_WS_FATAL = [1004, 1011, 4004, 4005, 4400, 4401, 4406, 4409, 4429, 4500];

/**
 * Returns the actions of the protocol `graphql-transport-ws`, as the client of the package graphql-ws 6 has them. Fatal: all codes below
 * 2000 except 1000, 1001, 1005, 1006, 1012, 1013 and 1014; and 4004, 4005, 4400, 4401, 4406, 4409, 4429 and 4500.
 *
 * Source: `shouldRetryConnectOrThrow` in https://github.com/enisdenjo/graphql-ws/blob/master/src/client.ts.
 */
export function graphqlWs(code: number): CloseAction | undefined {
  if (within(code, 1000, 1001)) {
    return "reconnect";
  }
  return GRAPHQL_WS_FATAL.includes(code) || within(code, 1016, 1999) ? "fatal" : undefined;
}

/**
 * Returns the actions of Pusher Channels: 4000 to 4099 are fatal, 4100 to 4299 reconnect, and from 4300 on they are fatal. After 4200 to
 * 4299 the protocol says "immediately"; here clients spread, because all of them receive the code at once.
 *
 * Source: https://pusher.com/docs/channels/library_auth_reference/pusher-websockets-protocol, "Connection closure".
 */
export function pusher(code: number): CloseAction | undefined {
  return within(code, 4000, 4099) || within(code, 4300, 4999) ? "fatal" : undefined;
}

function within(code: number, from: number, to: number): boolean {
  return code >= from && code <= to;
}

/** Returns what a reason says about reconnecting, if it is one of Centrifugo's. */
function reconnects(reason: string): unknown {
  try {
    return (JSON.parse(reason) as { reconnect?: unknown } | null)?.reconnect;
  } catch {
    return undefined;
  }
}
