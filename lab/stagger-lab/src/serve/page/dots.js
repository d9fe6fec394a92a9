// Clients as dots: on the left those that wait, in the middle the gate of the server, on the right those that are connected.

import { ACCEPTED, CONNECTED, LOST, REFUSED } from "./replay.js";

/** Seconds of real time that a dot takes from its place to the gate. */
const FLIGHT_S = 0.3;

/** Shares of the width: the waiting clients end here, the gate is here, the connected ones begin here. */
const WAIT_END = 0.58;
const GATE = 0.64;
const SEAT_BEGIN = 0.7;

/** Steps of a sequence that fills a square evenly (R2, from the plastic number). */
const STEP_X = 0.7548776662466927;
const STEP_Y = 0.5698402909980532;

export class Dots {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.cast = null;
  }

  /** Shows other clients. */
  show(cast) {
    this.cast = cast;
    this.layOut();
  }

  /** Takes the colors of the page, and the size of the canvas. */
  layOut() {
    const { clientWidth, clientHeight } = this.canvas;
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.max(1, Math.round(clientWidth * scale));
    const height = Math.max(1, Math.round(clientHeight * scale));
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    const style = getComputedStyle(this.canvas);
    const color = (name) => packed(style.getPropertyValue(name).trim());
    this.colors = { back: color("--stage"), wait: color("--wait"), knock: color("--accent"), refuse: color("--refused"), seat: color("--accent"), gone: color("--gone"), gate: color("--gate") };
    this.image = this.context.createImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    if (!this.cast) return;
    const many = this.cast.size;
    const pad = 3 * scale;
    const room = (width * (1 - SEAT_BEGIN) - 2 * pad) * (height - 2 * pad);
    // Whole pixels, or the gaps between the seats would make a pattern.
    const pitch = Math.max(1, Math.floor(Math.min(9 * scale, Math.sqrt(room / many))));
    // Between larger seats is a gap; the waiting clients have more room.
    this.seat = pitch < 3 ? pitch : Math.min(pitch - 1, Math.round(6 * scale));
    const apart = Math.sqrt((width * WAIT_END * height) / many);
    this.dot = Math.max(1, Math.min(Math.round(apart * 0.6), Math.round(5 * scale)));
    const rows = Math.max(1, Math.floor((height - 2 * pad) / pitch));
    this.homeX = new Float32Array(many);
    this.homeY = new Float32Array(many);
    for (let id = 0; id < many; id += 1) {
      this.homeX[id] = pad + ((id * STEP_X) % 1) * (width * WAIT_END - 2 * pad - this.dot);
      this.homeY[id] = pad + ((id * STEP_Y) % 1) * (height - 2 * pad - this.dot);
    }
    this.gateX = Math.round(width * GATE);
    this.seatX = (seat) => width * SEAT_BEGIN + pad + Math.floor(seat / rows) * pitch;
    this.seatY = (seat) => pad + (seat % rows) * pitch;
  }

  /** Draws the clients at a time, of which `speed` seconds pass in a second. Without motion, dots do not travel. */
  draw(time, speed, hasMotion) {
    const { cast, pixels, colors } = this;
    const { width, height } = this.canvas;
    pixels.fill(colors.back);
    for (let y = 0; y < height; y += 1) pixels[y * width + this.gateX] = colors.gate;
    if (cast) {
      cast.moveTo(time);
      const flight = hasMotion ? FLIGHT_S * speed : 0;
      for (let id = 0; id < cast.size; id += 1) this.client(id, time, flight);
    }
    this.context.putImageData(this.image, 0, 0);
  }

  client(id, time, flight) {
    const { cast, colors } = this;
    const next = cast.next[id];
    const last = next - 1;
    const isFirst = next === cast.from[id];
    const hasNext = next < cast.from[id + 1];
    const kind = isFirst ? CONNECTED : cast.kinds[last];
    const since = isFirst ? Infinity : time - cast.times[last];
    const x = this.homeX[id];
    const y = this.homeY[id];
    const gate = this.gateX - this.dot - 1;
    if (kind === CONNECTED) {
      const seat = isFirst ? id : cast.seats[last];
      const way = share(since, flight);
      this.square(mix(gate, this.seatX(seat), way), mix(y, this.seatY(seat), way), colors.seat, way < 1 ? this.dot : this.seat);
      return;
    }
    if (kind === ACCEPTED) {
      this.square(gate, y, colors.knock);
      return;
    }
    // Half of the time between two attempts at most.
    const gap = hasNext ? cast.times[next] - cast.times[last] : Infinity;
    const travel = Math.min(flight, gap / 2);
    if (hasNext && cast.times[next] - time < travel) {
      this.square(mix(x, gate, 1 - (cast.times[next] - time) / travel), y, colors.knock);
      return;
    }
    if (kind === LOST) {
      const way = share(since, travel);
      this.square(mix(this.seatX(id), x, way), mix(this.seatY(id), y, way), colors.wait);
      return;
    }
    const way = share(since, travel);
    const isFresh = kind === REFUSED && since < Math.max(travel, 0.15);
    this.square(mix(gate, x, way), y, isFresh ? colors.refuse : hasNext ? colors.wait : colors.gone);
  }

  square(left, top, color, dot = this.dot) {
    const { pixels } = this;
    const { width, height } = this.canvas;
    const x = Math.min(Math.max(0, left | 0), width - dot);
    const y = Math.min(Math.max(0, top | 0), height - dot);
    for (let row = y * width + x, end = row + dot * width; row < end; row += width) pixels.fill(color, row, row + dot);
  }
}

/** Returns which part of a way is done, in 0 to 1, slower at its end. */
function share(since, length) {
  if (!(since < length)) return 1;
  const left = 1 - since / length;
  return 1 - left * left;
}

function mix(from, to, way) {
  return from + (to - from) * way;
}

/** Returns a color of the form #rrggbb as the canvas stores it. */
function packed(color) {
  const value = parseInt(color.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}
