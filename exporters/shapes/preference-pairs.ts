/** Which two rollouts of a group are compared, and the conversations in which they answered the same prompt. */
import { z } from "zod";
import type { GroupReason } from "../../base/schema/reasons/left-out.ts";
import type { CallRecord, Trajectory } from "../../base/schema/trajectory.ts";
import { type StandingRules, standingOf, underRules, whyTurnUntrained } from "../../reconstruct/index.ts";
import { type ChatRow, toConversations } from "../chat.ts";
import type { ExportOptions, ExportReport } from "../exporter.ts";
import { inputOf, toolsOf } from "../rows/row-calls.ts";
import type { GroupMember, TrajectoryGroup } from "../source/source.ts";
import { type RowMessage, toChatMessages, toChatTool } from "./chat-messages.ts";
import { leaveOutGroup } from "./left-out.ts";

export const pairOptions = z.strictObject({
  pairs: z
    .enum(["best-worst", "all"])
    .default("best-worst")
    .describe("pairs of a group: the best rollout with the worst, or each rollout with every worse one"),
  min_gap: z.number().nonnegative().default(0).describe("rewards of a pair differ by more than this"),
});

export type RankedAnswer = {
  trajectory: Trajectory;
  /** Under the cut-off rules. */
  reward: number;
  /** The rollout's messages before its first turn; of a fork and the rollout that it forks: before the first turn that differs. */
  prompt: RowMessage[];
  /** Its turns and what came back, up to the end or to a compaction. */
  messages: RowMessage[];
  tools: Record<string, unknown>[];
  /** The agent's conversations, and the one that these messages are of. */
  rows: ChatRow[];
  row: ChatRow;
};

export type PreferencePair = { chosen: RankedAnswer; rejected: RankedAnswer };

/** Reads two trajectories at a time. What gives no pair is in the report. */
export async function* pairsOf(
  group: TrajectoryGroup,
  { own: { pairs, min_gap }, ...rules }: ExportOptions<z.infer<typeof pairOptions>>,
  report: ExportReport,
): AsyncIterable<PreferencePair> {
  const measured = group.members.flatMap((member): Ranked[] => {
    const { reward, in_loss } = standingOf(member, rules);
    return reward === null || !in_loss ? [] : [{ member, reward }];
  });
  const ranked = measured.toSorted((a, b) => b.reward - a.reward);
  const candidates = (pairs === "all" ? allPairs(ranked) : bestAndWorst(ranked)).filter(([a, b]) => a.reward - b.reward > min_gap);
  if (candidates.length === 0) leaveOutGroup(report, "no_preference");
  for (const [better, worse] of candidates) {
    for (const pair of await readPairs(better, worse, rules))
      if (typeof pair === "string") leaveOutGroup(report, pair);
      else yield pair;
  }
}

type Ranked = { member: GroupMember; reward: number };

function bestAndWorst(ranked: Ranked[]): [Ranked, Ranked][] {
  const [best, worst] = [ranked[0], ranked.at(-1)];
  return best === undefined || worst === undefined ? [] : [[best, worst]];
}

function allPairs(ranked: Ranked[]): [Ranked, Ranked][] {
  return ranked.flatMap((better, at) => ranked.slice(at + 1).map((worse): [Ranked, Ranked] => [better, worse]));
}

/** The pair of each agent that was given the task, or why the two cannot be compared. */
async function readPairs(better: Ranked, worse: Ranked, rules: StandingRules): Promise<(PreferencePair | GroupReason)[]> {
  const read = async ({ member }: Ranked) => underRules(await member.read(), rules);
  const [chosen, rejected] = [await read(better), await read(worse)];
  const agents = new Set([...chosen.lead_agents, ...rejected.lead_agents]);
  return Array.from(agents, (agent) => toPair(answerOf(chosen, better.reward, agent), answerOf(rejected, worse.reward, agent)));
}

function toPair(chosen: RankedAnswer | null, rejected: RankedAnswer | null): PreferencePair | GroupReason {
  if (chosen === null || rejected === null) return "no_answer";
  const later = chosen.prompt.length > rejected.prompt.length ? chosen : rejected;
  const pair = { chosen: onPrompt(later, chosen), rejected: onPrompt(later, rejected) };
  const question = ({ prompt, tools }: RankedAnswer): string => JSON.stringify([prompt, tools]);
  return question(pair.chosen) === question(pair.rejected) ? pair : "different_prompts";
}

/** A fork begins behind turns of another rollout. The two are compared from there on: what both hold is their prompt. */
function onPrompt({ prompt }: RankedAnswer, answer: RankedAnswer): RankedAnswer {
  if (prompt.length === answer.prompt.length) return answer;
  const row = answer.rows.find((one) => beginsWith(one, prompt));
  const call = row && answer.trajectory.calls.find((one) => isAskedWith(one, answer.trajectory, prompt));
  if (row === undefined || call === undefined) return answer;
  const tools = toolsOf(call, answer.trajectory).map(toChatTool);
  return { ...answer, prompt, messages: row.messages.slice(prompt.length), tools, row };
}

/** `weight` says who learns a turn, and is no part of what was said. */
function beginsWith({ messages }: Pick<ChatRow, "messages">, prompt: readonly RowMessage[]): boolean {
  return messages.length > prompt.length && toText(messages.slice(0, prompt.length)) === toText(prompt);
}

function toText(messages: readonly RowMessage[]): string {
  return JSON.stringify(messages.map(({ weight: _, ...message }) => message));
}

function isAskedWith(call: CallRecord, trajectory: Trajectory, prompt: readonly RowMessage[]): boolean {
  if (call.output === null || whyTurnUntrained(call, trajectory) !== null) return false;
  return toText(inputOf(call, trajectory).flatMap(toChatMessages)) === toText(prompt);
}

/** The conversation that begins with the agent's first turn; null where it has none that may be learned from. */
function answerOf(trajectory: Trajectory, reward: number, lead: string): RankedAnswer | null {
  const first = trajectory.calls.find((call) => call.agent === lead && call.output !== null && whyTurnUntrained(call, trajectory) === null);
  if (first === undefined) return null;
  const prompt = inputOf(first, trajectory).flatMap(toChatMessages);
  const rows = toConversations(trajectory).rows.filter(({ agent }) => agent === lead);
  const row = rows.find((one) => beginsWith(one, prompt));
  if (row === undefined) return null;
  return {
    trajectory,
    reward,
    prompt,
    messages: row.messages.slice(prompt.length),
    tools: toolsOf(first, trajectory).map(toChatTool),
    rows,
    row,
  };
}

/** The facts of a pair's two rollouts, in any format. */
export function pairFacts({ chosen, rejected }: PreferencePair): Record<string, unknown> {
  return {
    chosen_reward: chosen.reward,
    rejected_reward: rejected.reward,
    group_id: chosen.trajectory.group.id,
    chosen_rollout_id: chosen.trajectory.rollout_id,
    rejected_rollout_id: rejected.trajectory.rollout_id,
  };
}
