import { fetchRetry, parsePolicy } from "./client.js";

const policy = parsePolicy("default max-attempts=2");
onmessage = async ({ data: url }) => postMessage((await fetchRetry(url, {}, { policy })).status);
postMessage("ready");
