/**
 * The named policies that this package has: those recommended by stagger, and clients that reconnect and whose delays the
 * policy language expresses. Each text is that of the same profile in `stagger-core`, which names its source.
 */
export const PROFILES: Readonly<Record<string, string>> = {
  partysocket: "exponential base=3s cap=10s multiplier=1.3 jitter=none max-attempts=inf stable-after=5s",
  phoenix:
    "list delays=10ms,50ms,100ms,150ms,200ms,250ms,500ms,1s,2s,5s jitter=none max-attempts=inf stable-after=0s",
  signalr: "list delays=0s,2s,10s,30s jitter=none max-attempts=5 stable-after=0s",
  pusher: "constant base=1s jitter=none max-attempts=inf stable-after=0s",
  "aws-mqtt5": "exponential base=1s cap=2m floor=1s max-attempts=inf stable-after=30s",
  ezsockets: "list delays=0s,5s jitter=none max-attempts=inf stable-after=0s",
  "mcp-sdk": "exponential base=1s cap=30s multiplier=1.5 jitter=none max-attempts=3 stable-after=0s",
  default: "exponential max-hint=30s",
  "web-socket":
    "exponential base=15s cap=30s jitter=equal spread=10s max-attempts=inf max-hint=inf stable-after=10s",
  "background-job": "exponential base=30s cap=2m jitter=50% max-attempts=10",
  serverless: "exponential cap=2s max-attempts=3 max-hint=10s",
  interactive: "exponential base=20ms cap=500ms max-attempts=2 max-hint=2s",
};

/** Returns the profile with this name. Hyphens, underscores and dots are equivalent, and so are upper and lower case. */
export function profileNamed(name: string): string | undefined {
  // Only the letters of ASCII, as in the core.
  const letters = name.replace(/[_.]/g, "-").replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  return Object.hasOwn(PROFILES, letters) ? letters : undefined;
}
