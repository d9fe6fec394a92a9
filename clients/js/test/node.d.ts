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
declare module "node:events" {
  export function getEventListeners(target: EventTarget, type: string): unknown[];
}
declare module "node:v8" {
  export function setFlagsFromString(flags: string): void;
}
declare module "node:vm" {
  export function runInNewContext(code: string): unknown;
}
declare module "node:crypto" {
  export function createHash(algorithm: string): { update(data: Uint8Array): void; digest(encoding: "hex" | "base64"): string };
}
declare const process: {
  setUncaughtExceptionCaptureCallback(callback: ((error: unknown) => void) | null): void;
  on(event: "warning", listener: (warning: Error) => void): void;
};
declare function setImmediate(callback: (value: unknown) => void): void;
declare module "node:http" {
  export interface Upgraded {
    write(data: string | Uint8Array): void;
    on(event: "data", listener: (data: Uint8Array) => void): void;
    end(): void;
    destroy(): void;
  }
  export interface Incoming {
    readonly method: string;
    readonly url: string;
    readonly headers: Record<string, string>;
    on(event: "data", listener: (data: Uint8Array) => void): void;
    on(event: "end", listener: () => void): void;
  }
  export interface Answer {
    writeHead(status: number, headers?: Record<string, string>): void;
    write(data: string | Uint8Array): boolean;
    end(data?: string): void;
    destroy(): void;
    on(event: "drain" | "close", listener: () => void): void;
  }
  interface Server {
    on(event: "connection", listener: (socket: Upgraded) => void): void;
    on(event: "upgrade", listener: (request: { headers: Record<string, string> }, socket: Upgraded) => void): void;
    listen(port: number, host: string, then: () => void): void;
    address(): { port: number };
    closeAllConnections(): void;
    close(): void;
  }
  export function createServer(handler?: (request: Incoming, answer: Answer) => void): Server;
}
