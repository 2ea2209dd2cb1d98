/** What a call does in this process, from the moment it is let in until what came of it is in the log. */
import type { AlidadeError } from "../../base/errors.ts";
import type { Tried } from "../../base/schema/session-log.ts";
import type { Generation } from "../calls/generation.ts";
import type { OpenPause } from "../pool/engine-lease.ts";
import type { Call } from "./call.ts";

/** Writes down what was sampled; why the call failed, with all that this process knows of it, or null. */
type SaveCall = () => Promise<AlidadeError | null>;

type RunStage =
  /** Its beginning is being written. */
  | { type: "beginning" }
  | { type: "sampling"; generation: Generation }
  /** `saving` is null where the last try to write it down failed. */
  | { type: "sampled"; generation: Generation; save: SaveCall; saving: ReturnType<SaveCall> | null }
  /** It is in the log. */
  | { type: "over" };

export class CallRun {
  readonly call: Call;
  #stage: RunStage = { type: "beginning" };
  #recorded: Promise<void> = Promise.resolve();
  #settled: Promise<void> = Promise.resolve();
  readonly #onOver: () => void;

  constructor(call: Call, onOver: () => void) {
    this.call = call;
    this.#onOver = onOver;
  }

  /** Resolves when it is written down that it was begun; rejects when that could not be. */
  get recorded(): Promise<void> {
    return this.#recorded;
  }

  /** Resolves when what came of it is durable; rejects with the call's failure, or the store's. */
  get settled(): Promise<void> {
    return this.#settled;
  }

  /** There from the first try until it is over. */
  get generation(): Generation | null {
    return "generation" in this.#stage ? this.#stage.generation : null;
  }

  get isBeginning(): boolean {
    return this.#stage.type === "beginning";
  }

  /** It was sampled and could not be written down. */
  get isUnsaved(): boolean {
    return this.#stage.type === "sampled" && this.#stage.saving === null;
  }

  /** Its tries so far, none of which is in the log. */
  get tries(): readonly Tried[] {
    return this.generation?.tries ?? [];
  }

  get pauses(): readonly OpenPause[] {
    return this.generation?.pauses ?? [];
  }

  get sampledTokens(): number {
    return this.generation?.sampledTokens ?? 0;
  }

  beginning(recorded: Promise<void>): void {
    this.#recorded = recorded;
  }

  /** It goes on by itself until this settles. */
  follow(settled: Promise<void>): void {
    this.#settled = settled;
    // A client that has left does not listen to it, and the failure is on the record.
    settled.catch(() => undefined);
  }

  sampling(generation: Generation): void {
    this.#stage = { type: "sampling", generation };
  }

  /** Writes down what was sampled. Throws the call's failure, and where it could not be written; then it may be saved again. */
  async sampled(save: SaveCall): Promise<void> {
    const { generation } = this;
    if (generation) this.#stage = { type: "sampled", generation, save, saving: null };
    await this.#saveOrFail();
  }

  /** One that was sampled and could not be written (a full disk) is written now, not sampled again. */
  saveAgain(): void {
    if (this.isUnsaved) this.follow(this.#saveOrFail());
  }

  /** The same, where it does not matter what came of the call. Throws where it cannot be written. */
  async saved(): Promise<void> {
    if (this.isUnsaved) await this.#save();
  }

  /** It could not be written down that it was begun: as far as the log knows it never was. */
  drop(): void {
    this.#end();
  }

  /** Ends it at the engine. */
  stop(error: AlidadeError): void {
    void this.generation?.stop(error);
  }

  cancel(why: string): void {
    void this.generation?.cancel(why);
  }

  async #saveOrFail(): Promise<void> {
    const failure = await this.#save();
    if (failure) throw failure;
  }

  #save(): ReturnType<SaveCall> {
    const stage = this.#stage;
    if (stage.type !== "sampled") return Promise.resolve(null);
    stage.saving = stage.save().then(
      (failure) => {
        this.#end();
        return failure;
      },
      (error: unknown) => {
        stage.saving = null;
        throw error;
      },
    );
    return stage.saving;
  }

  #end(): void {
    this.#stage = { type: "over" };
    this.#onOver();
  }
}
