/** What the server serves: one policy under one name. */
import { newPolicy, type PracticePolicy } from "../generation.ts";
import { WireError } from "../wire-error.ts";
import type { LogprobsMode } from "./sampler.ts";

export class PracticeModel {
  readonly name: string;
  readonly maxModelLen: number;
  /** The routes of disaggregated serving answer. */
  readonly scaleOut: boolean;
  /** The weights; others take the place of these for requests that begin later. */
  policy: PracticePolicy;
  #requests = 0;

  constructor(options: { name: string; seed: number; maxModelLen: number; scaleOut?: boolean; logprobsMode?: LogprobsMode }) {
    this.name = options.name;
    this.maxModelLen = options.maxModelLen;
    this.scaleOut = options.scaleOut ?? true;
    this.policy = newPolicy(options);
  }

  /** For requests without a seed: as in vLLM, the same server gives the same answers to the same requests in the same order. */
  nextSeed(): number {
    this.#requests += 1;
    return -this.#requests;
  }

  /** Refuses a request for another model. */
  check(requested: string | null | undefined): void {
    if (requested === undefined || requested === null || requested === this.name) return;
    throw new WireError(404, `The model \`${requested}\` does not exist. Valid aliases: ${this.name}.`, "model");
  }
}
