// What is known of a run: events go in, numbers and cells come out. No page, no network.

export const UNKNOWN = 0;
export const RIGHT = 1;
export const WRONG = 2;
export const FORMAT = 1;
const FEW = 2;

export class Run {
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
