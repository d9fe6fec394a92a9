"use strict";
// Zooms charts along the horizontal axis: drag to zoom in, double-click to reset. All charts of a section are zoomed
// together. The page is complete without this script.
(() => {
  // Width of a label with the space around it.
  const TICK = 72;
  const ns = "http://www.w3.org/2000/svg";
  const make = (name, attributes) => {
    const element = document.createElementNS(ns, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  // Parses one zoom level: ticks as "x label", separated by "|".
  const ticksOf = (level) =>
    level.split("|").map((tick) => ({ x: Number.parseFloat(tick), label: tick.slice(tick.indexOf(" ") + 1) }));
  const pairs = (text) => text.split(" ").map((pair) => pair.split(",").map(Number));

  let clips = 0;
  const panelOf = (group) => {
    const [left, top, right, bottom] = group.dataset.field.split(" ").map(Number);
    const levels = group.dataset.ticks.split(";").map(ticksOf);
    const series = group.querySelector(".series");
    const ticks = group.querySelector(".ticks");
    const original = ticks.innerHTML;
    const id = "clip-" + clips++;
    const clip = make("clipPath", { id });
    // Points on an axis are not cut.
    clip.append(make("rect", { x: left - 6, y: top - 6, width: right - left + 12, height: bottom - top + 12 }));
    group.prepend(clip);
    series.setAttribute("clip-path", `url(#${id})`);
    const shapes = [...series.children].map((element) => ({
      element,
      points: element.hasAttribute("points") ? pairs(element.getAttribute("points")) : null,
      cx: element.hasAttribute("cx") ? Number(element.getAttribute("cx")) : null,
      x: element.hasAttribute("x") ? Number(element.getAttribute("x")) : null,
      width: Number(element.getAttribute("width") || 0),
    }));
    // `from` and `to` are shares of the whole axis.
    const show = (from, to) => {
      const place = (x) => left + (((x - left) / (right - left) - from) / (to - from)) * (right - left);
      for (const { element, points, cx, x, width } of shapes) {
        if (points) element.setAttribute("points", points.map(([x, y]) => `${place(x)},${y}`).join(" "));
        if (cx !== null) element.setAttribute("cx", place(cx));
        if (x !== null) {
          element.setAttribute("x", place(x));
          element.setAttribute("width", place(x + width) - place(x));
        }
      }
      if (from === 0 && to === 1) {
        ticks.innerHTML = original;
        return;
      }
      ticks.replaceChildren();
      const shown = levels.map((level) => level.filter((tick) => place(tick.x) >= left && place(tick.x) <= right));
      // The finest level whose labels have room.
      for (const tick of shown.findLast((level) => level.length <= (right - left) / TICK) ?? shown[0]) {
        const x = place(tick.x);
        ticks.append(make("line", { class: "axis", x1: x, y1: bottom, x2: x, y2: bottom + 5 }));
        const text = make("text", { class: "quiet", "text-anchor": "middle", x, y: bottom + 18 });
        text.textContent = tick.label;
        ticks.append(text);
      }
    };
    return { group, left, top, right, bottom, show, narrowest: 2 ** (1 - levels.length) };
  };

  for (const section of document.querySelectorAll("section")) {
    const panels = [...section.querySelectorAll(".panel")].map(panelOf);
    if (panels.length === 0) continue;
    let range = [0, 1];
    const zoom = (low, high) => {
      const width = Math.max(high - low, ...panels.map(({ narrowest }) => narrowest));
      const from = Math.min(Math.max(0, (low + high - width) / 2), 1 - width);
      const to = from + width;
      range = [from, to];
      for (const { group, show } of panels) {
        show(from, to);
        group.ownerSVGElement.classList.toggle("zoomed", from > 0 || to < 1);
      }
    };
    for (const { group, left, top, right, bottom } of panels) {
      const svg = group.ownerSVGElement;
      svg.classList.add("zoomable");
      const mark = make("rect", { class: "sky band", y: top, height: bottom - top, width: 0 });
      let start = null;
      const share = (event) => {
        const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
        return Math.min(1, Math.max(0, (point.x - left) / (right - left)));
      };
      svg.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        start = share(event);
        svg.setPointerCapture(event.pointerId);
        group.append(mark);
      });
      svg.addEventListener("pointermove", (event) => {
        if (start === null) return;
        const ends = [start, share(event)].sort((a, b) => a - b).map((end) => left + end * (right - left));
        mark.setAttribute("x", ends[0]);
        mark.setAttribute("width", ends[1] - ends[0]);
      });
      const end = (event) => {
        if (start === null) return;
        const [from, to] = [start, share(event)].sort((a, b) => a - b);
        start = null;
        mark.remove();
        mark.setAttribute("width", 0);
        const [low, high] = range;
        if (event.type === "pointerup" && to - from > 0.01) {
          zoom(low + from * (high - low), low + to * (high - low));
        }
      };
      svg.addEventListener("pointerup", end);
      svg.addEventListener("pointercancel", end);
      svg.addEventListener("dblclick", () => zoom(0, 1));
    }
    if (document.querySelector(".hint")) continue;
    const hint = document.createElement("p");
    hint.className = "quiet hint";
    hint.textContent = "Drag over a chart to zoom in; double-click to reset.";
    section.querySelector("h2").after(hint);
  }
})();
