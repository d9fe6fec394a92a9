// What `stagger drill --client` tells its clients.

function variable(name) {
  const value = process.env[name];
  if (value === undefined) {
    console.error(`${name} is not set: run this program by \`stagger drill --client\``);
    process.exit(2);
  }
  return value;
}

/** The address of the server: `ws://127.0.0.1:PORT/`. */
export const url = variable("STAGGER_DRILL_URL");
/** How many clients this process has. */
export const clients = Number(variable("STAGGER_DRILL_CLIENTS"));
/** The number of its first client. */
export const first = Number(variable("STAGGER_DRILL_FIRST"));
/** The seed of the drill, and its policy in the policy language. Most clients can use neither. */
export const seed = BigInt(variable("STAGGER_DRILL_SEED"));
export const policy = variable("STAGGER_DRILL_POLICY");

const [AT_ONCE, PAUSE_MS] = [50, 20];

/** Calls `make` with the number of each client, 50 every 20 ms. */
export async function start(make) {
  for (let id = first; id < first + clients; id += 1) {
    make(id);
    if ((id - first) % AT_ONCE === AT_ONCE - 1) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}
