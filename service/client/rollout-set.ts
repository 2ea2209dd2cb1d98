/** A set of a service, as its trainer sees it. */
import type { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import type { ExportReport } from "../../exporters/index.ts";
import type { DriftSummary, TrainerLogprobs } from "../../reconstruct/index.ts";
import { placesOf, type ResultRow, type SetState } from "../ledger/index.ts";
import type { SetStepFigures } from "../routes/figure-route.ts";
import type { SetPassRates } from "../routes/pass-rate-route.ts";
import type { LeftOutGroup } from "../routes/set-routes.ts";
import type { ServiceAsker } from "./ask.ts";

/** The name of a task of the service, or a whole task. */
export type AskedTask = string | Record<string, unknown>;

/** What comes with a line where it was asked for. `Row`: a row of the export format. */
export type Delivered<Row> = {
  rows?: Row[];
  report?: ExportReport;
  trajectories?: (Trajectory | null)[];
  /** Bytes in base64, by hash: of pictures (`record`, or rows that name them) and of kept tokens. */
  pictures?: Record<string, string>;
  /** null: no call was recorded, or a node of an earlier version made it. */
  records?: (RolloutRecord | null)[];
};

/** A rollout that is over, with the cursor behind it. */
export type DeliveredResult<Row> = Delivered<Row> & { cursor: string; result: ResultRow };

/** A group that is whole. `spare`: results beside those that an over-provisioned group is made of. */
export type DeliveredGroup<Row> = Delivered<Row> & {
  cursor: string;
  group_key: string;
  group_id: string;
  group_size: number;
  /** Several policies sampled it. */
  mixed_policies: boolean;
  results: ResultRow[];
  spare: ResultRow[];
};

/** `pass_rate` (`low..high`) and `of` (ids of earlier sets) go together. */
export type PassRateOptions = {
  pass_rate?: string;
  of?: readonly string[];
  /** The least reward of a pass; 1 where left out. */
  pass?: number;
  /** Also tasks without a measured reward there. */
  with_unmeasured?: boolean;
  onLeftOut?: (group: LeftOutGroup) => void;
};

export type DeliveryOptions = {
  /** Default: `rows`; for an evaluation, which has no rows for training, `none`. */
  payload?: "none" | "rows" | "trajectory" | "record";
  /** The export format of rows; `flat` where left out. */
  format?: string;
  /** `train`: also calls that were sampled with `top_p`, `top_k` or `min_p`, if the trainer renormalises over their kept tokens. */
  kept_sets?: "leave_out" | "train";
  /** The trainer's policy step. Lag and staleness are counted from it. */
  step?: number;
  signal?: AbortSignal;
};

export type FromCursor = DeliveryOptions & {
  /** Only what comes behind this cursor. */
  after?: string | null;
  /** Where results behind the cursor are expired: refused with a 410 where left out; `skip` gives what is left. */
  expired?: "refuse" | "skip";
  /** Lines of one answer at most. */
  limit?: number;
  /** Seconds that one request waits for more; 0: what there is now is all. */
  wait?: number;
  /** Is told how the set is, before each request. */
  onState?: (state: SetState) => void;
};

/** The service reads the trajectories of a whole batch. */
const driftSeconds = 300;
/** A long poll; proxies close what is silent for a minute. */
const pollSeconds = 30;
const linesAtOnce = 10;
/** Tasks have a few kilobytes. Where they have more, a request has fewer: the service holds what it reads in memory. */
const groupsAtOnce = 200;
const charsAtOnce = 8 * 1024 * 1024;
/** The service takes 10 000 at most. */
const rolloutsAtOnce = 2_000;

export class RolloutSet {
  readonly id: string;
  readonly key: string;
  /** With what it left out as it is by default. */
  readonly spec: SetState["spec"];
  readonly #service: ServiceAsker;
  readonly #path: string;

  constructor(service: ServiceAsker, { set_id, key, spec }: Pick<SetState, "set_id" | "key" | "spec">) {
    this.#service = service;
    this.id = set_id;
    this.key = key;
    this.spec = spec;
    this.#path = `/sets/${set_id}`;
  }

  /**
   * A key that was submitted before is not submitted again. Resolves with the number of new rollouts. `choice`: only tasks that were
   * passed so often in earlier sets; `onLeftOut` gets each of the others.
   */
  async submit(
    groups: Iterable<{ group_key: string; task: AskedTask }>,
    signal?: AbortSignal,
    { onLeftOut = () => undefined, of, ...choice }: PassRateOptions = {},
  ): Promise<number> {
    const query = { ...choice, of: of?.join(",") };
    const most = Math.max(1, Math.min(groupsAtOnce, Math.floor(rolloutsAtOnce / placesOf(this.spec))));
    let rollouts = 0;
    for (const lines of requestsOf(groups, most)) {
      const question = { method: "POST", path: `${this.#path}/groups`, lines, query } as const;
      const answer = await this.#service.ask<{ rollouts: number; left_out?: LeftOutGroup[] }>(question, signal);
      if (choice.pass_rate !== undefined && answer.left_out === undefined) throw earlierService();
      answer.left_out?.forEach(onLeftOut);
      rollouts += answer.rollouts;
    }
    return rollouts;
  }

  /** One rollout, which joins its group by key and index. Resolves when it is over. */
  async rollout<Row = Record<string, unknown>>(
    place: { group_key: string; index: number; task: AskedTask },
    options: DeliveryOptions = {},
  ): Promise<Omit<DeliveredResult<Row>, "cursor">> {
    const { signal } = options;
    const { rollout_id } = await this.#service.ask<{ rollout_id: string }>(
      { method: "POST", path: `${this.#path}/rollouts`, body: place },
      signal,
    );
    const query = { ...this.#delivery(options), wait: pollSeconds };
    for (;;) {
      const question = { path: `${this.#path}/rollouts/${rollout_id}`, query, seconds: pollSeconds };
      const line = await this.#service.ask<Delivered<Row> & { result: ResultRow | null }>(question, signal);
      if (line.result !== null) return { ...line, result: line.result };
    }
  }

  /** Groups in the order in which they became whole, each once. Ends when the set is drained and all of it was given. */
  groups<Row = Record<string, unknown>>(options: FromCursor = {}): AsyncGenerator<DeliveredGroup<Row>> {
    return this.#lines<DeliveredGroup<Row>>(options, true);
  }

  /** Rollouts in the order in which they ended, as `groups`. */
  results<Row = Record<string, unknown>>(options: FromCursor = {}): AsyncGenerator<DeliveredResult<Row>> {
    return this.#lines<DeliveredResult<Row>>(options, false);
  }

  async *#lines<Line extends { cursor: string }>(options: FromCursor, whole_groups: boolean): AsyncGenerator<Line> {
    const { after: from = null, limit = linesAtOnce, expired, wait: seconds = pollSeconds, onState, signal } = options;
    let after = from;
    for (;;) {
      // Asked before the results: what is over then is in them.
      const state = await this.state(signal);
      onState?.(state);
      const isLast = state.is_over || seconds === 0;
      const query = { ...this.#delivery(options), whole_groups, limit, after, expired, wait: isLast ? 0 : seconds };
      let given = 0;
      for await (const line of this.#service.lines<Line>({ path: `${this.#path}/results`, query, seconds }, signal)) {
        after = line.cursor;
        given += 1;
        yield line;
      }
      if (isLast && given === 0) return;
    }
  }

  /** Says what this consumer has safe in its checkpoint. `step`: to which training on it has come. */
  async keep(cursor: string, { consumer = "trainer", step = null }: { consumer?: string; step?: number | null } = {}): Promise<void> {
    const body = { set: this.id, cursor, step };
    await this.#service.ask({ method: "PUT", path: `/consumers/${encodeURIComponent(consumer)}`, body });
  }

  /** A consumer that is gone for good: its cursor holds back no expiry any more. */
  async forget(consumer: string): Promise<void> {
    await this.#service.ask({ method: "DELETE", path: `/consumers/${encodeURIComponent(consumer)}`, query: { set: this.id } });
  }

  /** Counts, ages and failures. */
  state(signal?: AbortSignal): Promise<SetState> {
    return this.#service.ask({ path: this.#path }, signal);
  }

  /** Figures of the latest policy steps; of an evaluation mean reward and pass@k too. `pass`: the least reward of a pass. */
  figures({ last, pass }: { last?: number; pass?: number } = {}): Promise<SetStepFigures> {
    return this.#service.ask({ path: `${this.#path}/figures`, query: { last, pass } });
  }

  /** How often each task was passed. `pass`: the least reward of a pass. */
  passRates({ pass }: { pass?: number } = {}): Promise<SetPassRates> {
    return this.#service.ask({ path: `${this.#path}/pass-rates`, query: { pass } });
  }

  /** Holds logprobs that the trainer recomputed against the record; best those of a whole batch. `tolerance`: nats. */
  drift(lines: readonly z.input<typeof TrainerLogprobs>[], { tolerance }: { tolerance?: number } = {}): Promise<DriftSummary> {
    return this.#service.ask({ method: "POST", path: `${this.#path}/drift`, lines, query: { tolerance }, seconds: driftSeconds });
  }

  /** No more rollouts: `groups` and `results` end when those that there are were given. */
  drain(signal?: AbortSignal): Promise<SetState> {
    return this.#service.ask({ method: "POST", path: `${this.#path}/drain`, body: {} }, signal);
  }

  /** What is not over of the set, of a group or of a rollout ends as `cancelled`. Resolves with how many. */
  async cancel({ group, rollout, reason }: { group?: string; rollout?: string; reason?: string } = {}): Promise<number> {
    const place =
      rollout !== undefined
        ? `/rollouts/${encodeURIComponent(rollout)}`
        : group !== undefined
          ? `/groups/${encodeURIComponent(group)}`
          : "";
    const question = { method: "DELETE", path: this.#path + place, query: { reason } } as const;
    return (await this.#service.ask<{ cancelled: number }>(question)).cancelled;
  }

  #delivery({ payload, format, kept_sets, step }: DeliveryOptions) {
    return { payload: payload ?? (this.spec.purpose === "eval" ? "none" : "rows"), format, kept_sets, step };
  }
}

/** It has taken every group. */
function earlierService(): AlidadeError {
  return new AlidadeError(
    "request_invalid",
    "pass_rate is given, and the service is of a version that chooses by none: bring it up to date",
    {
      param: "pass_rate",
    },
  );
}

/** The groups of each request. */
function* requestsOf<Group>(groups: Iterable<Group>, most: number): Generator<Group[]> {
  let [lines, chars]: [Group[], number] = [[], 0];
  for (const group of groups) {
    const more = JSON.stringify(group).length;
    if (lines.length === most || (lines.length > 0 && chars + more > charsAtOnce)) {
      yield lines;
      [lines, chars] = [[], 0];
    }
    lines.push(group);
    chars += more;
  }
  if (lines.length > 0) yield lines;
}
