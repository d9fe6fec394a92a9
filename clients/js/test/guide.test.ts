import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as stagger from "../src/index.js";

const page = readFileSync(new URL("../../../../docs/guide/browsers.md", import.meta.url), "utf8");
/** The examples of calls; those of connections need a server. */
const all = [...page.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, code = ""]) => code);
const examples = all.filter((code) => /\b(fetchRetry|retry)\b/.test(code));

/** Returns responses that no network is needed for. */
async function answer(): Promise<Response> {
  return new Response('{"id":7}', { headers: { "content-type": "application/json" } });
}

const AsyncFunction = (async () => {}).constructor as new (...names: string[]) => (...values: unknown[]) => Promise<unknown>;

test("the examples of the guide run", async () => {
  assert.ok(examples.length >= 4);
  globalThis.fetch = answer;
  for (const example of examples) {
    const names = Object.keys(stagger);
    const imports = [...example.matchAll(/^import \{ (.*) \} from "stagger-client";$/gm)].flatMap(([, list = ""]) => list.split(", "));
    assert.ok(imports.length > 0 && imports.every((name) => names.includes(name)), imports.join());
    const body = example.replace(/^import .*$/gm, "");
    const shown: unknown[] = [];
    const console = { log: (...values: unknown[]) => shown.push(values) };
    await new AsyncFunction(...names, "console", body)(...Object.values(stagger), console);
  }
});
