/** Checks that the operator allows the public network: to a whole task, or to its tests alone. */
import { AlidadeError } from "../../base/errors.ts";
import type { NetworkAccess } from "../../base/schema/network.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Grader } from "../../graders/index.ts";
import { environmentsOf } from "../../graders/index.ts";
import { networksOf } from "../../sandboxes/index.ts";

export type PublicGrant = { allow_public: boolean; allow_public_tests?: boolean };

type Words = { allow_public_network: boolean; verifier_network: NetworkAccess | null };

export function publicGrantOf({ allow_public_network, verifier_network }: Words): PublicGrant {
  return { allow_public: allow_public_network, allow_public_tests: verifier_network === "public" };
}

/** Throws `task_invalid` if the task, or its verifier's own container, wants the public network and the grant does not allow it. */
export function checkPublicNetwork(task: Task, grant: PublicGrant, graders?: readonly Grader[]): void {
  if (grant.allow_public) return;
  const wanted = environmentsOf([task], graders)
    .flatMap(({ environment }) => networksOf(environment))
    .filter(({ access }) => access === "public");
  const field = wanted.find((one) => one.field !== "grading_network" || grant.allow_public_tests !== true)?.field;
  if (field === undefined) return;
  const flag = field === "grading_network" ? "--verifier-network public" : "--allow-public-network";
  throw new AlidadeError(
    "task_invalid",
    `environment.${field} of the task ${task.task_id} is public: pass ${flag}, or name hosts with { allow: [...] }.`,
    { param: `environment.${field}` },
  );
}
