// Numbers and lengths as text, and the steps of sliders and axes.

/** Returns a count with thousands separated: 12,345. */
export function count(number) {
  return Math.round(number).toLocaleString("en");
}

/** Returns a length in seconds as text: 250 ms, 1.5 s, 2 min 5 s. */
export function length(seconds) {
  if (seconds === null || seconds === undefined) return "never";
  if (seconds === 0) return "0 s";
  if (seconds < 0.9995) return `${round(seconds * 1000, 3)} ms`;
  if (seconds < 120) return `${round(seconds, 3)} s`;
  if (seconds < 7200) {
    const whole = Math.round(seconds);
    return `${Math.floor(whole / 60)} min${whole % 60 ? ` ${whole % 60} s` : ""}`;
  }
  return `${round(seconds / 3600, 3)} h`;
}

/** Returns a number with at most so many significant digits, without trailing zeros. */
export function round(number, digits) {
  return String(Number(number.toPrecision(digits)));
}

/** Returns the value of a figure as text, by its quantity. */
export function figure(value, quantity) {
  if (value === null || value === undefined) return quantity === "seconds" ? "never" : "–";
  if (quantity === "count") return count(value);
  if (quantity === "seconds") return length(value);
  if (quantity === "ratio") return `${round(value * 100, 3)} %`;
  return round(value, 3);
}

/** Returns about `wanted` round values from 0 to at least `most`. */
export function ticks(most, wanted) {
  if (!(most > 0)) return [0, 1];
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough * 0.999);
  const values = [];
  for (let nth = 0; nth * step < most + step * 0.999; nth += 1) values.push(Number((nth * step).toPrecision(12)));
  return values;
}

/** The steps of each slider, as the command line reads them. */
export const STEPS = {
  clients: ["100", "200", "500", "1k", "2k", "5k", "10k", "20k", "50k", "100k", "200k", "500k", "1M"],
  capacity: ["10/s", "20/s", "50/s", "100/s", "200/s", "500/s", "1000/s", "2000/s", "5000/s", "10k/s", "20k/s", "50k/s"],
  down: ["0s", "1s", "2s", "5s", "10s", "20s", "30s", "1m", "2m", "5m", "10m"],
  spread: ["0s", "1s", "2s", "5s", "10s", "20s", "30s", "1m", "2m", "5m"],
};

const UNITS = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, m: 60, min: 60, h: 3600, d: 86400, k: 1e3, M: 1e6, "/s": 1, "k/s": 1e3, "/min": 1 / 60, "": 1 };

/** Returns the size of a value with one unit, for the place of a slider; NaN if it has another form. */
export function size(text) {
  const parts = /^\s*([\d_]*\.?\d+)\s*([a-zA-Z/]*)\s*$/.exec(text);
  const unit = parts && UNITS[parts[2]];
  return unit === undefined || unit === null ? NaN : Number(parts[1].replaceAll("_", "")) * unit;
}

/** Returns the number of the step that is nearest to a value, on a logarithmic scale. */
export function nearestStep(steps, text) {
  const wanted = Math.log(size(text) + 0.5);
  if (Number.isNaN(wanted)) return 0;
  const distance = (step) => Math.abs(Math.log(size(step) + 0.5) - wanted);
  return steps.reduce((best, step, nth) => (distance(step) < distance(steps[best]) ? nth : best), 0);
}

/** Returns the value of a setting in a policy of the policy language; null if it is not given. */
export function settingOf(policy, name) {
  const found = new RegExp(`(?:^|\\s)${name}=(\\S+)`).exec(policy);
  return found && found[1];
}

/** Returns the policy with another value of a setting. */
export function withSetting(policy, name, value) {
  const given = new RegExp(`((?:^|\\s)${name}=)\\S+`);
  if (given.test(policy)) return policy.replace(given, (_, before) => before + value);
  return `${policy.trim()} ${name}=${value}`.trim();
}
