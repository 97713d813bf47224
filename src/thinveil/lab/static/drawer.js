// The questions about one person, one at a time, with what each answer told.

import { answered, asked, count, counted, told } from "./words.js";

const find = (id) => document.getElementById(id);

export class Drawer {
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
    about.textContent = ` ${counted(all, "question")} about them`;
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
