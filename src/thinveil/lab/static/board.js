// The table of people: a row a person, cells that turn from "?" to what was recovered.

import { RIGHT, WRONG } from "./model.js";
import { count } from "./words.js";

export class Board {
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
