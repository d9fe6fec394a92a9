export { draw, ownDraw, randomSeed, seedForCall } from "./numbers.js";
