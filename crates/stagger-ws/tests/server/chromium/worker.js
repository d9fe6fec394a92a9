import { fetchRetry, QuietPeriods } from "./client.js";

const quiet = new QuietPeriods({ channel: "worker" });
onmessage = async ({ data: { url, init } }) => {
  const { status } = await fetchRetry(url, init, { quiet });
  postMessage(status);
};
postMessage("ready");
