/**
 * Several samples that one request asks for (`n`, a list of prompts). Each is a call of its own, with its own record,
 * budget and place at an engine, and is handled as if its request had come alone. The answers leave together; where one
 * fails the request has failed, and what the others sampled stays on the record for the client's next try.
 */
import type { ChoicePlace, HttpAnswer, SeveralAnswers, SseFrame, StreamJoiner } from "../dialects/index.ts";
import type { Exchange } from "../http/exchange.ts";
import type { Session } from "../session/session.ts";
import { assertPlacesFor } from "./admit.ts";

/** The exchange itself where it asks for one sample. Throws `request_invalid`, and `budget_spent` for more than the session may run at once. */
export function choicesOf(session: Session, exchange: Exchange): Exchange[] {
  const { several } = exchange.dialect;
  const bodies = several?.split(exchange.body) ?? null;
  if (!several || bodies === null) return [exchange];
  assertPlacesFor(session, bodies.length);
  const joint = new JointAnswer(exchange, several, bodies.length);
  return bodies.map((body, index) => new ChoiceExchange(exchange, joint, body, { index, of: bodies.length }));
}

/** The one answer of several. */
class JointAnswer {
  readonly #exchange: Exchange;
  readonly #several: SeveralAnswers;
  readonly #joiner: StreamJoiner;
  readonly #bodies: (HttpAnswer["body"] | undefined)[];
  #left: number;
  #failed: ChoiceExchange | null = null;

  constructor(exchange: Exchange, several: SeveralAnswers, count: number) {
    this.#exchange = exchange;
    this.#several = several;
    this.#joiner = several.joiner();
    this.#bodies = new Array<undefined>(count).fill(undefined);
    this.#left = count;
  }

  /** What the client was told is this choice's: the whole answer, or its failure. */
  tells(choice: ChoiceExchange): boolean {
    return this.#failed === null ? this.#left === 0 : this.#failed === choice;
  }

  write(frames: SseFrame[]): void {
    if (this.#failed === null) this.#exchange.write(this.#joiner.take(frames).frames);
  }

  async send(choice: ChoiceExchange, answer: HttpAnswer): Promise<void> {
    if (answer.status >= 400) return this.#fail(choice, answer);
    this.#bodies[choice.choice.index] = answer.body;
    if (--this.#left > 0 || this.#failed) return this.#exchange.closed;
    await this.#exchange.send({ ...answer, body: this.#several.join(this.#bodies as Record<string, unknown>[]) });
  }

  async endStream(choice: ChoiceExchange, frames: SseFrame[]): Promise<void> {
    if (this.#failed) return this.#exchange.closed;
    const last = this.#joiner.take(frames);
    if (!last.hasEnded) {
      this.#failed = choice;
      return this.#exchange.endStream(last.frames);
    }
    if (--this.#left === 0) return this.#exchange.endStream([...last.frames, ...this.#joiner.end()]);
    this.#exchange.write(last.frames);
    await this.#exchange.closed;
  }

  /** The first failure is the answer. */
  async #fail(choice: ChoiceExchange, answer: HttpAnswer): Promise<void> {
    if (this.#failed) return this.#exchange.closed;
    this.#failed = choice;
    if (this.#exchange.headersSent) await this.#exchange.endStream([{ data: JSON.stringify(answer.body) }]);
    else await this.#exchange.send(answer);
  }
}

/** One of them, on the connection of all. */
class ChoiceExchange implements Exchange {
  readonly body: unknown;
  readonly choice: ChoicePlace;
  headersSent = false;
  readonly #whole: Exchange;
  readonly #joint: JointAnswer;
  #hasEnded = false;

  constructor(whole: Exchange, joint: JointAnswer, body: unknown, choice: ChoicePlace) {
    this.#whole = whole;
    this.#joint = joint;
    this.body = body;
    this.choice = choice;
  }

  get dialect(): Exchange["dialect"] {
    return this.#whole.dialect;
  }

  get headers(): Exchange["headers"] {
    return this.#whole.headers;
  }

  get bytes(): Exchange["bytes"] {
    return this.#whole.bytes;
  }

  get closed(): Promise<void> {
    return this.#whole.closed;
  }

  get signal(): AbortSignal {
    return this.#whole.signal;
  }

  get isClosed(): boolean {
    return this.#whole.isClosed;
  }

  get isFull(): boolean {
    return this.#whole.isFull;
  }

  get written(): number {
    return this.#whole.written;
  }

  get delivered(): boolean {
    return this.#whole.delivered && this.#joint.tells(this);
  }

  send(answer: HttpAnswer): Promise<void> {
    this.headersSent = true;
    return this.#joint.send(this, answer);
  }

  openStream(): void {
    this.headersSent = true;
    this.#whole.openStream();
  }

  /** Behind its end others may still write. */
  write(frames: SseFrame[]): void {
    if (!this.#hasEnded) this.#joint.write(frames);
  }

  onDrain(call: () => void): void {
    this.#whole.onDrain(call);
  }

  endStream(frames: SseFrame[]): Promise<void> {
    this.#hasEnded = true;
    return this.#joint.endStream(this, frames);
  }
}
