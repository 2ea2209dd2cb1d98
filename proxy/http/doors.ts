/**
 * Connections that belong to a session, whatever key is sent on them, and the order of what comes on each: one request
 * after the other. HTTP lets a client send more before the first is answered, and no harness does; a server parses them
 * all at once.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { Pace } from "../../base/host/pace.ts";
import type { Session } from "../session/session.ts";
import type { Gate } from "./gate.ts";
import { discard } from "./request-bytes.ts";

/** A harness that opens a connection a request, and tries each four times, is slower. */
const triesAConnection = 4;

/** A client that sends more before the first is answered is none: its connection is closed. */
const mostAhead = 4;

/** What was sent ahead is parsed all the same, a few hundred requests in 15 ms, so its session opens connections more slowly. */
const openingsOfOneAhead = 64;

/** `rest`: what is left of requests that were answered before their end. */
type Doorway = { open: number; opening: Pace; rest: Pace };

export class Doors {
  readonly #gate: Gate;
  readonly #sessions = new WeakMap<object, Session>();
  readonly #counted = new WeakSet<object>();
  readonly #doorways = new WeakMap<Session, Doorway>();
  /** The answer that each connection waits for last, and how many requests wait behind others. */
  readonly #lines = new WeakMap<object, { last: ServerResponse | null; waiting: number }>();

  constructor(gate: Gate) {
    this.#gate = gate;
  }

  /** False for one too many: it is closed. */
  admit(session: Session, socket: Duplex): boolean {
    if (!this.#open(session, socket)) return false;
    this.#sessions.set(socket, session);
    return true;
  }

  /**
   * Counts a connection that came without a door, when its first request names a sandboxed session by its key. Requests
   * after it may name other sessions. One too many is closed.
   */
  count(session: Session, socket: Duplex): void {
    if (!session.spec.sandboxed || this.#sessions.has(socket) || this.#counted.has(socket)) return;
    if (this.#open(session, socket)) this.#counted.add(socket);
  }

  #open(session: Session, socket: Duplex): boolean {
    const doorway = this.#doorway(session);
    const { connections } = this.#gate.boundsOf(session);
    if (doorway.open >= connections || doorway.opening.take(1) > 0) {
      socket.destroy();
      return false;
    }
    doorway.open++;
    socket.once("close", () => doorway.open--);
    return true;
  }

  sessionOf(incoming: IncomingMessage): Session | undefined {
    return this.#sessions.get(incoming.socket);
  }

  /** Serves a request when the one in front of it on its connection is answered. */
  inOrder(incoming: IncomingMessage, outgoing: ServerResponse, serve: () => void): void {
    const { socket } = incoming;
    // What was parsed before the connection was closed comes all the same.
    if (socket.destroyed) return;
    const line = this.#lines.get(socket) ?? { last: null, waiting: 0 };
    this.#lines.set(socket, line);
    const before = line.last;
    line.last = outgoing;
    const session = this.sessionOf(incoming);
    if (session) this.#readRest(session, incoming, outgoing);
    if (!before || before.writableEnded) serve();
    else if (++line.waiting > mostAhead) {
      socket.destroy();
      if (session) this.#doorway(session).opening.take(openingsOfOneAhead);
    } else
      before.once("close", () => {
        line.waiting--;
        if (!socket.destroyed) serve();
      });
  }

  /** Reads what is left of a body at the session's pace. Node would read it as fast as it comes. */
  #readRest(session: Session, incoming: IncomingMessage, outgoing: ServerResponse): void {
    incoming.read(0);
    outgoing.once("close", () => {
      if (!incoming.readableEnded && !incoming.destroyed) void discard(incoming, this.#doorway(session).rest);
    });
  }

  #doorway(session: Session): Doorway {
    const known = this.#doorways.get(session);
    if (known) return known;
    const { connections, requests_per_second, bytes_in_flight } = this.#gate.boundsOf(session);
    const doorway = {
      open: 0,
      opening: new Pace(requests_per_second, connections * triesAConnection),
      rest: new Pace(bytes_in_flight / 16, bytes_in_flight / 64),
    };
    this.#doorways.set(session, doorway);
    return doorway;
  }
}
