// What the shown clients do at each point in time, from the times that the simulation has recorded.

/** What happens to a client. */
export const LOST = 0;
export const REFUSED = 1;
export const ACCEPTED = 2;
export const CONNECTED = 3;

/** The clients of one policy: their events in the order of time, one client after the other. */
export class Cast {
  /** @param clients for each client its losses, its attempts and its connections, in milliseconds */
  constructor(clients) {
    this.size = clients.length;
    this.from = new Uint32Array(this.size + 1);
    const total = clients.reduce((sum, lists) => sum + lists[0].length + lists[1].length + lists[2].length, 0);
    this.times = new Float64Array(total);
    this.kinds = new Uint8Array(total);
    this.seats = new Uint32Array(total);
    let at = 0;
    clients.forEach(([losses, attempts, connects], id) => {
      this.from[id] = at;
      const events = [
        ...losses.map((time) => [time, LOST]),
        ...attempts.map((time) => [time, REFUSED]),
        ...connects.map((time) => [time, CONNECTED]),
      ].sort((one, other) => one[0] - other[0] || one[1] - other[1]);
      events.forEach(([time, kind], nth) => {
        const isAccepted = kind === REFUSED && events[nth + 1]?.[1] === CONNECTED;
        this.times[at] = time / 1000;
        this.kinds[at] = isAccepted ? ACCEPTED : kind;
        at += 1;
      });
    });
    this.from[this.size] = at;
    this.assignSeats();
    this.next = this.from.slice(0, this.size);
    this.now = -Infinity;
  }

  /** Gives each connection a seat: the number of those that are connected before it. */
  assignSeats() {
    const order = Uint32Array.from(this.times.keys()).sort((one, other) => this.times[one] - this.times[other]);
    let seated = this.size;
    for (const event of order) {
      if (this.kinds[event] === LOST) seated -= 1;
      if (this.kinds[event] === CONNECTED) {
        this.seats[event] = seated;
        seated += 1;
      }
    }
  }

  /** Returns the time of the last event, in seconds. */
  end() {
    return this.times.reduce((latest, time) => Math.max(latest, time), 0);
  }

  /** Moves to a time. Afterwards `next[id]` is the first event of a client that is later. */
  moveTo(time) {
    if (time < this.now) this.next = this.from.slice(0, this.size);
    this.now = time;
    for (let id = 0; id < this.size; id += 1) {
      const end = this.from[id + 1];
      while (this.next[id] < end && this.times[this.next[id]] <= time) this.next[id] += 1;
    }
  }

  /** Returns how many clients wait and how many are connected, and how many attempts were refused in the last second. */
  counts() {
    const counts = { waiting: 0, connected: 0, refused: 0 };
    for (let id = 0; id < this.size; id += 1) {
      const begin = this.from[id];
      const isConnected = this.next[id] === begin || this.kinds[this.next[id] - 1] === CONNECTED;
      counts[isConnected ? "connected" : "waiting"] += 1;
      for (let at = this.next[id] - 1; at >= begin && this.times[at] > this.now - 1; at -= 1) {
        if (this.kinds[at] === REFUSED) counts.refused += 1;
      }
    }
    return counts;
  }
}
