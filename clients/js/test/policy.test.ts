import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePolicy, type Policy, PolicyError, policyFromJSON } from "../src/index.js";
import { vectors } from "./vectors.js";

interface Row {
  readonly given: string;
  readonly canonical?: string;
  readonly json?: unknown;
  readonly error?: string;
}
const { texts, documents } = vectors<{ texts: Row[]; documents: Row[] }>("policies.json");

/** Returns the row that parsing yields. */
function parsed(given: string, parse: () => Policy): Row {
  try {
    const policy = parse();
    return { given, canonical: policy.toString(), json: JSON.parse(JSON.stringify(policy)) as unknown };
  } catch (error) {
    assert.ok(error instanceof PolicyError, String(error));
    return { given, error: error.message };
  }
}

/** Names a profile that this package has. */
function adapted(row: Row): Row {
  return row.error === undefined ? row : { ...row, error: row.error.replace("like aws-sdk", "like web-socket") };
}

test("texts have the policies and the errors of stagger-core", () => {
  for (const row of texts) {
    assert.deepEqual(parsed(row.given, () => parsePolicy(row.given)), adapted(row));
  }
});

test("documents of JSON have the policies and the errors of stagger-core", () => {
  for (const row of documents) {
    assert.deepEqual(parsed(row.given, () => policyFromJSON(JSON.parse(row.given))), adapted(row));
  }
});

test("canonical text and JSON are read back to the same policy", () => {
  for (const { canonical } of [...texts, ...documents]) {
    if (canonical !== undefined) {
      const policy = parsePolicy(canonical);
      assert.equal(policy.toString(), canonical);
      assert.deepEqual(policyFromJSON(JSON.parse(JSON.stringify(policy))), policy);
    }
  }
});

test("a policy cannot be changed", () => {
  const policy = parsePolicy("list delays=1s,2s");
  assert.throws(() => Object.assign(policy.settings, { spread: 5n }));
  assert.throws(() => Object.assign(policy.settings.delays, { 0: 5n }));
});

test("absurdly long texts are rejected with a short message, soon", () => {
  const long = "9".repeat(100_000);
  for (const text of [`base=${long}s`, `base=0.${long}s`, `${long}=1s`, long, `jitter=0.${long}`, `max-attempts=${long}`]) {
    assert.throws(() => parsePolicy(text), (error) => error instanceof PolicyError && error.message.length < 300);
  }
});
