/** The allocation policies. Without one each group gets its `samples`. Adding one is a file here and a line below. */
import { registryOf } from "../../../base/host/plug-ins.ts";
import type { AllocationPolicy } from "./allocation-policy.ts";
import { balanced } from "./balanced.ts";

export { Allocations } from "./allocations.ts";
export { emptyHistory, History, withRewards } from "./set-history.ts";

export const allocationPolicies: readonly AllocationPolicy[] = [balanced];

export const allocationRegistry = registryOf<AllocationPolicy>({
  noun: "allocation policy",
  param: "allocation_policies",
  list: allocationPolicies,
  members: { name: "text", title: "text", more: "function" },
});
