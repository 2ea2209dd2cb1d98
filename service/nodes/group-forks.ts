/**
 * Forks of the groups of a set (`branching`). A fork is claimed as any other rollout is, by any node: where it begins follows from the
 * results of its group so far, whose sessions lie in their blobs. So each node chooses the same, and no choice is kept anywhere.
 */
import { AlidadeError } from "../../base/errors.ts";
import type { ForkRound } from "../../base/schema/branching.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { RolloutRecord } from "../../base/schema/rollout.ts";
import type { Harness } from "../../harnesses/index.ts";
import { type SessionRecording, toRecording } from "../../proxy/index.ts";
import { branchingRegistry, chooseForks, type ForkPoint } from "../../rollouts/branching/index.ts";
import { type RolloutPlan, type RunSetup, toReplayPlans } from "../../rollouts/index.ts";
import { type Blobs, getAllPacked, type PackedPicture, unpackLog, unpackPictures } from "../blobs/index.ts";
import { type Claim, forkRound, type Ledger } from "../ledger/index.ts";

export type ForkParts = { ledger: Pick<Ledger, "result">; blobs: Blobs; setup: Pick<RunSetup, "proxy"> };

/** What is a fork's own in its plan. */
export type ForkPlan = Pick<RolloutPlan, "session" | "replay">;

/** A rollout that others may be forked from. `recording`: null where its log cannot be gone on from. */
type ForkableRollout = { record: RolloutRecord; recording: SessionRecording | null; pictures: PackedPicture[] };

/** Rounds whose choice is remembered: their other forks read one session each. */
const mostChosen = 256;

export class GroupForks {
  readonly #parts: ForkParts;
  readonly #chosen = new Map<string, Promise<ForkPoint[]>>();

  constructor(parts: ForkParts) {
    this.#parts = parts;
  }

  /** "begins": it is no fork. null: its group has no place left for it. Throws `store_error` where a session cannot be had now. */
  async planOf(claim: Claim, harness: Harness): Promise<ForkPlan | "begins" | null> {
    const round = forkRound(claim.spec, claim.index);
    if (round === null) return "begins";
    const fork = (await this.#chosenIn(claim, round))[claim.index - round.from];
    const parent = fork && (await this.#member(claim, fork.rollout_id));
    if (fork === undefined || !parent?.recording) return null;
    const { proxy } = this.#parts.setup;
    for (const { sha256, base64 } of parent.pictures) proxy.sessions.store.media?.keep(sha256, Buffer.from(base64, "base64"));
    const [plan] = toReplayPlans({
      ...{ run_id: claim.set_id, record: parent.record, recording: parent.recording, task: claim.task, harness, turn: fork.turn },
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
    const members: ForkableRollout[] = [];
    for (let place = 0; place < from; place++) {
      const member = await this.#member(claim, `${claim.group_id}-${place}`);
      if (member !== null) members.push(member);
    }
    return chooseForks({
      ...{ group_id: claim.group_id, rounds: number - 1, room: to - from, branching, engines: this.#engines },
      policy: branchingRegistry.named(branching.policy),
      members: members.map(({ record, recording }) => ({ record, read: () => readable(recording) })),
    });
  }

  /** null: it was cancelled, or nothing of it was measured. */
  async #member({ set_id }: Claim, rollout: string): Promise<ForkableRollout | null> {
    const row = await this.#parts.ledger.result(set_id, rollout);
    if (row === null || row.state !== "completed" || row.payload === null) return null;
    const lines = await getAllPacked(this.#parts.blobs, row.payload);
    const record = RolloutRecord.parse(readJson(lines[1] ?? "null"));
    return { record, recording: recordingOf(record, lines), pictures: unpackPictures(lines) };
  }
}

function recordingOf({ session_id }: RolloutRecord, lines: readonly string[]): SessionRecording | null {
  const log = unpackLog(lines);
  return log === null || session_id === null ? null : toRecording(session_id, log);
}

async function readable(recording: SessionRecording | null): Promise<SessionRecording> {
  if (recording === null) throw new AlidadeError("not_found", "its session is not in its blob");
  return recording;
}
