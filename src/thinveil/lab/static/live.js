// Runs on the server of this machine: requests out, server-sent events in.

import { ask } from "./key.js";
import { Stream } from "./stream.js";

const AGAIN = 300; // milliseconds until a stream that ended is opened again; twice as many after each failure
const LONGEST = 10_000;

const call = async (path, options) => (await ask(path, options)).json();
const post = (path, plain) =>
  call(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(plain) });

export class Live {
  constructor() { this.run = null; this.stream = null; this.last = -1; }

  choices() { return call("api/choices"); }
  table(name) { return call(`api/tables/${encodeURIComponent(name)}`); }
  open(file) { return call(`api/tables?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file }); }

  /** Begin a run; `hear` gets every event, `lose` a message when the server is gone. */
  async start(setting, hear, lose) {
    this.stop();
    Object.assign(this, { hear, lose, last: -1 });
    this.run = (await post("api/runs", setting)).run;
    this.listen();
  }

  /** Hear the run to its end: where a stream stops, the next one goes on after its last event. */
  async listen(wait = AGAIN) {
    this.leave();
    const stream = new Stream(), before = this.last;
    this.stream = stream;
    let whole = false;
    try {
      await stream.open(`api/runs/${this.run}/events`, this.last);
      if (stream === this.stream) this.lose(null);
      whole = await stream.read((event) => { if (stream === this.stream) this.take(event); });
    } catch (error) {
      if (stream !== this.stream) return;
      if (!error.silent) return this.refuse(error);
      this.lose(`${error.message} The page keeps what it has, and asks again.`, true);
    }
    const next = whole || this.last > before ? AGAIN : Math.min(2 * wait, LONGEST);
    setTimeout(() => { if (stream === this.stream) this.listen(next); }, next);
  }

  take({ id, data }) {
    this.last = Number(id);
    const event = JSON.parse(data);
    if (event.kind === "end") this.leave();
    this.hear(event);
  }

  /** Say why there will be no further stream. */
  refuse(error) {
    this.leave();
    if (!error.status) throw error;
    this.lose(error.status === 401 ? "The lab was started again. Open the new address that it printed." : error.message, false);
  }

  control(plain) { return post(`api/runs/${this.run}/control`, plain); }
  pause() { return this.control({ action: "pause" }); }
  resume() { return this.control({ action: "resume" }); }
  step(what) { return this.control({ action: what }); }
  speed(speed) { return this.run ? this.control({ speed }).catch((error) => { if (error.status !== 404) throw error; }) : null; }

  leave() {
    this.stream?.close();
    this.stream = null;
  }

  stop() {
    this.leave();
    if (this.run) ask(`api/runs/${this.run}`, { method: "DELETE", keepalive: true }).catch(() => {});
    this.run = null;
  }
}
