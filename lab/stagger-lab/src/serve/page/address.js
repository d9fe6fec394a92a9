// The state of the page is its address: both policies, in the policy language, and the settings of the scenario with the names of the
// flags of `stagger simulate`.

/** The race that is shown without an address. */
export const DEFAULTS = {
  a: "phoenix",
  b: "exponential base=1s cap=30s spread=20s max-attempts=inf",
  settings: { clients: "10k", capacity: "1000/s", down: "5s" },
  seed: "1",
};

/** What the simulator takes for settings that an address does not have. */
export const USUAL = { clients: "10k", capacity: "1000/s", down: "0s" };

/** Settings that an address may have, in this order. */
const NAMES = ["clients", "capacity", "down", "backlog", "one-way", "disconnect-window", "first-attempt", "retry-after", "crash-loop", "crash-above", "horizon"];

/** Parses the query of an address. */
export function parse(query) {
  const given = new URLSearchParams(query);
  const settings = given.size === 0 ? { ...DEFAULTS.settings } : {};
  for (const name of NAMES) if (given.has(name)) settings[name] = given.get(name);
  return { a: given.get("a") ?? DEFAULTS.a, b: given.get("b") ?? DEFAULTS.b, settings, seed: given.get("seed") ?? DEFAULTS.seed };
}

/** Returns the query of a state. Spaces are `+` and slashes stay, so that the policies can be read in it. */
export function format({ a, b, settings, seed }) {
  const given = new URLSearchParams([["a", a], ["b", b]]);
  for (const name of NAMES) if (settings[name]) given.set(name, settings[name]);
  given.set("seed", seed);
  return `?${given.toString().replaceAll("%3D", "=").replaceAll("%2F", "/").replaceAll("%3A", ":").replaceAll("%2C", ",")}`;
}
