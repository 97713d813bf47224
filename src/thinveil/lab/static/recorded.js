// Plays runs that were recorded earlier: the same events, without any server.

const TICK = 50;

export class Recorded {
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

  async table() { return (await this.load(this.list.mechanisms[0].file))[0].table; }

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
