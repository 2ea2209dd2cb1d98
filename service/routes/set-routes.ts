/** Routes for what is asked for: sets, groups, rollouts; and for taking it back. */
import { z } from "zod";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { Turns } from "../../base/host/turns.ts";
import { nothing } from "../../proxy/control/index.ts";
import { assertForkable, assertTakesTask } from "../../rollouts/accepted/index.ts";
import { branchingPolicies } from "../../rollouts/branching/index.ts";
import { PassRange, sumOfCounts, takeByPassRate } from "../../tasks/sets/index.ts";
import type { Caller } from "../callers/caller.ts";
import { passReward } from "../figures/index.ts";
import { assertAsStrict, type CancelOrder, GroupPart, placesOf, SetSpec, type SetState, strictest } from "../ledger/index.ts";
import type { ServiceParts } from "../service-parts.ts";
import type { SetPasses } from "../set-passes.ts";
import { refusedAddress } from "../webhooks/post-signed.ts";
import { defineRoute, type ServiceRoute } from "./route.ts";

const GivenTask = z
  .union([z.string().min(1).max(1_000), z.record(z.string(), z.unknown())])
  .describe("the name of a task of the service, or a whole task in Alidade's own form");

export const GroupLine = z.strictObject({ group_key: GroupPart.shape.group_key, task: GivenTask });
const OneRollout = GroupLine.extend({ index: z.number().int().nonnegative().describe("its place in the group, from 0") });
const Reason = z.strictObject({ reason: z.string().max(500).default("cancelled over the service") });

/** A pass rate of earlier sets by which the lines of a submission are chosen. */
const ByPassRate = z
  .strictObject({
    pass_rate: PassRange.optional().describe(
      "`low..high`, such as 0.1..0.9: only the lines whose task has a measured pass rate in this range, in the sets of `of`",
    ),
    of: z.string().max(1_000).optional().describe("with pass_rate: ids of earlier sets, with commas between them; best sets that are over"),
    pass: z.coerce.number().default(passReward).describe("with pass_rate: a rollout passes with this reward or more"),
    with_unmeasured: z
      .enum(["true", "false"])
      .default("false")
      .describe("with pass_rate: also the lines whose task has no measured reward there"),
  })
  .superRefine(({ pass_rate, of }, context) => {
    if ((pass_rate === undefined) === (of === undefined)) return;
    const [given, missing] = of === undefined ? ["pass_rate", "of"] : ["of", "pass_rate"];
    context.addIssue({ code: "custom", path: [missing], message: `${missing} is missing beside ${given}: give both` });
  });

/** Sets whose results one request adds up. */
const mostEarlierSets = 20;

export function setRoutes(
  { taskOf, namedTasks, demands = {}, harnessNamed, setWebhooks, watcher }: Omit<ServiceParts, "ledger">,
  passes: SetPasses,
): ServiceRoute[] {
  /** Throws what is wrong with a task in this set. */
  const taskIn = async (spec: SetSpec, given: unknown) => {
    const task = await taskOf(given, spec);
    if (spec.branching !== undefined) assertForkable(task, spec.branching);
    const harness = await harnessNamed(spec.harness);
    if (harness) assertTakesTask(task, harness);
    return task;
  };
  /** Throws 409 where the set was made before the service demanded more: a node would not know of it. */
  const demandsOf = async ({ ledger }: Caller, id: string): Promise<SetSpec> => {
    const spec = await ledger.specOf(id);
    assertAsStrict(spec, demands);
    return spec;
  };
  return [
    defineRoute({
      method: "get",
      path: "/tasks",
      roles: ["submit"],
      title: "Tasks that may be submitted by name, each with the hash of its content, which is the same on every machine",
      handle: async () => ({ tasks: await namedTasks() }),
    }),
    defineRoute({
      method: "put",
      path: "/sets/:key",
      roles: ["submit"],
      title: "Makes a set, or finds it: the same key and content is the same set, other content is a 409",
      body: SetSpec,
      handle: async ({ param, body }, { ledger }) => {
        const key = param("key");
        if (key.length > 500) throw new AlidadeError("request_invalid", "a set's key has at most 500 characters", { param: "key" });
        await harnessNamed(body.harness);
        if (body.branching !== undefined) assertBranching(body.branching.policy);
        if (body.webhook !== undefined) assertMayTell(body.webhook, setWebhooks);
        const begun = Date.now();
        const state = await ledger.putSet(key, { ...body, ...strictest(body, demands) });
        const { harness, purpose } = state.spec;
        watcher?.set({ set_id: state.set_id, key, harness, purpose, begun, ended: Date.now() });
        return state;
      },
    }),
    defineRoute({
      method: "post",
      path: "/sets/:id/groups",
      roles: ["submit"],
      title:
        "Submits groups, one a line, all of them or none, with 10 000 rollouts at most; a group that is there already is not made again. `left_out`: lines that `pass_rate` does not take, `unmeasured` or `outside`",
      lines: GroupLine,
      query: ByPassRate,
      handle: async ({ param, lines, query, signal }, caller) => {
        const [parts, spec]: [GroupPart[], SetSpec] = [[], await demandsOf(caller, param("id"))];
        assertNotTooMany(lines.length, spec);
        const turns = new Turns();
        for (const [at, line] of (lines as z.infer<typeof GroupLine>[]).entries()) {
          await turns.take();
          parts.push({ group_key: line.group_key, task: await within(`line ${at + 1}`, () => taskIn(spec, line.task)), places: null });
        }
        const { taken, left_out } = await chosenBy(query, parts, caller, passes, signal);
        const { groups, rollouts } = await caller.ledger.submit(param("id"), taken);
        return { groups, rollouts, left_out };
      },
    }),
    defineRoute({
      method: "post",
      path: "/sets/:id/rollouts",
      roles: ["submit"],
      title: "Submits one rollout, which joins its group by key and index",
      body: OneRollout,
      handle: async ({ param, body: { group_key, index, task } }, caller) => {
        const known = await taskIn(await demandsOf(caller, param("id")), task);
        const { rollout_ids } = await caller.ledger.submit(param("id"), [{ group_key, task: known, places: [index] }]);
        return { rollout_id: rollout_ids[0] };
      },
    }),
    defineRoute({
      method: "delete",
      path: "/sets/:id",
      roles: ["submit"],
      title:
        "Cancels what is not over of a set: `cancelled` says how much. Of many a part is over with the answer, and the others while `is_cancelling`",
      query: Reason,
      handle: ({ param, query }, { ledger }) => cancel(ledger, { set: param("id") }, query.reason),
    }),
    defineRoute({
      method: "delete",
      path: "/sets/:id/groups/:key",
      roles: ["submit"],
      title: "Cancels what is not over of a group",
      query: Reason,
      handle: ({ param, query }, { ledger }) => cancel(ledger, { set: param("id"), group: param("key") }, query.reason),
    }),
    defineRoute({
      method: "delete",
      path: "/sets/:id/rollouts/:rollout",
      roles: ["submit"],
      title: "Cancels a rollout, unless it is over",
      query: Reason,
      handle: ({ param, query }, { ledger }) => cancel(ledger, { set: param("id"), rollout: param("rollout") }, query.reason),
    }),
    defineRoute({
      method: "post",
      path: "/sets/:id/drain",
      roles: ["submit"],
      title: "Takes no more rollouts; groups are whole with those that they have",
      body: nothing,
      handle: ({ param }, { ledger }) => ledger.drain(param("id")),
    }),
    defineRoute({
      method: "get",
      path: "/sets",
      roles: ["read"],
      title: "The sets of the token's namespace; all where it has none",
      handle: async (_, { ledger }) => ({ sets: await ledger.sets() }),
    }),
    defineRoute({
      method: "get",
      path: "/sets/:id",
      roles: ["read"],
      title: "Counts, ages and failures of a set, and the cursors of its consumers",
      handle: ({ param }, { ledger }): Promise<SetState> => ledger.set(param("id")),
    }),
    defineRoute({
      method: "put",
      path: "/consumers/:name",
      roles: ["submit"],
      title: "A consumer's word on what it has safe: results behind the cursors of all consumers may expire (`expire_after`)",
      body: z.strictObject({
        set: z.string(),
        cursor: z.string(),
        step: z
          .number()
          .int()
          .nullable()
          .default(null)
          .describe("policy step to which training on what is behind the cursor has come; max_version_lag counts from it"),
      }),
      handle: async ({ param, body: { set, ...place } }, { ledger }) => {
        const name = param("name");
        if (name.length > 200) throw new AlidadeError("request_invalid", "a consumer's name has at most 200 characters", { param: "name" });
        await ledger.keep(name, set, place);
        return { set, ...place };
      },
    }),
    defineRoute({
      method: "delete",
      path: "/consumers/:name",
      roles: ["submit"],
      title: "Forgets a consumer that is gone for good: its cursor holds back the expiry of results no more",
      query: z.strictObject({ set: z.string() }),
      handle: async ({ param, query: { set } }, { ledger }) => ({ forgotten: await ledger.forget(param("name"), set) }),
    }),
  ];
}

/** Why a line of a submission is not in the set. */
export type LeftOutGroup = { group_key: string; task_id: string; why: "unmeasured" | "outside" };

/** Throws `not_found` for a set that the caller does not see. */
async function chosenBy(
  { pass_rate, of = "", pass, with_unmeasured }: z.infer<typeof ByPassRate>,
  parts: GroupPart[],
  caller: Caller,
  passes: SetPasses,
  signal: AbortSignal,
): Promise<{ taken: GroupPart[]; left_out: LeftOutGroup[] }> {
  if (pass_rate === undefined) return { taken: parts, left_out: [] };
  const sets = of.split(",");
  if (sets.length > mostEarlierSets)
    throw new AlidadeError("request_invalid", `of has ${sets.length} sets: give ${mostEarlierSets} at most`, { param: "of" });
  for (const set of sets) await caller.ledger.assertSees(set);
  const counts = sumOfCounts(await Promise.all(sets.map((set) => passes.of(set, pass, signal))));
  const choice = { pass_rate, with_unmeasured: with_unmeasured === "true" };
  const { taken, unmeasured } = takeByPassRate(parts, ({ task }) => task.task_id, choice, counts);
  const [isTaken, isUnmeasured] = [new Set(taken), new Set(unmeasured)];
  const left = parts.filter((part) => !isTaken.has(part));
  const left_out = left.map((part) => {
    const why = isUnmeasured.has(part) ? ("unmeasured" as const) : ("outside" as const);
    return { group_key: part.group_key, task_id: part.task.task_id, why };
  });
  return { taken, left_out };
}

async function cancel(ledger: Caller["ledger"], what: CancelOrder, reason: string): Promise<{ cancelled: number; is_cancelling: boolean }> {
  const cancelled = await ledger.cancel(what, reason);
  return { cancelled, is_cancelling: (await ledger.set(what.set)).is_cancelling };
}

/** Rollouts of one request: a tenth of a second of an embedded ledger, which answers nothing meanwhile. */
const mostRollouts = 10_000;

/** A group comes whole, however large it is. */
function assertNotTooMany(groups: number, spec: SetSpec): void {
  const rollouts = groups * placesOf(spec);
  if (groups <= 1 || rollouts <= mostRollouts) return;
  const fitting = Math.max(1, Math.floor(mostRollouts / placesOf(spec)));
  throw new AlidadeError(
    "request_invalid",
    `the request has ${groups} groups with ${rollouts} rollouts: send ${fitting} groups at most (${mostRollouts} rollouts) with one request, and the others with further ones`,
    { status: 413 },
  );
}

/** Refuses a policy in a file: nodes on other machines do not have the file. */
function assertBranching(policy: string): void {
  const names = branchingPolicies.map(({ name }) => name);
  if (names.some((name) => name === policy)) return;
  const message = `branching.policy is "${policy}", and a set takes a built-in one: ${names.join(", ")}`;
  throw new AlidadeError("request_invalid", message, { param: "branching.policy" });
}

/** Throws `request_invalid` for a webhook that is never told. */
function assertMayTell(webhook: string, allowed: ServiceParts["setWebhooks"]): void {
  const refuse = (why: string) => new AlidadeError("request_invalid", `webhook ${why}`, { param: "webhook" });
  if (allowed === null)
    throw refuse("is given, and this service tells no webhooks of sets: --allow-set-webhooks of its operator allows them");
  const refusal = refusedAddress(webhook, allowed.mayBePrivate);
  if (refusal !== null) throw refuse(refusal);
}

/** One bad line refuses them all, so it is named. */
async function within<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { code, message, param, status } = asAlidadeError(error, "internal");
    throw new AlidadeError(code, `${what}: ${message}`, { param, status, cause: error });
  }
}
