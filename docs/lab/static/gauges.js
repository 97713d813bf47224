// Two half-round gauges: what is claimed to be lost, and what is known.

const SVG = "http://www.w3.org/2000/svg";

function make(name, attributes = {}, parent = null, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.textContent = text;
  parent?.append(node);
  return node;
}

export class Gauge {
  /** A meter from 0 to 1 in `host`, with a title and the words at its two ends. */
  constructor(host, title, low, high) {
    this.host = host;
    host.setAttribute("role", "meter");
    host.setAttribute("aria-label", title);
    host.setAttribute("aria-valuemin", "0");
    host.setAttribute("aria-valuemax", "1");
    const heading = document.createElement("p");
    heading.className = "gauge-title";
    heading.textContent = title;
    const svg = make("svg", { viewBox: "0 0 200 112", "aria-hidden": "true" });
    const arc = "M 16 100 A 84 84 0 0 1 184 100";
    make("path", { d: arc, class: "track" }, svg);
    this.fill = make("path", { d: arc, class: "fill", pathLength: "100" }, svg);
    for (let tick = 0; tick <= 10; tick++) {
      const angle = Math.PI * (1 - tick / 10), [x, y] = [Math.cos(angle), -Math.sin(angle)];
      const from = tick % 5 ? 71 : 67;
      make("line", { class: "mark", x1: 100 + from * x, y1: 100 + from * y, x2: 100 + 74 * x, y2: 100 + 74 * y }, svg);
    }
    this.needle = make("line", { class: "needle", x1: 100, y1: 100, x2: 30, y2: 100 }, svg);
    make("circle", { class: "hub", cx: 100, cy: 100, r: 6 }, svg);
    make("text", { class: "end", x: 16, y: 111, "text-anchor": "middle" }, svg, low);
    make("text", { class: "end", x: 184, y: 111, "text-anchor": "middle" }, svg, high);
    this.number = document.createElement("p");
    this.number.className = "gauge-number";
    this.words = document.createElement("p");
    this.words.className = "gauge-words";
    host.replaceChildren(heading, svg, this.number, this.words);
    this.set(0, "0", "");
  }

  set(share, number, words) {
    const shown = Math.max(0, Math.min(1, share));
    this.fill.setAttribute("stroke-dasharray", `${shown * 100} 200`);
    this.fill.setAttribute("visibility", shown > 0.002 ? "visible" : "hidden");
    this.needle.setAttribute("transform", `rotate(${shown * 180} 100 100)`);
    this.host.classList.toggle("over", share > 1);
    this.number.textContent = number;
    this.words.textContent = words;
    this.host.setAttribute("aria-valuenow", String(shown));
    this.host.setAttribute("aria-valuetext", `${number}. ${words}`);
  }
}
