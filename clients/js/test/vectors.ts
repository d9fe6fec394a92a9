import { readFileSync } from "node:fs";

/** Reads a file of golden vectors, which `cargo xtask vectors` writes. */
export function vectors<T>(name: string): T {
  // Tests run from `build/test`.
  return JSON.parse(readFileSync(new URL(`../../test/vectors/${name}`, import.meta.url), "utf8")) as T;
}
