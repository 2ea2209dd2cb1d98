/**
 * vLLM's routes for new weights, as a server with VLLM_SERVER_DEV_MODE=1 has them. One reads the files of the served folder
 * again. With another the trainer names the new weights. Until then, their hash is their name.
 */
import { z } from "zod";
import { messageOf } from "../base/errors.ts";
import type { PracticeExchange } from "./exchange.ts";
import type { PracticeModel } from "./model/practice-model.ts";
import { parseBody } from "./requests.ts";
import { WireError } from "./wire-error.ts";

const Call = z.looseObject({ method: z.literal("reload_weights", { error: "only reload_weights is known here" }) });
const NewVersion = z.looseObject({ new_version: z.string().min(1).max(1024) });

/** Answers the only method of vLLM's workers that is implemented here. */
export async function collectiveRpc(model: PracticeModel, exchange: PracticeExchange): Promise<void> {
  const folder = folderOf(model);
  parseBody(Call, exchange.body);
  await model.reload(folder).catch((error: unknown) => {
    throw new WireError(500, `The weights were not reloaded, and the ones before are served: ${messageOf(error)}`);
  });
  exchange.json(200, { results: [null] });
}

export function updateWeightVersion(model: PracticeModel, exchange: PracticeExchange): void {
  folderOf(model);
  model.policy.version = parseBody(NewVersion, exchange.body).new_version;
  exchange.json(200, { success: true, new_version: model.policy.version });
}

export function weightInfo(model: PracticeModel, exchange: PracticeExchange): void {
  folderOf(model);
  exchange.json(200, { weight_version: model.policy.version });
}

/** With random weights there is nothing to reload, so the routes do not exist. */
function folderOf({ folder }: PracticeModel): string {
  if (folder === null) throw new WireError(404, "Not Found: the weights are random. Serve a folder with --weights to reload it.");
  return folder;
}
