/** The allocation policies of a service or a node. */
import { Allocations, allocationRegistry } from "../../../service/ledger/index.ts";

/** Those of the files, and the built-in ones. Throws `plugin_invalid`. `note` hears of one that fails. */
export async function loadAllocations(files: readonly string[], note: (text: string) => void): Promise<Allocations> {
  return new Allocations(await allocationRegistry.with(files), note);
}
