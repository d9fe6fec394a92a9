export { delays, firstSpread, timerMs } from "./delays.js";
export { draw, ownDraw, randomSeed, seedForCall } from "./numbers.js";
export { parsePolicy, Policy, policyFromJSON } from "./policy.js";
export { PROFILES } from "./profiles.js";
export type { Backoff, HintMode, Jitter, Settings } from "./settings.js";
export { compact, parseDuration, PolicyError } from "./text.js";
