/**
 * Forks of the groups of a set (`branching`). Any node may claim a fork, as it claims other rollouts. Where the fork begins follows
 * from the results of its group so far, whose blobs have the sessions. So all nodes choose the same, and no choice is stored.
 */
import type { ForkRound } from "../../base/schema/branching.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { RolloutRecord } from "../../base/schema/rollout.ts";
import type { Harness } from "../../harnesses/index.ts";
import { type SessionRecording, toRecording } from "../../proxy/index.ts";
import { branchingRegistry, chooseForks, type ForkPoint, type TreeMember } from "../../rollouts/branching/index.ts";
import { type RolloutPlan, type RunSetup, toReplayPlans } from "../../rollouts/index.ts";
import { type Blobs, getAllPacked, unpackLog, unpackPictures } from "../blobs/index.ts";
import { type Claim, forkRound, type Ledger, type ResultRow } from "../ledger/index.ts";

export type ForkParts = { ledger: Pick<Ledger, "result">; blobs: Blobs; setup: Pick<RunSetup, "proxy"> };

/** The part of a plan that only forks have. */
export type ForkPlan = Pick<RolloutPlan, "session" | "replay">;

/** Rounds whose choice is remembered: their other forks read one session each. */
const mostChosen = 256;

export class GroupForks {
  readonly #parts: ForkParts;
  readonly #chosen = new Map<string, Promise<ForkPoint[]>>();

  constructor(parts: ForkParts) {
    this.#parts = parts;
  }

  /** "begins": it is no fork. null: its group has no place left. Throws `store_error` if a session cannot be read now. */
  async planOf(claim: Claim, harness: Harness): Promise<ForkPlan | "begins" | null> {
    const round = forkRound(claim.spec, claim.index);
    if (round === null) return "begins";
    const fork = (await this.#chosenIn(claim, round))[claim.index - round.from];
    const row = fork && (await this.#measured(claim, fork.rollout_id));
    if (!fork || !row) return null;
    const lines = await getAllPacked(this.#parts.blobs, row.payload);
    const record = recordIn(lines);
    const recording = recordingOf(record, lines);
    if (recording === null) return null;
    const { proxy } = this.#parts.setup;
    for (const { sha256, base64 } of unpackPictures(lines)) proxy.sessions.store.media?.keep(sha256, Buffer.from(base64, "base64"));
    const [plan] = toReplayPlans({
      ...{ run_id: claim.set_id, record, recording, task: claim.task, harness, turn: fork.turn },
      ...{ words: "go_on", unrepeatable: true },
      sampled: { samples: 1, engines: this.#engines, rendered: false, model: null, edit: null },
    });
    return plan?.replay ? { session: plan.session, replay: plan.replay } : null;
  }

  get #engines() {
    return this.#parts.setup.proxy.pool.slots.map(({ facts }) => facts);
  }

  #chosenIn(claim: Claim, round: ForkRound): Promise<ForkPoint[]> {
    const key = `${claim.group_id} ${round.number}`;
    const known = this.#chosen.get(key);
    if (known) return known;
    const chosen = this.#choose(claim, round);
    chosen.catch(() => this.#chosen.delete(key));
    this.#chosen.set(key, chosen);
    const [oldest] = this.#chosen.keys();
    if (this.#chosen.size > mostChosen && oldest !== undefined) this.#chosen.delete(oldest);
    return chosen;
  }

  async #choose(claim: Claim, { number, from, to }: ForkRound): Promise<ForkPoint[]> {
    const { branching } = claim.spec;
    if (branching === undefined) return [];
    const members: TreeMember[] = [];
    for (let place = 0; place < from; place++) {
      const row = await this.#measured(claim, `${claim.group_id}-${place}`);
      if (row === null) continue;
      const { rollout_id, forked_from, reward, payload } = row;
      // Called one after the other: the logs of a whole group are too much to hold.
      const read = async () => {
        const lines = await getAllPacked(this.#parts.blobs, payload);
        const record = recordIn(lines);
        return record.error === null ? recordingOf(record, lines) : null;
      };
      members.push({ rollout_id, forked_from, reward, read });
    }
    return chooseForks({
      ...{ group_id: claim.group_id, rounds: number - 1, room: to - from, branching, engines: this.#engines },
      policy: branchingRegistry.named(branching.policy),
      members,
    });
  }

  /** Returns the result with a blob; null: the rollout was cancelled, or nothing of it was measured. */
  async #measured({ set_id }: Claim, rollout: string): Promise<(ResultRow & { payload: NonNullable<ResultRow["payload"]> }) | null> {
    const row = await this.#parts.ledger.result(set_id, rollout);
    return row?.state === "completed" && row.payload !== null ? { ...row, payload: row.payload } : null;
  }
}

function recordIn(lines: readonly string[]): RolloutRecord {
  return RolloutRecord.parse(readJson(lines[1] ?? "null"));
}

/** null: its blob has no log, or one that cannot be replayed. */
function recordingOf({ session_id }: RolloutRecord, lines: readonly string[]): SessionRecording | null {
  try {
    const log = unpackLog(lines);
    return log === null || session_id === null ? null : toRecording(session_id, log);
  } catch {
    return null;
  }
}
