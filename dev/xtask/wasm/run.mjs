// Runs a module that needs nothing of its host, and exits with its exit code. A panic in it is a trap, and an exception here.
import { readFileSync } from "node:fs";

const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]));
process.exitCode = instance.exports.main(0, 0);
