/**
 * Forks of the groups of a set (`branching`). Any node may claim a fork, as it claims other rollouts. Where the fork begins follows
 * from the results of its group so far, whose blobs have the sessions. So all nodes choose the same, and no choice is stored.
 */
import { AlidadeError } from "../../base/errors.ts";
import type { ForkRound } from "../../base/schema/branching.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { RolloutRecord } from "../../base/schema/rollout.ts";
import type { Harness } from "../../harnesses/index.ts";
import { type SessionRecording, toRecording } from "../../proxy/index.ts";
import { branchingRegistry, chooseForks, type ForkPoint } from "../../rollouts/branching/index.ts";
import { type RolloutPlan, type RunSetup, toReplayPlans } from "../../rollouts/index.ts";
import { type Blobs, getAllPacked, unpackLog, unpackPictures } from "../blobs/index.ts";
import { type Claim, forkRound, type Ledger } from "../ledger/index.ts";

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
    const lines = fork && (await this.#linesOf(claim, fork.rollout_id));
    if (!fork || !lines) return null;
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
    const failures: unknown[] = [];
    const members: { record: RolloutRecord; read: () => Promise<SessionRecording> }[] = [];
    for (let place = 0; place < from; place++) {
      const rollout = `${claim.group_id}-${place}`;
      const lines = await this.#linesOf(claim, rollout);
      if (lines === null) continue;
      const record = recordIn(lines);
      // Read once more when it is looked at: the logs of a whole group are too much to hold.
      const read = async () => {
        const again = await this.#linesOf(claim, rollout).catch((error: unknown) => {
          failures.push(error);
          return null;
        });
        return readable(recordingOf(record, again ?? []));
      };
      members.push({ record, read });
    }
    const chosen = await chooseForks({
      ...{ group_id: claim.group_id, rounds: number - 1, room: to - from, branching, engines: this.#engines },
      policy: branchingRegistry.named(branching.policy),
      members,
    });
    // Without a session that cannot be had now it would be another choice.
    if (failures.length > 0) throw failures[0];
    return chosen;
  }

  /** null: it was cancelled, or nothing of it was measured. */
  async #linesOf({ set_id }: Claim, rollout: string): Promise<string[] | null> {
    const row = await this.#parts.ledger.result(set_id, rollout);
    if (row === null || row.state !== "completed" || row.payload === null) return null;
    return getAllPacked(this.#parts.blobs, row.payload);
  }
}

function recordIn(lines: readonly string[]): RolloutRecord {
  return RolloutRecord.parse(readJson(lines[1] ?? "null"));
}

/** null: its log cannot be gone on from. */

function recordingOf({ session_id }: RolloutRecord, lines: readonly string[]): SessionRecording | null {
  const log = unpackLog(lines);
  return log === null || session_id === null ? null : toRecording(session_id, log);
}

function readable(recording: SessionRecording | null): SessionRecording {
  if (recording === null) throw new AlidadeError("not_found", "its session is not in its blob");
  return recording;
}
