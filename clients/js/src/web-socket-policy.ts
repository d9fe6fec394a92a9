import { SECOND } from "./numbers.js";
import type { Settings } from "./settings.js";

/** The settings of the profile `web-socket`, without the parser: a test compares them with the text of the profile. */
export const WEB_SOCKET: Readonly<Settings> = {
  backoff: "exponential",
  base: 15n * SECOND,
  min: 0n,
  step: 0n,
  multiplier: 2,
  delays: [],
  cap: 30n * SECOND,
  floor: 0n,
  jitter: { kind: "equal" },
  spread: 10n * SECOND,
  maxAttempts: null,
  maxElapsed: null,
  maxHint: null,
  hint: { kind: "at-least" },
  hintSpread: null,
  throttledBase: null,
  localBase: null,
  stableAfter: 10n * SECOND,
};
