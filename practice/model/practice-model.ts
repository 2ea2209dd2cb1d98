/** What the server serves: one policy under one name. */
import { newPolicy, type PracticePolicy } from "../generation.ts";
import { WireError } from "../wire-error.ts";
import { type LlamaFolder, readLlamaFolder } from "./llama-folder.ts";
import type { LogprobsMode } from "./sampler.ts";

type ModelOptions = {
  name: string;
  seed: number;
  maxModelLen: number;
  scaleOut?: boolean;
  logprobsMode?: LogprobsMode;
  maxLogprobs?: number;
};

/** vLLM's default for --max-logprobs. */
export const defaultMaxLogprobs = 20;

export class PracticeModel {
  readonly name: string;
  readonly maxModelLen: number;
  /** The routes of disaggregated serving answer. */
  readonly scaleOut: boolean;
  /** The folder that weights are read from, at the start and at each reload; null: the weights are random and never change. */
  readonly folder: string | null;
  /** The weights; others take the place of these for requests that begin later. */
  policy: PracticePolicy;
  /** The most tokens that an answer lists at one place. */
  readonly #maxLogprobs: number;
  readonly #options: ModelOptions;
  #requests = 0;

  constructor(options: ModelOptions, taught?: { folder: string; read: LlamaFolder }) {
    this.name = options.name;
    this.maxModelLen = options.maxModelLen;
    this.scaleOut = options.scaleOut ?? true;
    this.folder = taught?.folder ?? null;
    this.#maxLogprobs = options.maxLogprobs ?? defaultMaxLogprobs;
    this.#options = options;
    this.policy = newPolicy({ ...options, ...(taught && { weights: taught.read.weights, version: taught.read.version }) });
  }

  /** Makes a model with the weights of a folder. Throws if the folder is unusable. */
  static async of(folder: string, options: Omit<ModelOptions, "maxModelLen"> & { maxModelLen?: number }): Promise<PracticeModel> {
    const read = await readLlamaFolder(folder);
    const { maxModelLen = read.maxPositions } = options;
    if (maxModelLen > read.maxPositions)
      throw new Error(
        `--max-model-len ${maxModelLen} is more than the ${read.maxPositions} max_position_embeddings of ${folder}/config.json`,
      );
    return new PracticeModel({ ...options, maxModelLen }, { folder, read });
  }

  /**
   * Reads the folder again, and starts with an empty cache: cached keys belong to the weights that computed them. A running request
   * ends on the weights that it began with. To avoid that, a trainer closes its gate first.
   */
  async reload(folder: string): Promise<void> {
    const { weights, version, maxPositions } = await readLlamaFolder(folder);
    if (maxPositions < this.maxModelLen)
      throw new Error(`${folder}/config.json has max_position_embeddings ${maxPositions}, and ${this.maxModelLen} are served`);
    this.policy = newPolicy({ ...this.#options, weights, version, counted: this.policy.counted });
  }

  /** For requests without a seed: as in vLLM, the same server gives the same answers to the same requests in the same order. */
  nextSeed(): number {
    this.#requests += 1;
    return -this.#requests;
  }

  /** Refuses a request for longer token lists than the server gives. `asked`: length by field. */
  checkListed(asked: Record<string, number | null | undefined>): void {
    for (const [field, count] of Object.entries(asked))
      if ((count ?? 0) > this.#maxLogprobs)
        throw new WireError(400, `Invalid ${field}: ${count} is above the ${this.#maxLogprobs} that are listed at most`, field);
  }

  /** Refuses a request for another model. */
  check(requested: string | null | undefined): void {
    if (requested === undefined || requested === null || requested === this.name) return;
    throw new WireError(404, `The model \`${requested}\` does not exist. Valid aliases: ${this.name}.`, "model");
  }
}
