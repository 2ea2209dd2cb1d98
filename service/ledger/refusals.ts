/** What a ledger refuses, in the same words whatever the driver. */
import { AlidadeError } from "../../base/errors.ts";

export const refusals = {
  noSet: (id: string) => new AlidadeError("not_found", `there is no set "${id}"`, { param: "set" }),
  noGroup: (set: string, key: string) => new AlidadeError("not_found", `the set ${set} has no group "${key}"`, { param: "group_key" }),
  noRollout: (set: string, id: string) => new AlidadeError("not_found", `the set ${set} has no rollout "${id}"`, { param: "rollout" }),
  noNode: (name: string) => new AlidadeError("not_found", `there is no node "${name}"`, { param: "node" }),
  otherSpec: (key: string) =>
    conflicting("key", `there is a set "${key}" with another specification: give this one a key of its own, or the same fields`),
  noPolicy: () =>
    conflicting("pinned_policy", "no weights have a name yet, so none are in force: name them with PUT /control/policy first"),
  otherTask: (key: string) => conflicting("group_key", `group "${key}" was submitted with another task: give this one a key of its own`),
  isDrained: (set: string) => conflicting("set", `the set ${set} was drained: new rollouts want a set with a key of its own`),
  isExpired: (set: string, cursor: string) =>
    new AlidadeError(
      "not_found",
      `results of the set ${set} up to the cursor ${cursor} are expired: say expired=skip for what is left; a read from that cursor on leaves out single results before it whose groups stay`,
      { param: "after", status: 410 },
    ),
  resultExpired: (rollout: string) =>
    new AlidadeError("not_found", `the result of the rollout ${rollout} is expired`, { param: "rollout", status: 410 }),
  groupExpired: (key: string) =>
    conflicting("group_key", `group "${key}" is expired and takes no more rollouts: give this one a key of its own`),
  unknownPolicy: (policy: string, known: readonly string[]) =>
    new AlidadeError(
      "request_invalid",
      `allocation.policy is "${policy}", and this service knows ${known.join(", ")}: name one of these, or the policy's file in allocation_policies of the service and its nodes`,
      { param: "allocation.policy" },
    ),
  wholeGroupsOnly: (key: string) =>
    new AlidadeError(
      "request_invalid",
      `group "${key}" is of a set with allocation or branching, which decides when its rollouts begin: submit whole groups (POST /sets/:id/groups)`,
      { param: "index" },
    ),
  beyondGroup: (key: string, size: number, place: number) =>
    new AlidadeError("request_invalid", `group "${key}" has the places 0 to ${size - 1}, and not ${place}`, { param: "index" }),
};

/** What was asked is at odds with what was asked before under the same name. */
export function conflicting(param: string, message: string): AlidadeError {
  return new AlidadeError("request_invalid", message, { param, status: 409 });
}
