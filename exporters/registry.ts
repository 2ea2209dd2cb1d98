/** The list of exporters: adding one is a file and a line here. */
import { registryOf } from "../base/host/plug-ins.ts";
import { agentLightning } from "./agent-lightning.ts";
import { areal } from "./areal.ts";
import { atif } from "./atif.ts";
import { canonical } from "./canonical.ts";
import { chat } from "./chat.ts";
import { dpo } from "./dpo.ts";
import { defineExporter, type Exporter, type ExporterPlugIn, noOptions } from "./exporter.ts";
import { flat } from "./flat.ts";
import { harbor } from "./harbor.ts";
import { miles } from "./miles.ts";
import { nemoGym } from "./nemo-gym.ts";
import { nemoRl } from "./nemo-rl.ts";
import { openenv } from "./openenv.ts";
import { openrlhf } from "./openrlhf.ts";
import { parquet } from "./parquet.ts";
import { primeRl } from "./prime-rl.ts";
import { skyrl } from "./skyrl.ts";
import { slime } from "./slime.ts";
import { tinker } from "./tinker.ts";
import { trlAsync } from "./trl-async.ts";
import { trlDpo } from "./trl-dpo.ts";
import { trlGrpo } from "./trl-grpo.ts";
import { trlSft } from "./trl-sft.ts";
import { verifiers } from "./verifiers.ts";
import { verl } from "./verl.ts";

export const exporters = [
  canonical,
  flat,
  parquet,
  chat,
  dpo,
  verl,
  slime,
  miles,
  trlGrpo,
  trlAsync,
  trlSft,
  trlDpo,
  verifiers,
  primeRl,
  nemoGym,
  nemoRl,
  skyrl,
  openrlhf,
  areal,
  tinker,
  openenv,
  agentLightning,
  atif,
  harbor,
] as const satisfies readonly Exporter[];

export const exporterRegistry = registryOf<ExporterPlugIn, Exporter>({
  noun: "export format",
  param: "format",
  list: exporters,
  members: {
    name: "text",
    title: "text",
    objective: "text",
    extension: "text",
    selects: "boolean?",
    wholeGroups: "boolean?",
    everyAttempt: "boolean?",
    namesPictures: "boolean?",
    saysSupport: "boolean?",
    saysPictures: "boolean?",
    saysPackedRows: "boolean?",
    saysTemperatures: "boolean?",
    docs: "object?",
    options: "object?",
    write: "function",
  },
  made: (loaded) =>
    defineExporter({
      docs: { alignment: "none", rows: "", loader: null, proof: { how: "ours", by: "" } },
      options: noOptions,
      ...loaded,
      write: (...how) => loaded.write(...how),
    }),
});
export const exporterNamed = exporterRegistry.named;
