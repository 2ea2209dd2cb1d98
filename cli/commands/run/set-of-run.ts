/** A run's configuration as the set of a service; what a set cannot have is refused, for the service would not hear of it. */

import { AlidadeError } from "../../../base/errors.ts";
import { isFile } from "../../../base/host/plug-ins.ts";
import type { Branching } from "../../../base/schema/branching.ts";
import { complaintOf } from "../../../base/schema/complaints/complaint.ts";
import { SetSpec } from "../../../service/ledger/index.ts";
import type { Config } from "../../config.ts";

/** Read here: which tasks there are, and what is said. */
const ownKeys = [
  "tasks",
  "choose",
  "task_env",
  "task_formats",
  "images",
  "repositories",
  "harbor_reward",
  "graders",
  "grader_servers",
  "grading",
  "keep_processes",
  "allow_public_network",
  "verifier_network",
  "out",
  "log_format",
];

const setKeys = [
  "samples",
  "retries",
  "purpose",
  "model",
  "sampling",
  "seed",
  "budgets",
  "train_classes",
  "restore",
  "continuity",
  "policy_mode",
  "pinned_policy",
  "min_tier",
  "admitted_only",
] as const satisfies (keyof SetSpec & keyof Config)[];

/** What is not given stays so: then the service's own configuration holds. Throws `config_invalid` naming the key. */
export function setOfRun(config: Config, given: readonly string[], more: Pick<Partial<SetSpec>, "priority" | "weight">): Partial<SetSpec> {
  const known = new Set<string>([...ownKeys, ...setKeys, "harness", "branching"]);
  const foreign = given.find((key) => !known.has(key));
  if (foreign !== undefined)
    throw refused(
      foreign,
      `${foreign} is given (flag, variable or run file), and a set of a service has no such field: leave it out here, and give it to the service or its nodes`,
    );
  const own = setKeys.filter((key) => given.includes(key)).map((key) => [key, config[key]] as const);
  const asked = {
    ...Object.fromEntries(own),
    ...(given.includes("harness") && { harness: harnessOfSet(config.harness) }),
    ...(config.branching !== null && { branching: branchingOfSet(config.branching) }),
    ...Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined)),
  };
  const result = SetSpec.safeParse(asked);
  if (result.success) return asked;
  const { path, given: value, message, isWritten } = complaintOf(result.error, asked);
  const key = path.join(".");
  throw refused(key, isWritten ? message : `${key} is ${value}: ${message}`);
}

function harnessOfSet(harness: Config["harness"]): string {
  if (typeof harness === "string" && !isFile(harness)) return harness;
  throw refused(
    "harness",
    "harness is one of your own, and a set names a built-in one: leave it out here, and give it to the service or its nodes",
  );
}

function branchingOfSet(branching: Branching): Branching {
  if (!isFile(branching.policy)) return branching;
  const message = `branching.policy is a file of your own (${branching.policy}), and a set takes a built-in one`;
  throw refused("branching.policy", message);
}

function refused(param: string, message: string): AlidadeError {
  return new AlidadeError("config_invalid", `with --service, ${message}`, { param });
}
