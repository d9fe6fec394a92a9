// Curves over time, and the envelope of delays, as SVG.

import { count, length, ticks } from "./units.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const HEIGHT = 170;
const LEFT = 60;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;

function element(name, attributes, ...children) {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function label(x, y, text, anchor) {
  return element("text", { x, y, "text-anchor": anchor, class: "tick" }, text);
}

/** A drawing area as wide as its parent, with axes from 0; a logarithmic axis of y begins at 1. */
class Plot {
  constructor(parent, name, mostX, mostY, formatX, formatY, isLogarithmic = false) {
    this.width = Math.max(240, parent.clientWidth);
    this.svg = element("svg", { viewBox: `0 0 ${this.width} ${HEIGHT}`, role: "img", "aria-label": name });
    parent.append(this.svg);
    const ys = isLogarithmic ? powers(mostY) : ticks(mostY, 3);
    this.isLogarithmic = isLogarithmic;
    this.mostX = mostX || 1;
    this.mostY = ys[ys.length - 1];
    for (const value of ys) {
      this.svg.append(element("line", { x1: LEFT, x2: this.width - RIGHT, y1: this.y(value), y2: this.y(value), class: "grid" }));
      this.svg.append(label(LEFT - 6, this.y(value) + 4, formatY(value), "end"));
    }
    for (const value of ticks(mostX, this.width / 110).filter((tick) => tick <= this.mostX * 1.0001)) {
      const anchor = this.x(value) > this.width - 30 ? "end" : "middle";
      this.svg.append(label(this.x(value), HEIGHT - 6, formatX(value), anchor));
    }
  }

  x(value) {
    return LEFT + (Math.min(value, this.mostX) / this.mostX) * (this.width - LEFT - RIGHT);
  }

  y(value) {
    const capped = Math.min(value, this.mostY);
    const share = this.isLogarithmic ? Math.log(Math.max(capped, 1)) / Math.log(this.mostY) : capped / this.mostY;
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
  }

  /** Draws a line through points, with gaps where y is null. */
  line(points, kind) {
    let path = "";
    let isOpen = false;
    for (const [x, y] of points) {
      if (y !== null) path += `${isOpen ? "L" : "M"}${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`;
      isOpen = y !== null;
    }
    this.svg.append(element("path", { d: path || "M0 0", class: `line ${kind}` }));
  }

  /** Fills the area between two lines over the same x. */
  area(points, kind) {
    const there = points.map(([x, , high]) => `${this.x(x).toFixed(1)} ${this.y(high).toFixed(1)}`);
    const back = points.map(([x, low]) => `${this.x(x).toFixed(1)} ${this.y(low).toFixed(1)}`).reverse();
    this.svg.append(element("path", { d: `M${[...there, ...back].join("L")}Z`, class: `area ${kind}` }));
  }
}

/** Returns the powers of ten from 1 to at least `most`. */
export function powers(most) {
  const values = [1, 10];
  while (values[values.length - 1] < most) values.push(values[values.length - 1] * 10);
  return values;
}

/** Returns a series of counts as rates per second, at most `most` points, of each group of bins the highest. */
export function rates(bins, binS, until, most) {
  const shown = Math.min(bins.length, Math.ceil(until / binS));
  const width = Math.max(1, Math.ceil(shown / most));
  const points = [];
  for (let at = 0; at < shown; at += width) {
    let highest = 0;
    for (let bin = at; bin < Math.min(at + width, shown); bin += 1) highest = Math.max(highest, bins[bin]);
    points.push([(at + width / 2) * binS, highest / binS]);
  }
  return points;
}

/** Returns how many are connected at the end of each bin. */
export function sums(bins, binS, until, most) {
  const shown = Math.min(bins.length, Math.ceil(until / binS));
  const width = Math.max(1, Math.ceil(shown / most));
  const points = [[0, 0]];
  let sum = 0;
  for (let at = 0; at < shown; at += 1) {
    sum += bins[at];
    if ((at + 1) % width === 0 || at + 1 === shown) points.push([(at + 1) * binS, sum]);
  }
  if (points[points.length - 1][0] < until) points.push([until, sum]);
  return points;
}

const POINTS = 300;

/** Draws arrivals, connections and latency of all policies below each other, on one axis of time. */
export function drawCurves(parent, figures, latencies, until) {
  const kinds = ["a", "b"];
  const all = figures.policies.map(({ curves }, nth) => ({ ...curves, kind: kinds[nth], latency: latencies[nth] }));
  const capacity = figures.scenario.rate;
  const arrivals = all.map((one) => rates(one.arrivals, one.bin_s, until, POINTS));
  const connected = all.map((one) => sums(one.connects, one.bin_s, until, POINTS));
  const highest = (series) => series.flat().reduce((most, [, y]) => Math.max(most, y ?? 0), 0);
  parent.replaceChildren();
  const panel = (title, most, format, draw, isLogarithmic) => {
    const heading = document.createElement("h3");
    heading.textContent = title;
    const holder = document.createElement("div");
    holder.className = "panel";
    const cursor = document.createElement("div");
    cursor.className = "cursor";
    parent.append(heading, holder);
    draw(new Plot(holder, title, until, most, length, format, isLogarithmic));
    holder.append(cursor);
  };
  const peak = Math.max(highest(arrivals), capacity);
  // Otherwise the capacity would be on the axis.
  const isSteep = peak > 10 * capacity;
  panel(isSteep ? "Attempts per second, logarithmic" : "Attempts per second", peak, count, (plot) => {
    plot.line([[0, capacity], [until, capacity]], "capacity");
    arrivals.forEach((points, nth) => plot.line(points, all[nth].kind));
  }, isSteep);
  panel("Connected clients", figures.scenario.clients, count, (plot) => {
    connected.forEach((points, nth) => plot.line(points, all[nth].kind));
  });
  const slow = all.map(({ latency }) => (latency ? latency.p99_s.map((value, nth) => [(nth + 0.5) * latency.bin_s, value]) : []));
  panel("Time that a handshake takes: 99th percentile", highest(slow) || 1, length, (plot) => {
    slow.forEach((points, nth) => plot.line(points.filter(([x]) => x <= until), all[nth].kind));
  });
}

/** Moves the line that marks the time in all curves. */
export function moveCursors(parent, time, until) {
  const share = Math.min(time, until) / (until || 1);
  for (const cursor of parent.querySelectorAll(".cursor")) {
    const width = cursor.previousElementSibling.viewBox.baseVal.width;
    cursor.style.transform = `translateX(${LEFT + share * (width - LEFT - RIGHT)}px)`;
  }
}

/** Draws the delays before each retry: between which bounds, where most are, and the median. */
export function drawEnvelope(figure, plan, kind) {
  const retries = plan.retries;
  const caption = figure.querySelector("figcaption");
  figure.querySelector("svg")?.remove();
  if (retries.length === 0) {
    caption.textContent = "This policy never retries.";
    return;
  }
  const last = retries[retries.length - 1];
  caption.textContent = "Delay before each retry: bounds, the middle 80 %, median";
  const name = `Delays before each retry: at most ${length(retries[0].delay.max_s)} before the first and ${length(last.delay.max_s)} before retry ${last.retry}`;
  const plot = new Plot(figure, name, retries.length + 1, last.delay.max_s || 1, (value) => (Number.isInteger(value) && value > 0 && value <= retries.length ? String(value) : ""), length);
  // A single retry has a width, too.
  const steps = (low, high) => retries.flatMap(({ retry, delay }) => [[retry - 0.4, delay[low], delay[high]], [retry + 0.4, delay[low], delay[high]]]);
  plot.area(steps("min_s", "max_s"), `${kind} faint`);
  plot.area(steps("p10_s", "p90_s"), kind);
  plot.line(retries.map(({ retry, delay }) => [retry, delay.p50_s]), kind);
}
