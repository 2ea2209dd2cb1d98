/**
 * A model that speaks for the user of a rollout. It is called through the proxy, in a session of its own, which is recorded and
 * never trained. Roles are swapped for it: the agent's messages are `user`, and its own messages are `assistant`.
 */
import { AlidadeError, type ErrorCode, messageOf } from "../../base/errors.ts";
import type { UserEnd, UserRecord } from "../../base/schema/rollout.ts";
import type { SimulatedUser } from "../../base/schema/simulated-user.ts";
import { askModel, infrastructureCode, type ModelAnswer, type ModelRefusal, withoutMarks } from "../../graders/index.ts";
import type { HarnessProxy, Session } from "../../proxy/index.ts";
import { tokenizersAt } from "../open-sampler.ts";

/** The user's next message. `end`: why there is none for the agent; null: the agent gets `text`. */
export type UserTurn = { text: string; end: null } | { text: null; end: UserEnd };

/** Most characters of an agent's message. A longer one would fill the user's context, and no person reads so much. */
const longestSaid = 65_536;
/** The same as our harnesses ask for. It leaves room for thoughts. */
const maxOutputTokens = 8_192;
/**
 * Asks whether the engine serves the user's model at all. No word of this prompt comes from the agent. A short answer (`plainTokens`) is
 * proof enough.
 */
const plainPrompt = "Hello.";
const plainTokens = 16;
/** A message may be asked for twice, with the plain prompt between. */
const callsOfTurn = 3;
/** A weight update may delay an answer by five minutes. An engine that takes longer than this has stalled. */
const answerMs = 900_000;

type SpokenMessage = { role: "system" | "user" | "assistant"; content: string };

export class UserModel implements AsyncDisposable {
  readonly #proxy: HarnessProxy;
  readonly #session: Session;
  readonly #key: string;
  readonly #spec: SimulatedUser;
  readonly #model: string;
  readonly #messages: SpokenMessage[];
  #turns: number;
  #sampled: number | null = 0;
  #end: UserEnd | null = null;

  private constructor(
    proxy: HarnessProxy,
    opened: { session: Session; key: string },
    spec: SimulatedUser,
    first: string | null,
    model: string,
  ) {
    this.#proxy = proxy;
    this.#session = opened.session;
    this.#key = opened.key;
    this.#spec = spec;
    this.#model = model;
    // Some templates refuse a conversation that begins with an `assistant` message.
    const said = first === null ? "" : `\n\nThis is what you have written first:\n\n${first}`;
    this.#messages = [{ role: "system", content: `${spec.instructions}${said}` }];
    this.#turns = first === null ? 0 : 1;
  }

  /** `first`: the message that the user has sent already; null: none. Throws if no engine serves its model. */
  static async open(
    proxy: HarnessProxy,
    spec: SimulatedUser,
    { task_id, rollout_id, first, model }: { task_id: string; rollout_id: string; first: string | null; model: string },
  ): Promise<UserModel> {
    const own = spec.model ?? model;
    const budgets = { max_turns: spec.max_turns * callsOfTurn };
    const opened = await proxy.openSession({ purpose: "eval", model: own, task_id, budgets, labels: { user_of: rollout_id } });
    return new UserModel(proxy, opened, spec, first, own);
  }

  /** The record so far: messages that reached the agent, and why the conversation ended. */
  get record(): UserRecord {
    return { session_id: this.#session.id, model: this.#model, turns: this.#turns, sampled_tokens: this.#sampled, end: this.#end };
  }

  /** Ends the conversation, for a reason that the agent caused. */
  endBy(end: UserEnd): void {
    this.#end = end;
  }

  /** Ends the conversation with a message that could not be given to the agent. */
  endUnheard(): void {
    this.#turns -= 1;
    this.#end = "user_unreadable";
  }

  /** Answers the agent's message. Throws failures of the infrastructure. */
  async answer(said: string, signal: AbortSignal): Promise<UserTurn> {
    const turn = await this.#answer(said, signal);
    if (turn.end === null) this.#turns += 1;
    this.#end = turn.end;
    return turn;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#proxy.sessions.close(this.#session, "the conversation is over");
  }

  async #answer(said: string, signal: AbortSignal): Promise<UserTurn> {
    if (this.#turns >= this.#spec.max_turns) return { text: null, end: "max_turns" };
    if (said.length > longestSaid) return { text: null, end: "agent_too_long" };
    const within = AbortSignal.any([signal, AbortSignal.timeout(answerMs)]);
    const content = await this.#withoutMarks(said.toWellFormed(), within);
    if (content === null) return { text: null, end: "agent_unreadable" };
    this.#messages.push({ role: "user", content });
    const { text, end } = await this.#ask(within).catch((error: unknown) => {
      signal.throwIfAborted();
      throw this.#failure(error);
    });
    if (text === null) return { text, end };
    this.#messages.push({ role: "assistant", content: text });
    return this.#spec.stop?.some((word) => text.includes(word)) ? { text: null, end: "stop" } : { text, end: null };
  }

  /**
   * The agent's text is data for the user's model. It must not become tokens of a chat template, or the agent could speak for the
   * user. If an engine does not report how it reads a text, the text is sent as it is. null: such tokens cannot be avoided.
   */
  async #withoutMarks(said: string, signal: AbortSignal): Promise<string | null> {
    const known = tokenizersAt(this.#proxy, this.#model).flatMap(({ tokenizer }) => tokenizer ?? []);
    try {
      return await withoutMarks(said, known, signal);
    } catch (error) {
      if (error instanceof AlidadeError && error.code === "grader_error") return null;
      throw this.#failure(error);
    }
  }

  /**
   * Asks for the user's next message. A machine's failure is thrown; what the agent's words can bring about is an end. The two are
   * told apart by a prompt without the agent's words: if the engine answers that, and fails at the conversation once more, the
   * conversation is why.
   */
  async #ask(signal: AbortSignal): Promise<UserTurn> {
    const first = await this.#call(this.#messages, this.#mostTokens(), signal);
    if ("answer" in first) return saidIn(first.answer);
    if (isFull(first.refusal)) return { text: null, end: "context_full" };
    if (!mayBeTheWords(first.refusal)) throw refused(first.refusal);
    const plain = await this.#call([...this.#messages.slice(0, 1), { role: "user", content: plainPrompt }], plainTokens, signal);
    if ("refusal" in plain) throw refused(first.refusal);
    const again = await this.#call(this.#messages, this.#mostTokens(), signal);
    if ("answer" in again) return saidIn(again.answer);
    if (isFull(again.refusal)) return { text: null, end: "context_full" };
    if (!mayBeTheWords(again.refusal)) throw refused(again.refusal);
    return { text: null, end: "user_refused" };
  }

  async #call(messages: readonly SpokenMessage[], max_tokens: number, signal: AbortSignal): ReturnType<typeof askModel> {
    const body = { model: this.#model, messages, max_tokens, temperature: this.#spec.temperature };
    const asked = await askModel({ url: this.#proxy.url, key: this.#key }, body, signal);
    if ("answer" in asked) {
      const { sampled_tokens: tokens } = asked.answer;
      this.#sampled = this.#sampled === null || tokens === null ? null : this.#sampled + tokens;
    }
    return asked;
  }

  #mostTokens(): number {
    const windows = this.#proxy.pool.slots.flatMap(({ facts }) => facts.max_model_len ?? []);
    return Math.min(maxOutputTokens, ...windows.map((window) => Math.ceil(window / 4)));
  }

  #failure(error: unknown): AlidadeError {
    const code = (error instanceof AlidadeError && infrastructureCode(error.code)) || "user_failed";
    const message = `the task's user (session ${this.#session.id}) did not answer: ${messageOf(error)}`;
    return new AlidadeError(code, message, { cause: error });
  }
}

/** A model may say nothing, or spend all its tokens on thoughts. The agent can talk it into both. */
function saidIn({ text }: ModelAnswer): UserTurn {
  return text.trim() === "" ? { text: null, end: "user_silent" } : { text, end: null };
}

function isFull({ code }: ModelRefusal): boolean {
  return code === ("context_length_exceeded" satisfies ErrorCode);
}

/** A full engine answers with one of these. It may still take a short prompt. */
const busy: readonly number[] = [429, 503];

/** Engines refuse some texts, and break at others. An engine that is busy or cannot be reached says nothing of a text. */
function mayBeTheWords({ status, infrastructure }: ModelRefusal): boolean {
  return infrastructure === null || (infrastructure === "engine_error" && !busy.includes(status));
}

function refused({ infrastructure, message }: ModelRefusal): AlidadeError {
  return new AlidadeError(infrastructure ?? "user_failed", message);
}
