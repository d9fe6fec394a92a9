// Tables and lists in words: figures, findings.

import { figure } from "./units.js";

/** Creates an element with text, and other elements in it. */
export function make(name, text, ...children) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

function hidden(text) {
  const made = make("span", text);
  made.className = "hidden";
  return made;
}

/** Shows the figures that decide as a table, and all others folded. */
export function showFigures(parent, { metrics, policies }) {
  const isOpen = parent.querySelector("details")?.open;
  const details = make("details", "", make("summary", "All figures"), table("All figures", metrics.filter((metric) => !metric.is_primary), policies));
  details.open = Boolean(isOpen);
  parent.replaceChildren(table("The figures that decide", metrics.filter((metric) => metric.is_primary), policies), details);
}

function table(caption, metrics, policies) {
  const made = make("table", "", make("caption", caption));
  const heads = ["figure", ...policies.map(({ name }, nth) => `${"AB"[nth]}: ${name}`)].map((text, nth) => {
    const head = make("th", text);
    head.scope = "col";
    if (nth > 0) head.className = "ab"[nth - 1];
    return head;
  });
  made.append(make("thead", "", make("tr", "", ...heads)));
  const body = make("tbody");
  for (const { key, heading, quantity, better } of metrics) {
    const values = policies.map(({ figures }) => figures[key]);
    const head = make("th", heading);
    head.scope = "row";
    const best = bestOf(values, better);
    body.append(make("tr", "", head, ...values.map((value, nth) => {
      const cell = make("td", figure(value, quantity));
      if (nth === best) {
        cell.className = "best";
        cell.append(hidden(" (better)"));
      }
      return cell;
    })));
  }
  made.append(body);
  const scroll = make("div", "", made);
  scroll.className = "scroll";
  return scroll;
}

/** Returns the number of the better value; null if neither is. A missing value means never, and is worse. */
export function bestOf(values, better) {
  if (better === "neither" || values.length < 2) return null;
  const rank = (value) => (value === null || value === undefined ? Infinity : better === "lower" ? value : -value);
  const [one, other] = values.map(rank);
  if (one === other) return null;
  return one < other ? 0 : 1;
}

/** Shows what is wrong with a policy, each with its fix as a button. */
export function showFindings(parent, check, onFix) {
  const { findings, fixed } = check;
  if (findings.length === 0) {
    parent.replaceChildren(make("p", "No findings."));
    return;
  }
  const items = findings.map((finding) => {
    const item = make("li", "", make("strong", `${finding.rule} ${finding.title}`), ...finding.facts.map((fact) => make("p", fact)));
    item.className = finding.severity;
    item.title = finding.rationale;
    const { policy, settings, advice } = finding.help;
    if (policy) {
      const fix = make("button", `Fix: ${settings}`);
      fix.type = "button";
      fix.className = "fix";
      fix.addEventListener("click", () => onFix(policy));
      item.append(fix);
    }
    if (advice) item.append(make("p", advice));
    return item;
  });
  const heading = make("h3", `${findings.length} finding${findings.length === 1 ? "" : "s"}`);
  if (fixed && findings.length > 1) {
    const all = make("button", "Fix all");
    all.type = "button";
    all.className = "fix-all";
    all.addEventListener("click", () => onFix(fixed));
    heading.append(" ", all);
  }
  parent.replaceChildren(heading, make("ul", "", ...items));
}
