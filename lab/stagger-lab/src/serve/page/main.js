// The page: its state, what is asked of the server, and the playback.

import * as address from "./address.js";
import { drawCurves, drawEnvelope, moveCursors } from "./curves.js";
import { Dots } from "./dots.js";
import { make, showFigures, showFindings } from "./panels.js";
import { Cast } from "./replay.js";
import { ask, presets, stream } from "./server.js";
import { STEPS, count, nearestStep, settingOf, withSetting } from "./units.js";

const KINDS = ["a", "b"];
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 100];
const LONGEST_S = 30;
const TYPING_MS = 300;

const byId = (id) => document.getElementById(id);
const isCalm = window.matchMedia("(prefers-reduced-motion: reduce)");

let state = address.parse(window.location.search);
let figures = null;
let latencies = [];
const clock = { time: 0, until: 1, speed: 1, isPlaying: false, last: 0, frame: 0 };

// Statistics of drawing, for measurements: frames since the start of the playback, and when it began.
window.stagger = { frames: 0, since: 0 };

// ---------------------------------------------------------------- lanes

class Lane {
  constructor(kind, nth) {
    this.kind = kind;
    this.nth = nth;
    const part = byId("lane-template").content.cloneNode(true);
    this.root = part.querySelector(".lane");
    this.root.classList.add(kind);
    const letter = kind.toUpperCase();
    const find = (selector) => this.root.querySelector(selector);
    this.input = find(".policy");
    this.profile = find(".profile");
    this.problem = find(".problem");
    this.advice = find(".advice");
    this.findings = find(".findings");
    this.envelope = find(".envelope");
    this.canvas = find("canvas");
    this.counters = { waiting: find(".waiting"), refused: find(".refused"), connected: find(".connected") };
    find("h2").textContent = `Policy ${letter}`;
    this.problem.id = `problem-${kind}`;
    label(find(".policy-label"), this.input, `policy-${kind}`);
    label(find(".profile-label"), this.profile, `profile-${kind}`);
    this.root.setAttribute("aria-label", `Policy ${letter}`);
    this.input.setAttribute("aria-describedby", this.problem.id);
    this.canvas.setAttribute("aria-label", `Clients with policy ${letter}, as dots: waiting at the left, connected at the right. The figures are below`);
    this.input.value = state[kind];
    this.dots = new Dots(this.canvas);
    this.spread = new Slider(find(".spread-slider"), `spread-${kind}`, "Spread", STEPS.spread, (text) => this.set(withSetting(this.input.value, "spread", text)));
    this.input.addEventListener("input", () => this.typed(TYPING_MS));
    // A policy is one line.
    this.input.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
    this.profile.addEventListener("change", () => this.profile.value && this.set(this.profile.value));
    find(".advise").addEventListener("click", () => this.advise());
    byId("lanes").append(this.root);
  }

  /** Sets the policy, as a button does. */
  set(policy) {
    this.input.value = policy;
    this.typed(0);
  }

  typed(after) {
    state[this.kind] = this.input.value;
    this.check(after);
    race(after);
  }

  /** Asks for findings and forecast. */
  check(after) {
    this.spread.show(settingOf(this.input.value, "spread") ?? "0s");
    clearTimeout(this.timer);
    this.asked?.abort();
    this.asked = new AbortController();
    const { signal } = this.asked;
    this.timer = setTimeout(async () => {
      const { clients, capacity } = { ...address.USUAL, ...state.settings };
      try {
        const response = await ask("/api/policy", { policy: this.input.value, purpose: "reconnecting", clients, capacity }, signal);
        const { plan, check } = await response.json();
        this.fail(null);
        showFindings(this.findings, check, (policy) => {
          this.set(policy);
          this.input.focus();
        });
        this.plan = plan;
        drawEnvelope(this.envelope, plan, this.kind);
      } catch (error) {
        if (!signal.aborted) this.fail(error.message);
      }
    }, after);
  }

  /** Shows what is wrong with the policy; null if nothing is. */
  fail(text) {
    this.problem.hidden = text === null;
    this.problem.textContent = text ?? "";
    this.input.setAttribute("aria-invalid", String(text !== null));
    // Those of the policy before.
    if (text !== null) this.findings.replaceChildren();
  }

  async advise() {
    this.advice.hidden = false;
    this.advice.textContent = "Searching for a policy…";
    this.asking?.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    const { clients, capacity, down } = { ...address.USUAL, ...state.settings };
    try {
      await stream("/api/advise", { purpose: "reconnecting", clients, capacity, outage: down }, signal, {
        progress: ({ ratio }) => {
          this.advice.textContent = `Searching for a policy: ${Math.round(ratio * 100)} %`;
        },
        advice: ({ policy, reasons, pareto_front: front }) => {
          if (!policy) {
            this.advice.textContent = "Do not retry.";
            return;
          }
          const tried = front ? `The best of ${count(front.tried_policies)} policies that were simulated. ` : "";
          this.advice.textContent = tried + (reasons.at(-1)?.conclusion ?? "");
          this.set(policy.line);
        },
      });
    } catch (error) {
      if (!signal.aborted) this.advice.textContent = error.message;
    }
  }
}

function label(element, control, id) {
  control.id = id;
  element.htmlFor = id;
}

// -------------------------------------------------------------- sliders

/** A slider of usual values, with a field for any other. */
class Slider {
  constructor(parent, id, name, steps, onChange) {
    this.steps = steps;
    parent.classList.add("slider");
    const caption = make("label", name);
    this.text = make("input");
    this.range = make("input");
    this.text.type = "text";
    this.text.size = 7;
    this.text.spellcheck = false;
    this.range.type = "range";
    Object.assign(this.range, { min: 0, max: steps.length - 1, step: 1 });
    this.range.setAttribute("aria-label", `${name}, usual values`);
    label(caption, this.text, id);
    parent.append(caption, this.text, this.range);
    this.range.addEventListener("input", () => {
      this.text.value = steps[this.range.value];
      this.range.setAttribute("aria-valuetext", this.text.value);
      onChange(this.text.value);
    });
    this.text.addEventListener("input", () => {
      this.place();
      onChange(this.text.value.trim());
    });
  }

  show(value) {
    if (document.activeElement !== this.text) this.text.value = value;
    this.place();
  }

  place() {
    this.range.value = nearestStep(this.steps, this.text.value);
    this.range.setAttribute("aria-valuetext", this.text.value);
  }
}

// ----------------------------------------------------------------- race

let raceTimer = 0;
let racing = null;

/** Asks for a race of both policies, soon. A race that is under way is abandoned, which cancels it at the server. */
function race(after) {
  const query = address.format(state);
  if (query !== window.location.search) window.history.replaceState(null, "", query);
  clearTimeout(raceTimer);
  racing?.abort();
  racing = new AbortController();
  const { signal } = racing;
  raceTimer = setTimeout(() => run(signal), after);
}

function question() {
  return { policies: [state.a, state.b], settings: Object.entries(state.settings).filter(([, text]) => text !== ""), seed: state.seed };
}

async function run(signal) {
  const progress = byId("progress");
  const clients = [[], []];
  document.body.setAttribute("aria-busy", "true");
  try {
    await stream("/api/race", question(), signal, {
      progress: ({ ratio }) => {
        progress.hidden = false;
        progress.value = ratio;
      },
      figures: (answer) => {
        figures = answer;
        latencies = [];
        byId("scenario-problem").hidden = true;
        byId("answer").replaceChildren(...answer.sentences.map((sentence, nth) => {
          const paragraph = make("p", sentence);
          paragraph.className = KINDS[nth];
          return paragraph;
        }));
        byId("command").textContent = answer.command;
        showFigures(byId("figures"), answer);
        showLegend(answer);
      },
      clients: ({ policy, latency }) => {
        latencies[policy] = latency;
      },
      events: ({ policy, clients: some }) => clients[policy].push(...some),
    });
    start(clients);
  } catch (error) {
    if (!signal.aborted) failed(error.message);
  } finally {
    if (!signal.aborted) {
      progress.hidden = true;
      document.body.removeAttribute("aria-busy");
    }
  }
}

/** Shows why there is no race, unless a policy already says so. */
function failed(text) {
  const isOfPolicy = lanes.some((lane) => !lane.problem.hidden);
  const problem = byId("scenario-problem");
  problem.hidden = isOfPolicy;
  problem.textContent = text;
  byId("answer").replaceChildren(make("p", "There is no answer until the problem above or below is mended."));
}

function showLegend({ policies, scenario }) {
  const entry = (kind, text) => {
    const item = make("li", text);
    item.className = kind;
    return item;
  };
  byId("legend").replaceChildren(
    ...policies.map(({ name }, nth) => entry(KINDS[nth], `${"AB"[nth]}: ${name}`)),
    entry("capacity", `capacity: ${count(scenario.rate)}/s`),
  );
}

/** Begins the playback of a race. */
function start(clients) {
  const casts = clients.map((lists) => new Cast(lists));
  lanes.forEach((lane, nth) => lane.dots.show(casts[nth]));
  const shown = casts.map((cast) => cast.size);
  const all = figures.scenario.clients;
  byId("shown").textContent = shown.every((some) => some === all) ? "Every dot is a client." : `The dots are the first ${shown.map(count).join(" and ")} of ${count(all)} clients, which are as good as any others.`;
  // Clients that never come back do not stretch the axis.
  const ends = figures.policies.map(({ figures: own, curves }) => own.t99_s ?? own.t100_s ?? curves.arrivals.length * curves.bin_s);
  clock.until = Math.max(1, ...ends) * 1.05;
  clock.time = 0;
  clock.speed = SPEEDS.find((speed) => speed >= 1 && clock.until / speed <= LONGEST_S) ?? SPEEDS.at(-1);
  byId("speed").value = String(clock.speed);
  drawCurves(byId("curves"), figures, latencies, clock.until);
  if (isCalm.matches) {
    // In the end both pictures are alike.
    clock.time = Math.min(...ends) / 2;
    play(false);
  } else {
    play(true);
  }
  counted = -Infinity;
  draw();
}

// ------------------------------------------------------------- playback

function play(isPlaying) {
  clock.isPlaying = isPlaying;
  byId("play").textContent = isPlaying ? "Pause" : "Play";
  if (isPlaying && clock.time >= clock.until) clock.time = 0;
  window.stagger = { frames: 0, since: performance.now() };
  cancelAnimationFrame(clock.frame);
  if (isPlaying) {
    clock.last = performance.now();
    clock.frame = requestAnimationFrame(frame);
  }
}

function frame(now) {
  // After a pause of the browser, the race goes on where it was.
  clock.time += Math.min(Math.max(0, now - clock.last) / 1000, 0.25) * clock.speed;
  clock.last = now;
  window.stagger.frames += 1;
  if (clock.time >= clock.until) {
    clock.time = clock.until;
    play(false);
  }
  draw();
  if (clock.isPlaying) clock.frame = requestAnimationFrame(frame);
}

let counted = -Infinity;

function draw() {
  for (const lane of lanes) lane.dots.draw(clock.time, clock.speed, !isCalm.matches);
  byId("time").value = String(Math.round((clock.time / clock.until) * 1000));
  byId("time").setAttribute("aria-valuetext", `${clock.time.toFixed(1)} seconds`);
  byId("clock").textContent = `${clock.time.toFixed(1)} s`;
  moveCursors(byId("curves"), clock.time, clock.until);
  // Numbers that change sixty times a second cannot be read.
  const now = performance.now();
  if (clock.isPlaying && now - counted < 100) return;
  counted = now;
  for (const lane of lanes) {
    if (!lane.dots.cast) continue;
    const counts = lane.dots.cast.counts();
    for (const [name, element] of Object.entries(lane.counters)) element.textContent = count(counts[name]);
  }
}

// ---------------------------------------------------------------- start

function prepare() {
  const sliders = {};
  for (const [name, caption] of [["clients", "Clients"], ["capacity", "Capacity"], ["down", "Server down"]]) {
    const parent = make("div");
    byId("sliders").append(parent);
    sliders[name] = new Slider(parent, name, caption, STEPS[name], (text) => {
      state.settings[name] = text;
      lanes.forEach((lane) => lane.check(TYPING_MS));
      race(TYPING_MS);
    });
  }
  const seed = make("div");
  seed.className = "slider";
  const caption = make("label", "Seed");
  const field = make("input");
  Object.assign(field, { type: "text", inputMode: "numeric", size: 7 });
  label(caption, field, "seed");
  seed.append(caption, field);
  field.addEventListener("input", () => {
    state.seed = field.value.trim() || "1";
    race(TYPING_MS);
  });
  byId("sliders").append(seed);
  for (const speed of SPEEDS) {
    const option = make("option", speed === 1 ? "real time" : `${speed} ×`);
    option.value = String(speed);
    byId("speed").append(option);
  }
  byId("speed").value = String(clock.speed);
  return () => {
    for (const [name, slider] of Object.entries(sliders)) slider.show(state.settings[name] ?? address.USUAL[name]);
    if (document.activeElement !== field) field.value = state.seed;
  };
}

const lanes = KINDS.map((kind, nth) => new Lane(kind, nth));
const showState = prepare();

async function offer() {
  const { profiles } = await presets();
  for (const lane of lanes) {
    for (const { name, title } of profiles) {
      const option = make("option", name === title ? name : `${name}: ${title}`);
      option.value = name;
      lane.profile.append(option);
    }
  }
  const offered = [
    { title: "Fixed delays against a spread", happened: "Without jitter, all clients return in step. A spread of the first attempt keeps them within the capacity.", policies: ["constant base=1s jitter=none max-attempts=inf", "exponential base=1s cap=30s spread=20s max-attempts=inf"], settings: [["clients", "10k"], ["capacity", "1000/s"], ["down", "5s"]] },
    { title: "Jitter is not enough", happened: "Full jitter separates the retries, but the first one still comes within a second of the loss.", policies: ["exponential base=1s cap=30s jitter=full max-attempts=inf", "exponential base=10s cap=30s jitter=full spread=10s max-attempts=inf"], settings: [["clients", "10k"], ["capacity", "1000/s"]] },
    { title: "Discord: a sixth of all sessions returns at once", happened: "A deployment ended half of the pods of the sessions service in one of three zones before they had handed over their sessions, so 17 % of all sessions were lost at once. The clients that came back exhausted the memory of gateway nodes in that zone; then the voice service fell behind, and calls could not be started from 12:13 until 15:30 PDT.", policies: ["constant base=1s jitter=none max-attempts=none", "exponential base=1s cap=1m jitter=full spread=1m max-attempts=none"], settings: [["clients", "20000"], ["capacity", "400/s"], ["backlog", "2000"], ["down", "5s"], ["disconnect-window", "1s"], ["crash-loop", "5"], ["crash-above", "4000/s"], ["horizon", "1h"]] },
    { title: "Kubernetes: kubelets overload their API servers", happened: "In a cluster of about 3,000 nodes, an API server ran out of memory and was killed. Its clients reconnected in step, with a fixed delay of one second: 18,000 requests per second, seven times as many as usual, which killed further replicas.", policies: ["constant base=1s jitter=none max-attempts=none", "exponential base=1600ms cap=1m jitter=equal max-attempts=none"], settings: [["clients", "18000"], ["capacity", "5000/s"], ["backlog", "5000"], ["down", "10s"], ["disconnect-window", "300ms"], ["crash-loop", "10"], ["crash-above", "10000/s"], ["horizon", "1h"]] },
  ];
  const choice = byId("preset");
  offered.forEach(({ title }, nth) => {
    const option = make("option", title);
    option.value = String(nth);
    choice.append(option);
  });
  choice.addEventListener("change", () => {
    const preset = offered[choice.value];
    byId("preset-text").hidden = !preset;
    if (!preset) return;
    byId("preset-text").textContent = preset.happened;
    state = { ...state, a: preset.policies[0], b: preset.policies[1], settings: Object.fromEntries(preset.settings) };
    showAll();
  });
}

function showAll() {
  for (const lane of lanes) {
    lane.input.value = state[lane.kind];
    lane.check(0);
  }
  showState();
  race(0);
}

byId("play").addEventListener("click", () => play(!clock.isPlaying));
byId("time").addEventListener("input", () => {
  play(false);
  clock.time = (Number(byId("time").value) / 1000) * clock.until;
  draw();
});
byId("speed").addEventListener("change", () => {
  clock.speed = Number(byId("speed").value);
});
byId("scenario").addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("popstate", () => {
  state = address.parse(window.location.search);
  showAll();
});
let width = 0;
const layOut = () => {
  lanes.forEach((lane) => lane.dots.layOut());
  draw();
};
// The width of the lanes, not of the window: a scroll bar that appears takes some of it.
new ResizeObserver(([{ contentRect }]) => {
  if (contentRect.width === width) return;
  width = contentRect.width;
  for (const lane of lanes) if (lane.plan) drawEnvelope(lane.envelope, lane.plan, lane.kind);
  if (figures && latencies.length > 0) drawCurves(byId("curves"), figures, latencies, clock.until);
  layOut();
}).observe(byId("lanes"));
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", layOut);

byId("exports").addEventListener("click", async (event) => {
  const { format } = event.target.dataset;
  const status = byId("export-status");
  try {
    if (event.target.id === "share") {
      await navigator.clipboard.writeText(window.location.href);
      status.textContent = "The link is in the clipboard.";
    } else if (format) {
      const response = await ask("/api/export", { format, race: question() });
      const name = /filename="([^"]+)"/.exec(response.headers.get("content-disposition"))[1];
      const link = make("a");
      link.href = URL.createObjectURL(await response.blob());
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      status.textContent = `Saved ${name}.`;
    }
  } catch (error) {
    status.textContent = error.message;
  }
});

offer().catch((error) => failed(error.message));
showAll();
