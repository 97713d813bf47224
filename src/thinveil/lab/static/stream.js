// Server-sent events out of a reply: an EventSource would send no header, and so no key.

import { ask } from "./key.js";

const SILENCE = 30_000; // milliseconds; the lab gives a sign of life every ten seconds

/** Text that comes in pieces, cut anywhere, made into whole events. */
export class Pieces {
  constructor() { Object.assign(this, { rest: "", data: [], id: "", halved: false }); }

  /** Take the next piece; return the events that are whole now. */
  add(piece) {
    if (!piece) return [];
    const text = this.halved && piece.startsWith("\n") ? piece.slice(1) : piece; // the second half of a line's end
    this.halved = piece.endsWith("\r");
    const lines = (this.rest + text).split(/\r\n|\n|\r/);
    this.rest = lines.pop();
    return lines.flatMap((line) => this.line(line));
  }

  /** Read a line; an empty one ends an event. */
  line(line) {
    if (line === "") {
      const { id, data } = this;
      this.data = [];
      return data.length ? [{ id, data: data.join("\n") }] : [];
    }
    const [, name, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
    if (name === "data") this.data.push(value);
    else if (name === "id") this.id = value;
    return [];
  }
}

/** One reply of events; silence for too long breaks it. */
export class Stream {
  constructor() { this.leaving = new AbortController(); this.timer = null; }

  /** Ask for the events after the last one. */
  async open(path, last) {
    this.alive();
    this.reply = await ask(path, { headers: { "Last-Event-ID": last }, signal: this.leaving.signal });
  }

  /** Give every event to `hear`; tell in the end whether that came in good order. */
  async read(hear) {
    const reader = this.reply.body.getReader(), decoder = new TextDecoder(), pieces = new Pieces();
    for (;;) {
      this.alive();
      const { done, value } = await reader.read().catch(() => ({ done: null }));
      if (!value) {
        this.close();
        return done === true;
      }
      for (const event of pieces.add(decoder.decode(value, { stream: true }))) hear(event);
    }
  }

  alive() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.close(), SILENCE);
  }

  close() {
    clearTimeout(this.timer);
    this.leaving.abort();
  }
}
