// The one connection over which events come. A hidden tab has none: it closes it, and resumes where it was.
//
//   connecting ─► live ─► (lost: wait, a little longer each time) ─► connecting
//        └──────────┴───► paused while the tab is hidden

const WAIT_MIN = 500;
const WAIT_MAX = 10_000;

/** Events from a position on. `on` has: event(event), reset(from), state(name). */
export class Stream {
  constructor(api, on) {
    Object.assign(this, { api, on, after: null, socket: null, wait: WAIT_MIN, timer: 0, attempt: 0, stopped: true });
    document.addEventListener("visibilitychange", () => this.seen());
  }

  /** Begins after this position. */
  start(after) {
    this.after = after;
    this.stopped = false;
    this.seen();
  }

  /** Ends for good. */
  stop() {
    this.stopped = true;
    this.close();
  }

  seen() {
    if (this.stopped) return;
    if (document.hidden) {
      this.close();
      this.on.state("paused");
    } else if (!this.socket) {
      this.wait = WAIT_MIN;
      this.connect();
    }
  }

  close() {
    clearTimeout(this.timer);
    this.attempt += 1;
    this.socket?.close();
    this.socket = null;
  }

  async connect() {
    clearTimeout(this.timer);
    const attempt = (this.attempt += 1);
    this.on.state("connecting");
    try {
      const { ticket } = await this.api.post("/tickets");
      if (attempt === this.attempt) this.open(ticket, attempt);
    } catch {
      if (attempt === this.attempt) this.later();
    }
  }

  open(ticket, attempt) {
    const query = new URLSearchParams({ ticket });
    if (this.after) query.set("after", this.after);
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/stream?${query}`);
    this.socket = socket;
    socket.onopen = () => {
      this.wait = WAIT_MIN;
      this.on.state("live");
    };
    socket.onmessage = ({ data }) => attempt === this.attempt && this.take(JSON.parse(data));
    socket.onclose = () => {
      if (attempt !== this.attempt) return;
      this.socket = null;
      this.later();
    };
  }

  take(message) {
    if (message.event) {
      this.after = message.id;
      this.on.event(message.event);
    } else if (message.reset) {
      this.after = message.reset.from;
      this.on.reset(message.reset.from);
    }
  }

  later() {
    if (this.stopped || document.hidden) return;
    this.on.state("lost");
    // Pages that lost the same server do not all come back at once.
    this.timer = setTimeout(() => this.connect(), this.wait * (0.75 + Math.random() / 2));
    this.wait = Math.min(this.wait * 2, WAIT_MAX);
  }
}
