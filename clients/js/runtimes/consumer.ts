// What a program may write that has nothing but the package: `cargo xtask js-package` checks its types and runs it.
import { delays, fetchRetry, parsePolicy, Policy, QuietPeriods, ReconnectingWebSocket, retry, RetryError, TokenBudget } from "stagger-client";

const policy: Policy = parsePolicy("constant base=1ms jitter=none max-attempts=3");
const budget = new TokenBudget({ capacity: 100 });
const made: number = await retry(({ number }) => (number < 3 ? Promise.reject(new Error("again")) : number), policy, { budget });
const send = async (): Promise<Response> => new Response("done");
const text: string = await (await fetchRetry("https://example.com/", {}, { policy, fetch: send, quiet: new QuietPeriods() })).text();
const failed: unknown = await retry(() => Promise.reject("no"), policy).catch((error: unknown) => error);
const listed: bigint[] = [...delays(policy, 1n)];
const isRight = made === 3 && text === "done" && failed instanceof RetryError && failed.cause === "no" && listed.length === 2;
if (!isRight || typeof ReconnectingWebSocket !== "function") {
  throw new Error("the package does not work");
}
