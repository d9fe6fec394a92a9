/** The parts of Node that the tests use; the package itself has no types but those of the platform. */
declare module "node:test" {
  export function test(name: string, body: () => void | Promise<void>): void;
}
declare module "node:assert/strict" {
  const assert: {
    (value: unknown, message?: string): asserts value;
    equal(actual: unknown, expected: unknown, message?: string): void;
    deepEqual(actual: unknown, expected: unknown, message?: string): void;
    ok(value: unknown, message?: string): asserts value;
    throws(body: () => unknown, expected?: (error: unknown) => boolean): void;
    rejects(body: Promise<unknown>, expected?: (error: unknown) => boolean): Promise<void>;
    match(text: string, pattern: RegExp, message?: string): void;
  };
  export default assert;
}
declare module "node:fs" {
  export function readFileSync(path: URL | string, encoding: "utf8"): string;
}
declare module "node:crypto" {
  export function createHash(algorithm: string): { update(data: Uint8Array): void; digest(encoding: "hex"): string };
}
declare const process: { setUncaughtExceptionCaptureCallback(callback: ((error: unknown) => void) | null): void };
declare function setImmediate(callback: (value: unknown) => void): void;
