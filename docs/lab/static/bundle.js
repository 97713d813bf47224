"use strict";
const modules = {};
modules.words = (() => {
// Questions, answers and what they tell, in plain words.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const FINE = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const SMALL = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

const ENOUGH = 8; // so many rounded answers that agree are more than a sign

const count = (number) => WHOLE.format(number);

/** A small number: 0.0000001578, and 1.5e-12 only where that is long. */
function spelled(number) {
  if (number === null) return "nothing";
  if (number === 0) return "0";
  if (number >= 1000) return WHOLE.format(number);
  if (number < 1e-10) return number.toExponential(2).replace(/\.?0+e/, "e");
  const places = Math.min(20, Math.max(0, 3 - Math.floor(Math.log10(number))));
  return number.toFixed(places).replace(/\.?0+$/, "");
}

function noise(value) {
  const size = Math.abs(value);
  if (size >= 1e15) return value.toExponential(3).replace("-", "−");
  return (size >= 1000 ? FINE : SMALL).format(value).replace("-", "−");
}

/** The mechanism of a run, with its own k and epsilon: what is chosen by now may be something else. */
function guard({ mechanism, k, epsilon }) {
  const parts = [mechanism.name];
  if (k !== null && k !== undefined) parts.push(`k = ${k}`);
  if (mechanism.protected) parts.push(`epsilon ${epsilon} each answer`);
  return parts.join(", ");
}

/** A box: what is new first, then what was known of the group. */
function box(run, cell, range) {
  const words = (ranges) => ranges.map((each) => run.ranges[each][0]).filter(Boolean).join(" and ");
  const group = words(run.cells[cell]), narrowed = range < 0 ? "" : words([range]);
  return narrowed && group ? `${narrowed}, among those with ${group}` : narrowed || group;
}

/** Whom a question asks about. */
function whom(run, question) {
  const boxes = [];
  for (let at = 0; at < question.boxes.length; at += 2) boxes.push(box(run, question.boxes[at], question.boxes[at + 1]));
  if (boxes.some((each) => !each)) return "in the table";
  if (boxes.length === 1) return `with ${boxes[0]}`;
  const shown = boxes.slice(0, 2).map((each) => `(${each})`).join(" or ");
  const more = boxes.length - 2;
  return `with ${shown}${more ? ` or in ${more} further ${more === 1 ? "group" : "groups"}` : ""}`;
}

function asked(run, question) {
  const { threshold } = question;
  if (threshold === 0) return `Is there anybody ${whom(run, question)}?`;
  const number = `${threshold}`.replace("-", "−");
  return `Are there more than ${number} ${threshold === 1 ? "person" : "people"} ${whom(run, question)}?`;
}

/** An answer: its words, and whether it is exact, noise, or cannot be told. */
function answered(run, { answer }) {
  const { post, offset, protected: guarded } = run.law;
  if (!Array.isArray(answer)) {
    const exact = answer === 0 || answer === 1;
    if (!exact || (guarded && (offset > 0 || !run.law.leaks))) return { text: `noise: ${noise(answer)}`, kind: "noise" };
    const bit = answer === 1 ? "yes (1)" : "no (0)";
    if (!guarded) return { text: bit, kind: "exact" };
    return post === "binary" ? { text: `${bit}, rounded`, kind: "unsure" } : { text: `exactly ${bit}`, kind: "exact" };
  }
  const [first, many, size, zeros = 0, ones = 0] = answer;
  if (zeros + ones === many) {
    const kind = zeros && ones ? "noise" : many < ENOUGH ? "unsure" : "exact";
    return { text: `asked ${many} times: yes ${ones}, no ${zeros}`, kind };
  }
  const shown = first.map(noise).join("; ");
  return { text: `asked ${count(many)} times: ${shown}; … typical size ${noise(size)}`, kind: "noise" };
}

function zone(low, high) {
  if (low === high) return `exactly ${low}`;
  return high - low === 1 ? `${low} or ${high}` : `${low} to ${high}`;
}

/** What an answer told the outsider. */
function told(run, question) {
  const { threshold: b, answer } = question;
  const { law, size: n } = run;
  const many = Array.isArray(answer);
  if (b < 0 || b >= n) return "No table can answer this otherwise: it costs a question and tells nothing.";
  const truly = (bit) => (bit ? `so there ${b + 1 === n ? "are all" : `are at least ${b + 1}`}` : b === 0 ? "so there is nobody" : `so there are at most ${b}`);
  if (!law.protected) return `The answer is true: ${truly(answer === 1)}.`;
  if (!law.leaks) return "The noise has the same size whatever the count is: this tells next to nothing.";
  const single = many ? null : answer;
  if (!law.counts) {
    if (single === 0) return "No noise: so nobody fits.";
    if (single === 1) return "No noise: so everybody fits.";
    return "Noise only appears where somebody fits, but not everybody: so there is somebody.";
  }
  const k = law.reach, low = Math.max(0, b - k + 1), high = Math.min(n, b + k), here = zone(low, high);
  const outside = (bit) => (bit ? `at least ${b + k + 1}` : b - k <= 0 ? "0" : `at most ${b - k}`);
  if (law.offset > 0) {
    const size = (many ? answer[2] : Math.abs(answer)) * Number(run.start.epsilon);
    const usual = law.offset, more = law.offset + 1;
    const near = size > (usual + more) / 2;
    return `Every answer is noisy, but noise is ${more} / epsilon where the count is ${here}, and ${usual} / epsilon elsewhere. Here it was ${SMALL.format(size)} / epsilon: a sign that the count ${near ? "is" : "is not"} ${here}.`;
  }
  if (law.post === "binary") {
    if (!many) return `Rounding hides the noise in a single answer. Where the count is ${here} the answer is a coin flip; elsewhere it is always the same. Several answers together tell.`;
    const [, times, , zeros = 0, ones = 0] = answer;
    if (zeros && ones) return `The answers differ, so there is noise: the count is ${here}.`;
    const chance = `All ${times} answers agree, as a coin would once in ${count(2 ** (times - 1))} times`;
    return times < ENOUGH ? `${chance}: this alone tells little. The attack weighs it together with other answers.` : `${chance}: so the count is most likely ${outside(ones > 0)}.`;
  }
  if (single === 0 || single === 1) return `No noise: so the count is ${outside(single === 1)}.`;
  return `Noise only appears where the count is ${here}.`;
}

const PHASES = {
  "finding bounds": "Finding out where the numbers begin and end",
  histograms: "Counting how often each value occurs",
  values: "Finding out which values occur",
  proving: "Asking again about what is not certain yet",
  "searching again": "Searching again where a proof failed",
};

const FIRST = {
  "": "First it learns which values occur and how often",
  "finding bounds": "First it learns where the numbers begin and end",
  histograms: "First it learns which values occur and how often",
  values: "First it learns which values occur",
};

/** What is being found out; at first no cell of the table can show it. */
function phase(label, first = false) {
  if (first && FIRST[label]) return FIRST[label];
  if (PHASES[label]) return PHASES[label];
  return label ? label[0].toUpperCase() + label.slice(1) : "Asking";
}
return { count, spelled, guard, whom, asked, answered, told, phase };
})();
modules.model = (() => {
// What is known of a run: events go in, numbers and cells come out. No page, no network.

const UNKNOWN = 0;
const RIGHT = 1;
const WRONG = 2;
const FORMAT = 1;
const FEW = 2;

class Run {
  constructor() {
    this.start = null;
    this.end = null;
    this.ranges = [];      // [words, column, people as a BigInt]
    this.cells = [];       // lists of ranges
    this.cellMasks = [];
    this.questions = [];   // {boxes, threshold, answer, round, label}
    this.asked = 0;
    this.answers = 0;
    this.rounds = 0;
    this.claimed = 0;
    this.label = "";
    this.people = 0;
    this.values = 0;
    this.person = {};
    this.paused = false;
    this.fresh = new Set(); // cells that changed since somebody last looked
  }

  get width() { return this.start.table.columns.length; }
  get size() { return this.start.table.rows.length; }
  get law() { return this.start.mechanism; }

  apply(event) {
    switch (event.kind) {
      case "start": return this.begin(event);
      case "asked": return this.ask(event);
      case "round": return this.round(event);
      case "state": this.paused = event.paused; return;
      case "end": return this.finish(event);
    }
  }

  begin(event) {
    if (event.format !== FORMAT) throw new Error("this recording is of another version");
    this.start = event;
    const cells = this.size * this.width;
    this.everybody = (1n << BigInt(this.size)) - 1n;
    this.state = new Uint8Array(cells);
    this.wrong = new Map();
    this.settled = new Int32Array(cells).fill(-1);
    this.byColumn = new Int32Array(this.width);
    this.claimed = event.mechanism.protected ? 0 : null;
  }

  ask(event) {
    for (const [words, column, mask] of event.ranges) this.ranges.push([words, column, BigInt(`0x${mask}`)]);
    for (const cell of event.cells) {
      this.cells.push(cell);
      this.cellMasks.push(cell.reduce((mask, range) => mask & this.ranges[range][2], this.everybody));
    }
    for (const [boxes, threshold, answer] of event.questions) {
      this.questions.push({ boxes, threshold, answer, round: this.rounds + 1 });
      if (boxes[1] >= 0) this.byColumn[this.ranges[boxes[1]][1]]++;
    }
    this.asked += event.questions.length;
    this.answers += event.answers;
    if (this.claimed !== null) this.claimed = Number(this.start.epsilon) * this.answers;
  }

  round(event) {
    this.rounds = event.number;
    this.asked = event.questions;
    this.answers = event.answers;
    this.claimed = event.claimed;
    this.label = event.label ?? this.label;
    this.look(event, event.number - 1); // a look during a round sees what earlier rounds told
  }

  finish(event) {
    this.end = event;
    if (event.ending === "error") return;
    this.look(event, this.rounds);
  }

  look(event, round) {
    this.people = event.people ?? this.people; // what did not change is not told again
    this.values = event.values ?? this.values;
    this.person = event.person ?? this.person;
    const { right = [], wrong = [], gone = [] } = event.cells ?? {};
    for (const cell of right) this.turn(cell, RIGHT, round);
    for (const [cell, value] of wrong) { this.turn(cell, WRONG, round); this.wrong.set(cell, value); }
    for (const cell of gone) this.turn(cell, UNKNOWN, -1);
  }

  turn(cell, state, round) {
    this.state[cell] = state;
    this.settled[cell] = round;
    this.fresh.add(cell);
  }

  /** The people who fit a question, as bits. */
  mask(question) {
    if (question.mask === undefined) {
      let mask = 0n;
      for (let at = 0; at < question.boxes.length; at += 2) {
        const [cell, range] = [question.boxes[at], question.boxes[at + 1]];
        mask |= this.cellMasks[cell] & (range < 0 ? this.everybody : this.ranges[range][2]);
      }
      question.mask = mask;
    }
    return question.mask;
  }

  fits(question) {
    const mask = this.mask(question), people = [];
    for (let person = 0; person < this.size; person++) if ((mask >> BigInt(person)) & 1n) people.push(person);
    return people;
  }

  /** The column that a question narrows last; -1 where it narrows none. */
  column(question) {
    const range = question.boxes[1] >= 0 ? question.boxes[1] : this.cells[question.boxes[0]].at(-1) ?? -1;
    return range < 0 ? -1 : this.ranges[range][1];
  }

  /** The questions that ask about a person; if few, only the last ones on each column. */
  about(person, few) {
    const bit = 1n << BigInt(person);
    const all = this.questions.filter((each) => this.mask(each) & bit);
    if (!few) return all;
    const kept = new Map();
    return all.reverse().filter((each) => {
      const column = this.column(each), number = kept.get(column) ?? 0;
      kept.set(column, number + 1);
      return number < FEW;
    }).reverse();
  }
}
return { UNKNOWN, RIGHT, WRONG, FORMAT, Run };
})();
modules.gauges = (() => {
// Two half-round gauges: what is claimed to be lost, and what is known.

const SVG = "http://www.w3.org/2000/svg";

function make(name, attributes = {}, parent = null, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.textContent = text;
  parent?.append(node);
  return node;
}

class Gauge {
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
return { Gauge };
})();
modules.board = (() => {
// The table of people: a row a person, cells that turn from "?" to what was recovered.

const { RIGHT, WRONG } = modules.model;
const { count } = modules.words;

class Board {
  constructor(table, choose) {
    this.table = table;
    this.head = table.tHead;
    this.body = table.tBodies[0];
    this.truth = false;
    this.cells = [];
    this.lit = [];
    this.body.addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      if (row) choose(Number(row.dataset.person), row.querySelector("button"));
    });
  }

  /** Show a table of which nothing is known but what is known beforehand. */
  show(plain) {
    this.plain = plain;
    this.width = plain.columns.length;
    const names = document.createElement("tr");
    const corner = document.createElement("th");
    corner.scope = "col";
    corner.innerHTML = '<span class="hidden">Person</span>';
    names.append(corner);
    this.counters = plain.columns.map((column) => {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.title = column.about;
      const asked = document.createElement("small");
      asked.textContent = "\u00a0";
      cell.append(column.name, asked);
      names.append(cell);
      return asked;
    });
    this.head.replaceChildren(names);
    this.rows = [];
    this.cells = [];
    plain.rows.forEach((values, person) => {
      const row = document.createElement("tr");
      row.dataset.person = person;
      const head = document.createElement("th");
      head.scope = "row";
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = person + 1;
      button.setAttribute("aria-label", `Person ${person + 1}: show the questions about them`);
      head.append(button);
      row.append(head);
      values.forEach(() => {
        const cell = document.createElement("td");
        row.append(cell);
        this.cells.push(cell);
      });
      this.rows.push(row);
    });
    this.body.replaceChildren(...this.rows);
    this.beforehand = new Set();
    this.run = null;
    this.repaint();
  }

  /** Say which cells the outsider knows without asking. */
  know(cells) {
    this.beforehand = new Set(cells);
    this.repaint();
  }

  repaint() {
    for (let cell = 0; cell < this.cells.length; cell++) this.paint(cell, false);
  }

  setTruth(shown) {
    this.truth = shown;
    this.repaint();
  }

  /** Paint what changed in a run. */
  update(run) {
    this.run = run;
    const calm = run.fresh.size > 400;
    let order = 0;
    for (const cell of run.fresh) this.paint(cell, !calm, order++);
    run.fresh.clear();
    this.counters.forEach((asked, column) => {
      const number = run.byColumn[column];
      asked.textContent = number ? `${count(number)} asked` : "\u00a0";
    });
  }

  paint(cell, lively, order = 0) {
    const node = this.cells[cell];
    const value = this.plain.rows[Math.floor(cell / this.width)][cell % this.width];
    const state = this.run?.state ? this.run.state[cell] : 0;
    node.style.animationDelay = lively ? `${Math.min(order * 12, 500)}ms` : "";
    if (state === WRONG) this.write(node, "wrong", this.run.wrong.get(cell), this.truth ? `The truth is ${value ?? "missing"}` : "");
    else if (state === RIGHT) this.write(node, "right", value, "");
    else if (this.beforehand.has(cell)) this.write(node, "known", value, "Known beforehand");
    else if (this.truth) this.write(node, "ghost", value, "Not recovered");
    else this.write(node, "unknown", "?", "");
    node.classList.toggle("fresh", lively && state !== 0);
  }

  write(node, kind, value, title) {
    node.className = kind;
    node.textContent = value === null || value === undefined ? "missing" : value;
    node.classList.toggle("gap", value === null || value === undefined);
    node.title = title;
  }

  /** Light the rows of some people. */
  light(people) {
    for (const row of this.lit) row.classList.remove("lit");
    this.lit = people.map((person) => this.rows[person]);
    for (const row of this.lit) row.classList.add("lit");
  }

  choose(person) {
    this.body.querySelector("tr.chosen")?.classList.remove("chosen");
    if (person === null) return;
    this.rows[person].classList.add("chosen");
    this.rows[person].scrollIntoView({ block: "nearest" });
  }
}
return { Board };
})();
modules.drawer = (() => {
// The questions about one person, one at a time, with what each answer told.

const { answered, asked, count, told } = modules.words;

const find = (id) => document.getElementById(id);

class Drawer {
  constructor(board) {
    this.board = board;
    this.person = null;
    this.questions = [];
    this.at = 0;
    find("previous").addEventListener("click", () => this.go(-1));
    find("next").addEventListener("click", () => this.go(1));
    find("close").addEventListener("click", () => this.close());
    find("few").addEventListener("change", () => { this.at = 0; this.refresh(); });
    document.addEventListener("keydown", (event) => this.key(event));
  }

  get isOpen() { return this.person !== null; }

  open(person, run, from) {
    this.person = person;
    this.run = run;
    this.from = from;
    this.at = 0;
    find("drawer").hidden = false;
    document.body.classList.add("with-drawer");
    this.refresh();
    this.board.choose(person);
    find("drawer-title").focus({ preventScroll: true });
  }

  close() {
    if (!this.isOpen) return;
    this.person = null;
    find("drawer").hidden = true;
    document.body.classList.remove("with-drawer");
    this.board.choose(null);
    this.board.light([]);
    this.from?.focus({ preventScroll: true });
  }

  key(event) {
    if (!this.isOpen || event.target.closest("input:not([type=checkbox]), select, textarea")) return;
    if (event.key === "ArrowRight") this.go(1);
    else if (event.key === "ArrowLeft") this.go(-1);
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
  }

  /** Look again: more may have been asked by now. */
  refresh() {
    if (!this.isOpen) return;
    const all = this.run?.start ? this.run.about(this.person, false).length : 0;
    this.questions = this.run?.start ? this.run.about(this.person, find("few").checked) : [];
    find("drawer-title").textContent = `Person ${this.person + 1}`;
    const about = document.createElement("small");
    about.textContent = ` ${count(all)} ${all === 1 ? "question" : "questions"} about them`;
    find("drawer-title").append(about);
    this.draw();
  }

  go(step) {
    this.at = Math.max(0, Math.min(this.questions.length - 1, this.at + step));
    this.draw();
  }

  draw() {
    const many = this.questions.length;
    this.at = Math.min(this.at, Math.max(0, many - 1));
    find("place").textContent = many ? `${count(this.at + 1)} of ${count(many)}` : "none";
    find("previous").disabled = this.at === 0;
    find("next").disabled = this.at >= many - 1;
    const host = find("dialogue");
    if (!many) {
      const words = document.createElement("p");
      words.textContent = !this.run?.start
        ? "Nothing was asked yet. Press Go."
        : "No question was about this person yet.";
      host.replaceChildren(words);
      this.board.light([]);
      return;
    }
    const question = this.questions[this.at];
    const people = this.run.fits(question);
    const { text, kind } = answered(this.run, question);
    const line = (name, words) => {
      const node = document.createElement("p");
      node.className = name;
      node.textContent = words;
      return node;
    };
    const settled = this.settledIn(question.round);
    const parts = [
      line("question", asked(this.run, question)),
      line(`answer ${kind}`, text),
      line("told", told(this.run, question)),
      line("fine", `Round ${question.round}. In truth ${people.length} of ${this.run.size} fit; their rows are lit. The outsider does not see that.`
        + (settled.length ? ` After this round their ${settled.join(", ")} was known.` : "")),
    ];
    host.replaceChildren(...parts);
    this.board.light(people);
  }

  settledIn(round) {
    const { width, settled, start } = this.run, first = this.person * width;
    return start.table.columns.filter((_, column) => settled[first + column] === round).map((each) => each.name);
  }
}
return { Drawer };
})();
modules.live = (() => {
// Runs on the server of this machine: requests out, server-sent events in.

const AGAIN = 300; // milliseconds until a stream that broke is opened again

async function call(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The lab does not answer. Is thinveil lab still running in its terminal?");
  }
  const plain = await response.json().catch(() => ({}));
  if (!response.ok) throw Object.assign(new Error(plain.error ?? `The lab answered ${response.status}.`), { status: response.status });
  return plain;
}

const post = (path, plain, method = "POST") =>
  call(path, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(plain) });

class Live {
  constructor() { this.run = null; this.stream = null; this.last = -1; }

  choices() { return call("api/choices"); }
  table(name) { return call(`api/tables/${encodeURIComponent(name)}`); }
  open(file) { return call(`api/tables?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file }); }

  /** Begin a run; `hear` gets every event, `lose` a message when the server is gone. */
  async start(setting, hear, lose) {
    this.stop();
    this.hear = hear;
    this.lose = lose;
    this.last = -1;
    this.run = (await post("api/runs", setting)).run;
    this.listen();
  }

  listen() {
    const stream = new EventSource(`api/runs/${this.run}/events?after=${this.last}`);
    this.stream = stream;
    stream.onmessage = (message) => {
      if (stream !== this.stream) return;
      this.last = Number(message.lastEventId);
      const event = JSON.parse(message.data);
      if (event.kind === "end") stream.close();
      this.hear(event);
    };
    stream.onerror = () => {
      if (stream !== this.stream) return;
      stream.close();
      setTimeout(() => { if (stream === this.stream) this.reconnect(true); }, AGAIN);
    };
  }

  /** Go on where the stream stopped, or say why that is not possible. */
  async reconnect(quiet = false) {
    try {
      await call(`api/runs/${this.run}`);
      this.lose(null);
      this.listen();
    } catch (error) {
      if (error.status === 403) this.lose("The lab was started again. Open the new address that it printed.", false);
      else if (error.status) this.lose(error.message, false);
      else this.lose(quiet ? `${error.message} The page keeps what it has; the run waits.` : error.message, true);
    }
  }

  control(plain) { return post(`api/runs/${this.run}/control`, plain); }
  pause() { return this.control({ action: "pause" }); }
  resume() { return this.control({ action: "resume" }); }
  step(what) { return this.control({ action: what }); }
  speed(speed) { return this.run ? this.control({ speed }).catch((error) => { if (error.status !== 404) throw error; }) : null; }

  stop() {
    this.stream?.close();
    this.stream = null;
    if (this.run) fetch(`api/runs/${this.run}`, { method: "DELETE", keepalive: true }).catch(() => {});
    this.run = null;
  }
}
return { Live };
})();
modules.recorded = (() => {
// Plays runs that were recorded earlier: the same events, without any server.

const TICK = 50;

class Recorded {
  constructor(folder = "recordings") { this.folder = folder; this.kept = new Map(); this.timer = null; }

  /** Load a recording as a script: that works from a disk as well, where pages may fetch nothing. */
  async load(file) {
    if (!this.kept.has(file)) {
      await new Promise((found, missed) => {
        const script = document.createElement("script");
        script.onload = found;
        script.onerror = () => missed(new Error(`The recording ${file} cannot be read.`));
        script.src = `${this.folder}/${file}.js`;
        document.head.append(script);
      });
      this.kept.set(file, globalThis.thinveilRecordings[file]);
    }
    return this.kept.get(file);
  }

  async choices() {
    this.list = await this.load("index");
    this.haste = this.list.usual.haste;
    return this.list;
  }

  async table(name) { return (await this.load(this.list.mechanisms[0].file))[0].table; }

  /** Play a run that somebody saved in the live page. */
  async open(file) {
    let events = null;
    try { events = JSON.parse(await file.text()); } catch { /* said below */ }
    if (!Array.isArray(events) || events[0]?.kind !== "start" || events.at(-1)?.kind !== "end") {
      throw new Error(`${file.name} is not a run that the lab saved.`);
    }
    const name = `saved ${this.kept.size}`;
    this.kept.set(name, events);
    this.list.mechanisms.push({ name, file: name, line: events[0].mechanism.line });
    return { name, table: events[0].table };
  }

  async start(setting, hear) {
    this.stop();
    const chosen = this.list.mechanisms.find((each) => each.name === setting.mechanism);
    this.events = await this.load(chosen.file);
    Object.assign(this, { hear, at: 0, inside: 0, due: 0, paused: setting.paused, known: false });
    this.rate = setting.speed;
    this.hear(this.events[this.at++]);
    this.timer = setInterval(() => this.tick(), TICK);
  }

  tick() {
    if (this.paused) return;
    const hasty = this.events[0].attack === "dataset" && !this.known && this.rate >= this.haste.from;
    this.due += this.rate ? (this.rate * (hasty ? this.haste.times : 1) * TICK) / 1000 : Infinity;
    const wanted = Math.floor(this.due);
    if (wanted < 1) return;
    this.due -= wanted;
    if (!this.rate) this.due = 0;
    this.play(wanted);
  }

  /** Let so many questions through, and what follows them. */
  play(questions) {
    while (this.at < this.events.length) {
      const event = this.events[this.at];
      if (event.kind !== "asked") {
        this.at++;
        this.known ||= event.values > 0;
        this.hear(event);
        if (event.kind === "end") this.rest();
        continue;
      }
      if (questions < 1) return;
      const portion = event.questions.slice(this.inside, this.inside + questions);
      const first = this.inside === 0;
      this.inside += portion.length;
      questions -= portion.length;
      const answers = portion.reduce((sum, [, , told]) => sum + (Array.isArray(told) ? told[1] : 1), 0);
      this.hear({ kind: "asked", ranges: first ? event.ranges : [], cells: first ? event.cells : [], questions: portion, answers });
      if (this.inside < event.questions.length) return;
      this.inside = 0;
      this.at++;
    }
  }

  async pause() { this.paused = true; this.hear({ kind: "state", paused: true }); }
  async resume() { this.paused = false; this.hear({ kind: "state", paused: false }); }

  async step(what) {
    this.paused = true;
    const event = this.events[this.at];
    if (event) this.play(what === "question" || event.kind !== "asked" ? 1 : event.questions.length - this.inside);
    this.hear({ kind: "state", paused: true });
  }

  speed(speed) { this.rate = speed; this.due = 0; }
  rest() { clearInterval(this.timer); this.timer = null; }
  stop() { this.rest(); }
}
return { Recorded };
})();
modules.main = (() => {
// The page: reads what was chosen, drives a run, and shows what is known of it.

const { Board } = modules.board;
const { Drawer } = modules.drawer;
const { Gauge } = modules.gauges;
const { Live } = modules.live;
const { Run } = modules.model;
const { Recorded } = modules.recorded;
const { answered, asked, count, guard, phase, spelled } = modules.words;

const SLOW = 4; // questions a second: slow enough to light the rows of each
const find = (id) => document.getElementById(id);
const recorded = document.documentElement.dataset.mode === "recorded";
const source = recorded ? new Recorded() : new Live();
const gauges = {
  claimed: new Gauge(find("claimed"), "Claimed privacy loss", "0", "1"),
  recovered: new Gauge(find("recovered"), "Recovered", "0", "all"),
};

let choices, table, tableName, run = new Run(), state = "idle", events = [], due = false;
const board = new Board(find("people"), (person, from) => {
  if (needsPerson() && state === "idle" && !recorded) {
    find("person-number").value = person + 1;
    return target();
  }
  drawer.open(person, run, from);
});
const drawer = new Drawer(board);

// what was chosen

const needsPerson = () => ["membership", "uniqueness", "attribute"].includes(find("attack").value);
const option = (value, text, disabled = false) => Object.assign(new Option(text, value), { disabled });
const known = () => [...find("known").querySelectorAll("input:checked")].map((each) => each.value);

function whole(id, name) {
  const value = Number(find(id).value);
  if (find(id).value.trim() === "" || !Number.isInteger(value)) throw new Error(`${name} must be a whole number.`);
  return value;
}

function setting(paused) {
  const attack = find("attack").value || "dataset";
  const chosen = {
    table: find("table").value, mechanism: find("mechanism").value, epsilon: find("epsilon").value.trim(),
    seed: whole("seed", "The seed"), attack, strategy: find("strategy").value, speed: Number(find("speed").value), paused,
  };
  if (!find("k-field").hidden) chosen.k = whole("k", "k");
  if (attack === "column") chosen.columns = [find("column").value];
  if (needsPerson()) {
    chosen.columns = known();
    chosen.person = whole("person-number", "The number of the person") - 1;
    chosen.absent = attack === "membership" && find("absent").checked;
  }
  return chosen;
}

function describe() {
  const mechanism = choices.mechanisms.find((each) => each.name === find("mechanism").value);
  const strategy = choices.strategies.find((each) => each.name === find("strategy").value);
  find("mechanism-line").textContent = `${mechanism?.line ?? ""}${strategy ? ` Strategy: ${strategy.line}.` : ""}`;
  find("k-field").hidden = recorded || !mechanism?.group;
  const attack = find("attack").value;
  find("column-field").hidden = attack !== "column";
  find("person-field").hidden = find("known-field").hidden = !needsPerson();
  find("absent-label").hidden = attack !== "membership";
  target();
}

/** Mark what is known beforehand of the person whom the attack is after. */
function target() {
  if (!table || state !== "idle") return;
  const aimed = !recorded && needsPerson();
  find("legend-known").hidden = !aimed;
  const person = Number(find("person-number").value) - 1;
  const there = aimed && person >= 0 && person < table.rows.length;
  const columns = new Set(known());
  board.know(there ? table.columns.flatMap((each, column) => (columns.has(each.name) ? [person * table.columns.length + column] : [])) : []);
}

function showTable(plain) {
  table = plain;
  board.show(plain);
  find("note").hidden = !plain.note;
  find("note").textContent = plain.note;
  find("column").replaceChildren(...plain.columns.map((each) => option(each.name, each.name)));
  find("person-number").max = plain.rows.length;
  find("known").replaceChildren(...plain.columns.map((each, place) => {
    const label = document.createElement("label");
    label.className = "tick";
    const box = Object.assign(document.createElement("input"), { type: "checkbox", value: each.name, checked: place < 3 && place < plain.columns.length - 1 });
    if (plain.columns.length === 1) box.checked = true;
    label.append(box, ` ${each.name}`);
    return label;
  }));
  target();
  draw();
}

/** Show true values, or hide them; a table that was just opened is hidden. */
function showTruth(shown) {
  find("truth").setAttribute("aria-pressed", String(shown));
  board.setTruth(shown);
}

async function chooseTable() {
  const name = find("table").value;
  alarm(null);
  try {
    const plain = await source.table(name);
    if (find("table").value !== name || isActive()) return; // a run brings its table along
    clear();
    showTruth(false);
    showTable(plain);
    tableName = name;
  } catch (error) {
    if (find("table").value === name && tableName) find("table").value = tableName;
    alarm(error);
  }
}

async function openFile() {
  const [file] = find("file").files;
  if (!file) return;
  alarm(null);
  try {
    const { name, table: plain } = await source.open(file);
    clear();
    showTruth(false);
    const list = find(recorded ? "mechanism" : "table");
    list.append(option(name, recorded ? file.name : plain.title));
    list.value = name;
    if (!recorded) tableName = name;
    describe();
    showTable(plain);
  } catch (error) { alarm(error); }
  find("file").value = "";
}

// the run

function alarm(error) {
  find("alert").hidden = !error;
  find("alert").textContent = error ? error.message : "";
}

function clear() {
  source.stop();
  drawer.close();
  alarm(null);
  lost(null);
  run = new Run();
  events = [];
  become("idle");
  find("verdict").textContent = "";
  find("verdict").className = "verdict";
  if (table) board.show(table);
  target();
  draw();
}

const isActive = () => ["starting", "running", "paused"].includes(state);

function become(next) {
  state = next;
  const active = state === "running" || state === "paused";
  find("locked").hidden = !active;
  find("go").disabled = active || state === "starting";
  find("pause").disabled = !active;
  find("pause").textContent = state === "paused" ? "Resume" : "Pause";
  find("step").disabled = find("one").disabled = state === "ended" || state === "starting";
  find("reset").disabled = state === "idle" || state === "starting";
  find("save").disabled = recorded || state !== "ended";
  const typing = find("fields").contains(document.activeElement);
  find("fields").disabled = isActive();
  if (typing && isActive()) find("people").closest(".scroll").focus({ preventScroll: true }); // a locked field has no focus
  document.body.dataset.state = state;
}

async function begin(paused) {
  let chosen;
  try {
    chosen = setting(paused);
  } catch (error) { alarm(error); return false; }
  clear();
  become("starting");
  try {
    await source.start(chosen, hear, lost);
    if (state === "starting") become(paused ? "paused" : "running");
    return true;
  } catch (error) {
    become("idle");
    alarm(error);
    return false;
  }
}

async function step(what) {
  try {
    if (state === "idle" && !(await begin(true))) return;
    if (state === "running") become("paused");
    await source.step(what);
  } catch (error) { alarm(error); }
}

async function togglePause() {
  try {
    if (state === "paused") { become("running"); await source.resume(); } else { become("paused"); await source.pause(); }
  } catch (error) { alarm(error); }
}

function hear(event) {
  events.push(event);
  try {
    run.apply(event);
  } catch (error) { source.stop(); return alarm(error); }
  if (event.kind === "start") {
    if (JSON.stringify(event.table) !== JSON.stringify(table)) {
      showTruth(false);
      showTable(event.table);
    } else board.show(table);
    const { person, known: facts, table: { columns } } = event;
    find("legend-known").hidden = person === null;
    if (person !== null && event.fitting.includes(person)) {
      board.know(columns.flatMap((each, column) => (each.name in facts ? [person * columns.length + column] : [])));
    }
  }
  if (event.kind === "state" && (state === "running" || state === "paused")) become(event.paused ? "paused" : "running");
  if (event.kind === "end") ended(event);
  later();
}

function ended(event) {
  become("ended");
  const failed = event.ending === "error" || event.ending === "target";
  if (failed) alarm(new Error(event.sentence));
  const nothing = event.ending === "undecided";
  find("verdict").textContent = failed ? "" : nothing
    ? `The attack failed. No usable difference found in ${count(event.answers)} answers${run.law.leaks ? "." : ": the noise is the same whatever the table says."}`
      + (run.values ? ` ${count(run.values)} values had been recovered before.` : " The table stays closed.")
    : event.sentence;
  const { claimed } = event, found = run.values || Object.keys(run.person).length;
  if (claimed > 1 && !nothing && !failed) find("verdict").append(` A claimed loss of ${spelled(claimed)} promises nothing: the curator said so.`);
  if (!failed) find("verdict").prepend(Object.assign(document.createElement("span"), { className: "verdict-of", textContent: `${guard(run.start)}: ` }));
  find("verdict").className = `verdict ${failed ? "" : nothing ? "safe" : claimed === null || claimed > 1 || !found ? "open" : "broken"}`;
}

/** Say that the server is gone, or (null) that it is back. */
function lost(message, again = true) {
  find("lost").hidden = !message;
  find("lost-text").textContent = message ?? "";
  find("reconnect").hidden = !again;
}

// what is shown

function later() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => { due = false; draw(); });
}

function draw() {
  const going = run.start !== null;
  if (going) board.update(run);
  const { claimed } = run;
  gauges.claimed.set(claimed ?? 0, claimed === null ? "none claimed" : spelled(claimed),
    claimed === null ? "this curator promises nothing" : claimed > 1 ? "off the scale: a loss above 1 promises little" : "epsilon, all answers together");
  const [share, number, words] = recovered();
  gauges.recovered.set(share, number, words);
  find("n-questions").textContent = count(run.asked);
  find("n-answers").textContent = count(run.answers);
  find("n-rounds").textContent = count(run.rounds);
  find("n-claimed").textContent = spelled(claimed);
  const people = going ? run.size : table?.rows.length ?? 0, cells = goal();
  find("n-people").textContent = going && run.start.attack !== "dataset" ? "–" : `${count(run.people)} of ${count(people)}`;
  find("n-values").textContent = cells ? `${count(run.values)} of ${count(cells)}` : "–";
  find("n-guessed").textContent = baseline();
  find("run-title").hidden = !going;
  find("run-title").textContent = going ? `${run.start.table.title}: ${guard(run.start)}` : "";
  find("phase").textContent = !going ? "Nothing was asked yet." : run.end ? "The run has ended." : status();
  const last = run.questions.at(-1);
  const { text, kind } = last ? answered(run, last) : { text: "", kind: "" };
  find("reply").className = `answer ${kind}`;
  find("reply").textContent = text;
  find("ticker").textContent = last ? asked(run, last) : going ? "" : "Choose a mechanism and press Go.";
  if (!drawer.isOpen) board.light(last && (state === "paused" || (state === "running" && SLOW >= find("speed").value && find("speed").value > 0)) ? run.fits(last) : []);
  else if (drawer.run !== run || !run.end || run.end !== drawer.seen) { drawer.run = run; drawer.seen = run.end; drawer.refresh(); }
  find("provenance").textContent = going ? `${recorded ? "A recording of a real run" : "This run"} in Python: ${run.start.code}` : "";
}

/** What is being learned; until a first cell is known, it may go faster than was chosen. */
function status() {
  const first = run.start.attack === "dataset" && !run.values;
  const words = phase(run.label, first);
  if (state === "paused") return `Paused. ${words}`;
  const { from, times } = choices.usual.haste;
  return `${words}${first && find("speed").value >= from ? ` (${times} × speed)` : ""} …`;
}

/** How many cells the attack is after. */
function goal() {
  if (!run.start) return table ? table.rows.length * table.columns.length : 0;
  const { attack, columns, fitting, known: facts } = run.start;
  if (attack === "dataset") return run.size * run.width;
  if (attack === "column") return run.size * columns.length;
  if (attack === "attribute") return fitting.length * (run.width - Object.keys(facts).length);
  return 0;
}

function recovered() {
  const attack = run.start?.attack ?? "dataset";
  if (attack === "membership" || attack === "uniqueness") {
    const fact = run.person[attack === "membership" ? "present" : "unique"];
    if (fact === undefined) return [0, "?", "not known"];
    const words = attack === "membership" ? ["nobody like this is in the table", "somebody like this is in the table"] : ["not exactly one", "exactly one person is like this"];
    return [1, fact ? "yes" : "no", words[Number(fact)]];
  }
  const cells = goal(), share = cells ? run.values / cells : 0;
  const percent = share === 1 ? "100 %" : `${Math.floor(share * 100)} %`;
  const whose = attack === "column" ? "of the column's values, but not whose they are" : attack === "attribute" ? "of this person's other values" : "of all values in the table";
  return [share, percent, whose];
}

function baseline() {
  const base = run.start?.baseline;
  if (!base) return "–";
  if (base.people !== null) return `${count(base.people)} records, ${count(base.values)} values`;
  if (base.values !== null) return `${count(base.values)} values`;
  return run.start.attack === "attribute" ? "–" : "a coin flip";
}

function save() {
  const blob = new Blob([JSON.stringify(events.filter((each) => each.kind !== "state"))], { type: "application/json" });
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `thinveil-${run.start.mechanism.name}.lab.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function theme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  find("theme").textContent = dark ? "Light colours" : "Dark colours";
}

async function open() {
  theme(matchMedia("(prefers-color-scheme: dark)").matches);
  if (!recorded && location.search) history.replaceState(null, "", location.pathname);
  document.body.classList.toggle("recorded", recorded);
  become("starting");
  try {
    choices = await source.choices();
  } catch (error) { become("idle"); find("go").disabled = true; return alarm(error); }
  find("table").replaceChildren(...choices.tables.map((each) => option(each.name, each.title)));
  find("mechanism").replaceChildren(...choices.mechanisms.map((each) =>
    option(each.name, each.missing ? `${each.title ?? each.name} (${each.missing})` : each.title ?? each.name, Boolean(each.missing))));
  find("attack").replaceChildren(...choices.attacks.map((each) => option(each.name, each.line)));
  find("strategy").replaceChildren(...choices.strategies.map((each) => option(each.name, each.name)));
  const { usual } = choices;
  find("epsilon").value = usual.epsilon;
  find("speed").value = usual.speed;
  find("strategy").value = usual.strategy;
  find("save").hidden = recorded;
  if (recorded) {
    find("file-label").firstChild.textContent = "Open a saved run";
    find("file").accept = ".json";
  }
  if (recorded) find("mechanism-line").closest("p").after(Object.assign(document.createElement("p"), { className: "line whole", textContent: choices.note }));
  describe();
  become("idle");
  await chooseTable();
}

find("table").addEventListener("change", chooseTable);
find("file").addEventListener("change", openFile);
for (const id of ["mechanism", "attack", "strategy"]) find(id).addEventListener("change", describe);
for (const id of ["person-number", "known"]) find(id).addEventListener("input", target);
find("setup").addEventListener("submit", (event) => { event.preventDefault(); if (!find("go").disabled) begin(false); });
find("pause").addEventListener("click", togglePause);
find("step").addEventListener("click", () => step("round"));
find("one").addEventListener("click", () => step("question"));
find("reset").addEventListener("click", clear);
find("save").addEventListener("click", save);
find("speed").addEventListener("change", async () => { try { await source.speed(Number(find("speed").value)); } catch (error) { alarm(error); } });
find("reconnect").addEventListener("click", () => source.reconnect());
find("truth").addEventListener("click", () => showTruth(find("truth").getAttribute("aria-pressed") !== "true"));
find("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme !== "dark"));
addEventListener("pagehide", () => { if (!recorded) source.stop(); });
open();
return {  };
})();
