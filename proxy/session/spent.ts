/** What a session has used of its budgets, added up call by call. */
import type { Budgets } from "../../schema/session-spec.ts";
import type { Call } from "../calls/call.ts";

export class Spent {
  /** Calls that count as turns: not the harness's repetition of one that failed. */
  turns = 0;
  promptTokens = 0;
  /** Tokens of finished calls; a running call counts its own. */
  sampledTokens = 0;
  /** The budget that ran out; null while all of them last. */
  over: keyof Budgets | null = null;
  /** When the first call was begun; null before there is one. */
  firstCall: number | null = null;

  begun({ begun }: Call): void {
    if (begun.retry_of === null) this.turns++;
    this.firstCall = Math.min(this.firstCall ?? begun.time, begun.time);
  }

  /** Undoes `begun` for a call that could not be recorded. */
  takeBack({ begun }: Call): void {
    if (begun.retry_of === null) this.turns--;
    if (this.firstCall === begun.time && this.turns === 0) this.firstCall = null;
  }

  /**
   * Charges a request once, with the call that was answered. A failed call is not charged, because its client retries; a
   * call that was cut by a spent budget is.
   */
  finished({ finished, idText, promptLength }: Call): void {
    if (finished?.error && finished.error.code !== "budget_spent") return;
    this.promptTokens += finished?.usage.prompt_tokens ?? promptLength;
    this.sampledTokens += (idText ? idText.length - promptLength : finished?.usage.sampled_tokens) ?? 0;
  }
}
