import assert from "node:assert/strict";
import { test } from "node:test";
import { bits, draw, float, LONGEST, MAX_U64, ownDraw, Purpose, seedForCall, whole } from "../src/numbers.js";

test("the bits of a seed are those that stagger-core has frozen", () => {
  const seed = 0x5eedn;
  assert.deepEqual(
    [
      bits(seed, 0, 0, Purpose.Spread),
      bits(seed, 0, 1, Purpose.Delay),
      bits(seed, 0, 1, Purpose.Hint),
      bits(seed, 0, 2, Purpose.Delay),
      bits(seed, 1, 1, Purpose.Delay),
      ownDraw(seed, 1n),
      seedForCall(seed, 7n),
      seedForCall(0n, 0n),
    ],
    [
      0x3500d81ca68b61b4n,
      0x9147a5693f6c4b32n,
      0xa96bbb7aa1f9d10cn,
      0x95802823aeae2c64n,
      2_563_172_213_274_292_337n,
      17_153_841_685_004_970_084n,
      11_461_534_527_337_161_066n,
      12_035_550_249_420_947_055n,
    ],
  );
});

test("a draw reaches both ends of its interval and nothing beyond", () => {
  for (const [lo, hi] of [[0n, 0n], [0n, 1n], [7n, 7n], [5n, 9n], [0n, LONGEST], [9n, 3n]] as const) {
    const top = hi > lo ? hi : lo;
    assert.equal(draw(lo, hi, 0n), lo);
    assert.equal(draw(lo, hi, MAX_U64), top);
  }
});

test("a length as a floating-point number is never above it", () => {
  for (const nanos of [0n, 1n, (1n << 53n) - 1n, (1n << 53n) + 1n, (1n << 53n) + 3n, LONGEST - 1n, LONGEST, MAX_U64]) {
    const below = whole(float(nanos));
    assert.ok(below <= nanos && nanos - below < 2048n, `${nanos}: ${below}`);
  }
  assert.equal(float(30_000_000_000n), 3e10);
  for (let n = 0n; n < 2_000n; n += 1n) {
    const nanos = (ownDraw(7n, n) | (1n << 63n)) >> (n % 11n);
    const float64 = new DataView(new ArrayBuffer(8));
    float64.setFloat64(0, float(nanos));
    const below = whole(float64.getFloat64(0));
    float64.setBigUint64(0, float64.getBigUint64(0) + 1n);
    assert.ok(below <= nanos && whole(float64.getFloat64(0)) > nanos, `${nanos}: ${below}, and not the greatest`);
  }
});
