/** A WebSocket that is kept up. */
import { type Clock, nanos, PLATFORM } from "./clock.js";
import { type CloseAction, closeAction, type Within } from "./close-codes.js";
import { ConnectionTarget } from "./connection-target.js";
import { timerMs } from "./delays.js";
import { ConnectionCloseEvent, ConnectionErrorEvent, DroppedEvent, UnreachableEvent } from "./events.js";
import { draw, greatest, least, randomSeed, seedForCall } from "./numbers.js";
import { type Attempt, type ConnectionState, type Made, made } from "./options.js";
import type { Network, ReconnectingWebSocketOptions } from "./options.js";
import { type Message, Outbox, SendError } from "./outbox.js";
import { type Outcome, ReconnectMachine, spreadAgain, type Step, TRANSIENT, type WaitSource } from "./reconnect.js";
import type { Settings } from "./settings.js";
import { close, type Closing, connect, forget, type Socket } from "./socket.js";
import { Timer } from "./timer.js";
import { WEB_SOCKET } from "./web-socket-policy.js";

/** How long an attempt is put off at most because the platform says that there is no network. */
const OFFLINE_MS = 60_000;
/** How often messages that wait for room in an open connection look for it. */
const ROOM_MS = 50;
/** How often in a row rejected credentials are replaced. A connection that was healthy has proved those that it had. */
const MAX_REAUTHENTICATIONS = 1;
/** Errors of the constructor that another attempt would meet again. */
const PERMANENT = ["SyntaxError", "SecurityError", "TypeError"];

/**
 * A WebSocket that reconnects: spread after every loss, backoff after every failed attempt, and the count restarts only after
 * a healthy connection. It has the interface of `WebSocket`, and its events `open`, `message`, `error` and `close`, each for
 * every connection; further `statechange`, `unreachable` and `dropped`.
 *
 * It has one timer at most, besides those of {@link sendWhenRoom}, and decides with the machine of `stagger-core`: the same seed
 * gives the same waits as in Rust, rounded up to milliseconds.
 */
export class ReconnectingWebSocket extends ConnectionTarget {
  readonly #url: Made<string | URL>;
  readonly #protocols: Made<string | string[] | undefined>;
  readonly #options: ReconnectingWebSocketOptions;
  readonly #settings: Readonly<Settings>;
  readonly #seed: bigint;
  readonly #clock: Clock;
  readonly #network: Partial<Network>;
  readonly #machine: ReconnectMachine;
  readonly #outbox: Outbox;
  #state: ConnectionState = { kind: "connecting" };
  #socket: Socket | undefined;
  #lastUrl = "";
  #binaryType: BinaryType = "blob";
  /** Of the wait, or of the attempt. */
  readonly #timer: Timer;
  /** Aborts the functions that make an address, when their attempt has ended. */
  #attempt = new AbortController();
  #reauthentications = 0;
  #reservation: string | undefined;
  /** The wait was put off already: it is spread once. */
  #isPostponed = false;
  #isStateEventDue = false;
  readonly #whenOnline = () => this.#online();
  readonly #whenAborted = () => this.close();

  constructor(
    url: Made<string | URL>,
    protocols?: Made<string | string[] | undefined>,
    options: ReconnectingWebSocketOptions = {},
  ) {
    super();
    this.#url = url;
    this.#protocols = protocols;
    this.#options = options;
    this.#settings = options.policy?.settings ?? WEB_SOCKET;
    this.#seed = options.seed ?? randomSeed();
    this.#clock = options.clock ?? PLATFORM;
    this.#timer = new Timer(this.#clock);
    this.#network = options.network ?? (globalThis as unknown as Network);
    this.#machine = new ReconnectMachine(this.#settings, this.#seed);
    this.#outbox = new Outbox(options.outbox ?? {});
    const { signal } = options;
    if (signal?.aborted) {
      this.#machine.close();
      this.#state = { kind: "closed" };
      return;
    }
    signal?.addEventListener("abort", this.#whenAborted);
    this.#network.addEventListener?.("online", this.#whenOnline);
    this.#apply(this.#machine.reconnectNow(this.#now()));
  }

  /** Returns what the client does at present, with the time of the next attempt. */
  get state(): ConnectionState {
    return this.#state;
  }

  /** Returns the address of the last attempt, without a reservation; empty before the first. */
  get url(): string {
    return this.#lastUrl;
  }

  get readyState(): 0 | 1 | 2 | 3 {
    const { kind } = this.#state;
    if (kind === "closed" || kind === "stopped") {
      return this.#socket ? 2 : 3;
    }
    return kind === "open" ? 1 : 0;
  }

  get protocol(): string {
    return this.#socket?.protocol ?? "";
  }

  get extensions(): string {
    return this.#socket?.extensions ?? "";
  }

  /** Returns the bytes that wait, in the outbox and in the connection. */
  get bufferedAmount(): number {
    return this.#outbox.bytes + (this.#socket?.bufferedAmount ?? 0);
  }

  get binaryType(): BinaryType {
    return this.#binaryType;
  }

  set binaryType(type: BinaryType) {
    this.#binaryType = type;
    if (this.#socket) {
      this.#socket.binaryType = type;
    }
  }

  /**
   * Sends a message over the open connection, or queues it. A message that was handed to a connection is not sent again if
   * the connection is lost.
   *
   * @throws SendError if the message can neither be sent nor queued; its `kind` says why.
   */
  send(message: Message): void {
    if (this.#state.kind === "closed") {
      throw new SendError("closed");
    }
    if (this.#state.kind === "open" && this.#socket) {
      if (this.#outbox.admits(message, this.#socket.bufferedAmount)) {
        this.#socket.send(message as never);
      } else {
        this.#dropped(1);
      }
      return;
    }
    if (this.#state.kind === "stopped") {
      throw new SendError("gave-up");
    }
    this.#dropped(this.#outbox.push(message, this.#clock.now()));
  }

  /**
   * Sends a message like {@link send}, but waits while the outbox or the open connection is full. Calls that wait at the same time are
   * not ordered.
   *
   * @throws SendError if the message can neither be sent nor queued, also later.
   */
  async sendWhenRoom(message: Message): Promise<void> {
    for (;;) {
      try {
        return this.send(message);
      } catch (error) {
        if (!(error instanceof SendError) || error.kind !== "full") {
          throw error;
        }
        // No event says that an open connection has sent what waits in it.
        const sent = () => new Promise<void>((resolve) => this.#clock.setTimeout(resolve, ROOM_MS));
        await (this.#state.kind === "open" ? sent() : this.#outbox.room());
      }
    }
  }

  /** Begins a new episode and connects at once: during a wait, after giving up, or to replace an open connection. After
   * {@link close} it does nothing. */
  reconnectNow(): void {
    if (this.#state.kind === "closed") {
      return;
    }
    this.#detach(1000);
    this.#reauthentications = 0;
    this.#apply(this.#machine.reconnectNow(this.#now()));
  }

  /**
   * Closes for good: cancels the wait or the attempt, and drops the messages that wait.
   *
   * @param code 1000, or 3000 to 4999. Default 1000.
   * @throws DOMException `InvalidAccessError` for any other code, as `WebSocket` does.
   */
  close(code = 1000, reason = ""): void {
    if (code !== 1000 && !(code >= 3000 && code <= 4999)) {
      throw new DOMException(`close code ${code} is neither 1000 nor from 3000 to 4999`, "InvalidAccessError");
    }
    if (this.#state.kind === "closed") {
      return;
    }
    const socket = this.#state.kind === "open" ? this.#socket : undefined;
    this.#machine.close();
    this.#options.signal?.removeEventListener("abort", this.#whenAborted);
    this.#network.removeEventListener?.("online", this.#whenOnline);
    this.#set({ kind: "closed" });
    this.#outbox.fail("closed");
    const closed = (event: Closing) =>
      this.dispatchEvent(new ConnectionCloseEvent(event.code, event.reason, event.wasClean, undefined));
    if (!socket) {
      this.#detach(code, reason);
      queueMicrotask(() => closed({ code, reason, wasClean: true }));
      return;
    }
    // The connection stays until the server has answered.
    socket.onclose = (event: Closing) => {
      forget(socket);
      this.#socket = undefined;
      closed(event);
    };
    close(socket, code, reason);
  }

  #now(): bigint {
    return nanos(this.#clock.now());
  }

  /** Carries out a step of the machine. Returns the wait in milliseconds, if it is one. */
  #apply(step: Step): number | undefined {
    if (step.kind === "wait") {
      this.#isPostponed = false;
      return this.#wait(step.after, step.source);
    }
    if (step.kind === "connect") {
      void this.#connect(step.generation);
    } else if (step.kind === "stop") {
      this.#set({ kind: "stopped", reason: step.reason });
      this.#outbox.fail("gave-up");
    }
    return undefined;
  }

  #wait(after: bigint, source: WaitSource): number {
    const ms = timerMs(after);
    const until = this.#timer.wait(ms, (lateMs) => this.#fired(lateMs, source));
    this.#set({ kind: "waiting", until, unreachable: this.#machine.unreachable !== undefined });
    return ms;
  }

  /** Handles the end of a wait, whose timer fired this many milliseconds late. An overslept wait is spread again, once. */
  #fired(lateMs: number, source: WaitSource): void {
    const random = seedForCall(this.#seed, this.#now());
    const after = this.#isPostponed ? 0n : spreadAgain(nanos(lateMs), this.#settings.spread, random);
    if (after > 0n) {
      this.#isPostponed = true;
      this.#wait(after, source);
      return;
    }
    if (this.#network.navigator?.onLine === false && this.#state.kind === "waiting") {
      this.#set({ kind: "offline" });
      // The flag can be wrong.
      this.#timer.arm(() => this.#due(), OFFLINE_MS);
      return;
    }
    this.#due();
  }

  #due(): void {
    const { phase } = this.#machine;
    const now = this.#now();
    this.#apply(this.#machine.due(phase.kind === "waiting" ? greatest(now, phase.until) : now));
  }

  /** Comes back soon after the network has, but not in the same instant as everybody else behind it. */
  #online(): void {
    const { phase } = this.#machine;
    const isHeld = this.#state.kind === "offline";
    if (phase.kind !== "waiting" || (phase.source === "hint" && !isHeld)) {
      return;
    }
    const now = this.#now();
    const after = draw(0n, this.#settings.spread, seedForCall(this.#seed, now));
    this.#isPostponed = true;
    this.#wait(isHeld ? after : least(after, greatest(phase.until - now, 0n)), phase.source);
  }

  async #connect(generation: number): Promise<void> {
    const attempt = new AbortController();
    this.#attempt = attempt;
    const reservation = this.#reservation;
    this.#reservation = undefined;
    this.#set({ kind: "connecting" });
    const fail = (reason: string) => {
      this.#detach();
      this.#ended(generation, TRANSIENT, 1006, reason, false);
    };
    this.#timer.arm(() => fail("the attempt has timed out"), this.#options.connectTimeoutMs ?? 10_000);
    const about: Attempt = {
      number: this.#machine.attempt,
      needsFreshCredentials: this.#reauthentications > 0,
      signal: attempt.signal,
    };
    let socket: Socket;
    let isConstructing = false;
    try {
      // Values are used at once, so that a constructor with an address connects before it returns, as `WebSocket` does.
      const [url, protocols] = [made(this.#url, about), made(this.#protocols, about)];
      const isLater = url instanceof Promise || protocols instanceof Promise;
      const [address, names] = isLater ? await Promise.all([url, protocols]) : [url, protocols];
      if (attempt.signal.aborted) {
        return;
      }
      this.#lastUrl = String(address);
      isConstructing = true;
      socket = connect(this.#lastUrl, names, reservation, this.#options.WebSocket);
      socket.binaryType = this.#binaryType;
    } catch (error) {
      if (!attempt.signal.aborted) {
        const name = String((error as { name?: unknown } | null)?.name ?? "error");
        const outcome: Outcome = isConstructing && PERMANENT.includes(name) ? { kind: "permanent" } : TRANSIENT;
        this.#detach();
        this.dispatchEvent(new ConnectionErrorEvent(error));
        this.#ended(generation, outcome, 1006, name, false);
      }
      return;
    }
    this.#socket = socket;
    socket.onupgrade = () => {
      this.#machine.opened(generation, this.#now());
    };
    socket.onopen = () => {
      this.#timer.disarm();
      this.#machine.opened(generation, this.#now());
      this.#set({ kind: "open" });
      this.dispatchEvent(new Event("open"));
      this.#flush(socket);
    };
    socket.onmessage = (event: { data: unknown; origin?: string }) => {
      this.dispatchEvent(new MessageEvent("message", { data: event.data, origin: event.origin ?? "" }));
    };
    socket.onerror = (event: { error?: unknown; type?: string }) => {
      // Node before 22 reports no close of a connection that could not be opened. All others do in the same task.
      if (event.type && this.#state.kind === "connecting") {
        this.#timer.arm(() => fail(""), 0);
      }
      this.dispatchEvent(new ConnectionErrorEvent(event.error));
    };
    socket.onclose = ({ code, reason, wasClean }: Closing) => {
      if (this.#socket !== socket) {
        return;
      }
      const wasOpen = this.#machine.phase.kind === "open";
      // A connection that was not negotiated was never in service.
      const wasAccepted = this.#state.kind === "open" && this.#machine.isAccepted(this.#now());
      this.#detach();
      let action: CloseAction | Within = "reconnect";
      try {
        if (wasOpen) {
          action = closeAction(code, reason, this.#options.closeCodes);
        }
      } catch (error) {
        this.dispatchEvent(new ConnectionErrorEvent(error));
      }
      if (wasAccepted || (wasOpen && action !== "reauthenticate")) {
        this.#reauthentications = 0;
      }
      this.#ended(generation, this.#outcome(generation, action), code, reason, wasClean, action === "end");
    };
  }

  /** Returns what the end of an open connection means for the machine. */
  #outcome(generation: number, action: CloseAction | Within): Outcome {
    if (typeof action === "object") {
      this.#reservation = action.reservation;
      // Each client draws its own time and reconnects exactly then.
      const random = seedForCall(this.#seed, BigInt(generation));
      return { kind: "failed", failure: "throttled", asked: draw(action.from, action.to, random) };
    }
    let isPermanent = action === "end" || action === "fatal";
    if (action === "unhealthy") {
      this.#machine.distrust(generation);
    } else if (action === "reauthenticate") {
      this.#reauthentications += 1;
      isPermanent = this.#reauthentications > MAX_REAUTHENTICATIONS;
    }
    return isPermanent ? { kind: "permanent" } : TRANSIENT;
  }

  #ended(generation: number, outcome: Outcome, code: number, reason: string, wasClean: boolean, isNormal = false): void {
    if (this.#state.kind !== "open") {
      // A connection that was not negotiated was never in service.
      this.#machine.distrust(generation);
    }
    const step = this.#machine.ended(generation, outcome, this.#now());
    if (step.kind === "stale") {
      // A listener has closed the client, or has begun another attempt.
      return;
    }
    const retryInMs = this.#apply(step);
    if (isNormal) {
      this.#set({ kind: "stopped", reason: "normal-end" });
    }
    const report = this.#machine.takeUnreachableReport();
    this.dispatchEvent(new ConnectionCloseEvent(code, reason, wasClean, retryInMs));
    if (report) {
      this.dispatchEvent(new UnreachableEvent(report.attempts, timerMs(report.lasted)));
    }
  }

  /** Sends the messages that wait, as long as the connection is open. */
  #flush(socket: Socket): void {
    this.#dropped(this.#outbox.expire(this.#clock.now()));
    for (;;) {
      const message = this.#outbox.peek();
      if (message === undefined || this.#socket !== socket || this.#state.kind !== "open") {
        return;
      }
      try {
        socket.send(message as never);
      } catch (error) {
        this.dispatchEvent(new ConnectionErrorEvent(error));
      }
      this.#outbox.shift();
    }
  }

  /** Takes the handlers off the connection, and closes it if a code is given. Late events of it are lost. */
  #detach(code?: number, reason?: string): void {
    this.#timer.disarm();
    this.#attempt.abort();
    const socket = this.#socket;
    if (socket) {
      forget(socket);
      this.#socket = undefined;
      close(socket, code, reason);
    }
  }

  /** Sets the state. The event comes later, so that no listener is called in the middle of a decision. */
  #set(state: ConnectionState): void {
    this.#state = state;
    if (!this.#isStateEventDue) {
      this.#isStateEventDue = true;
      queueMicrotask(() => {
        this.#isStateEventDue = false;
        this.dispatchEvent(new Event("statechange"));
      });
    }
  }

  #dropped(messages: number): void {
    if (messages > 0) {
      this.dispatchEvent(new DroppedEvent(messages));
    }
  }
}
