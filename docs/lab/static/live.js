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

export class Live {
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
