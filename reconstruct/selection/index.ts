/** The list of selections: adding one is a file and a line here. The first is the default. */
import { namedIn } from "../../base/host/plug-ins.ts";
import { byAgent } from "./by-agent.ts";
import { mainAgent } from "./main-agent.ts";
import { perCall } from "./per-call.ts";
import type { Selection } from "./selection.ts";
import { strict } from "./strict.ts";
import { tolerant } from "./tolerant.ts";
import { tree } from "./tree.ts";

export const selections = [strict, tolerant, perCall, mainAgent, byAgent, tree] as const satisfies readonly Selection[];

/** The selection of that name; throws `plugin_unknown` with the names that there are. */
export const selectionNamed = (name: string): Selection => namedIn(selections, name, "selection", "select");
