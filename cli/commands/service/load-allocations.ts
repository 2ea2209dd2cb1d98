/** Loads the allocation policies of a service or a node. */
import { Allocations, allocationRegistry } from "../../../service/ledger/index.ts";

/** Returns the policies of `files` and the built-in ones. Calls `note` if a policy fails. Throws `plugin_invalid`. */
export async function loadAllocations(files: readonly string[], note: (text: string) => void): Promise<Allocations> {
  return new Allocations(await allocationRegistry.with(files), note);
}
