// The page: reads what was chosen, drives a run, and shows what is known of it.

import { Board } from "./board.js";
import { Drawer } from "./drawer.js";
import { Gauge } from "./gauges.js";
import { brought, drop, take } from "./key.js";
import { Live } from "./live.js";
import { Run } from "./model.js";
import { Recorded } from "./recorded.js";
import { answered, asked, count, counted, guard, phase, spelled } from "./words.js";

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
  const failed = ["broken", "error", "target"].includes(event.ending);
  if (failed) alarm(new Error(event.sentence));
  const nothing = event.ending === "undecided";
  find("verdict").textContent = failed ? "" : nothing
    ? `The attack failed. ${event.sentence}`
      + (run.values ? ` ${counted(run.values, "value")} had been recovered before.` : "")
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
  if (base.people !== null) return `${counted(base.people, "record")}, ${counted(base.values, "value")}`;
  if (base.values !== null) return counted(base.values, "value");
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

/** Show nothing but where the key is to be found. */
function shut() {
  drop();
  document.body.dataset.state = "shut";
  find("shut").hidden = false;
}

async function open() {
  theme(matchMedia("(prefers-color-scheme: dark)").matches);
  document.body.classList.toggle("recorded", recorded);
  if (!recorded && !take()) return shut();
  become("starting");
  try {
    choices = await source.choices();
  } catch (error) { if (error.status === 401) return shut(); become("idle"); find("go").disabled = true; return alarm(error); }
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
find("reconnect").addEventListener("click", () => source.listen());
find("truth").addEventListener("click", () => showTruth(find("truth").getAttribute("aria-pressed") !== "true"));
find("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme !== "dark"));
addEventListener("hashchange", () => { if (!recorded && brought()) location.reload(); });
addEventListener("pagehide", () => { if (!recorded) source.stop(); });
open();
