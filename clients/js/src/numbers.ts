/** Numbered random draws and the arithmetic of `stagger-core`: the same bits for the same seed. */

/** The longest length of time that delays are computed with, in nanoseconds: 2^63 − 1, about 292 years. */
export const LONGEST = (1n << 63n) - 1n;
/** The largest number of 64 bits. */
export const MAX_U64 = (1n << 64n) - 1n;
export const SECOND = 1_000_000_000n;
export const MILLISECOND = 1_000_000n;

const STEP = 0x2d358dccaa6c78a5n;
const MIX = 0x8bb84b93962eacc9n;

/** What a draw is for. Each purpose has numbers of its own, so one never shifts another. */
export const Purpose = {
  Spread: 0n,
  Delay: 1n,
  Hint: 2n,
  Own: 4n,
  Again: 5n,
} as const;
export type Purpose = (typeof Purpose)[keyof typeof Purpose];

/**
 * Returns 64 random bits of `seed`: wyrand, read at a numbered point. They are those of `stagger_core::Seed`.
 *
 * The episode is part of the number: without it, a client would draw the same delays after each restart of the count.
 *
 * Source: Wang Yi, wyhash "final version 4".
 */
export function bits(seed: bigint, episode: number, n: number, purpose: Purpose): bigint {
  return numbered(seed, (BigInt(episode) << 35n) + (BigInt(n) << 3n) + purpose);
}

function numbered(seed: bigint, number: bigint): bigint {
  const point = (seed + (number + 1n) * STEP) & MAX_U64;
  const product = point * (point ^ MIX);
  return (product >> 64n) ^ (product & MAX_U64);
}

/**
 * Returns the `n`-th number of 64 random bits for a purpose of your own, for `n` below 2^61. No delay uses them.
 *
 * @param seed A number of 64 bits.
 */
export function ownDraw(seed: bigint, n: bigint): bigint {
  return numbered(seed & MAX_U64, ((n << 3n) + Purpose.Own) & MAX_U64);
}

/**
 * Returns the seed of the call or connection number `id`: an independent stream for each `id`.
 *
 * @param seed A number of 64 bits.
 */
export function seedForCall(seed: bigint, id: bigint): bigint {
  return scramble(id + scramble(seed));
}

/** Applies SplitMix64's finalizer (Steele, Lea, Flood 2014; constants of Stafford's variant 13). */
function scramble(x: bigint): bigint {
  let z = (x + 0x9e3779b97f4a7c15n) & MAX_U64;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MAX_U64;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MAX_U64;
  return z ^ (z >> 31n);
}

/** Returns a seed from the random numbers of the platform. */
export function randomSeed(): bigint {
  const [low = 0, high = 0] = crypto.getRandomValues(new Uint32Array(2));
  return (BigInt(high) << 32n) | BigInt(low);
}

/** Draws uniformly from `[lo, hi]`, both ends included: `lo + (random · (hi − lo + 1) >> 64)`. */
export function draw(lo: bigint, hi: bigint, random: bigint): bigint {
  return hi <= lo ? lo : lo + ((random * (hi - lo + 1n)) >> 64n);
}

/** Returns the largest number that is not above `nanos`: a converted bound stays a bound. Exact below 104 days. */
export function float(nanos: bigint): number {
  const nearest = Number(nanos);
  // The product is less by more than half of the distance to the next number below, and by at most that distance, so it is
  // rounded to that number.
  return BigInt(nearest) <= nanos ? nearest : nearest * (1 - 2 ** -53);
}

/** Returns a length in whole nanoseconds, truncated. */
export function whole(nanos: number): bigint {
  return BigInt(Math.trunc(nanos));
}

export function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

export function greatest(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
