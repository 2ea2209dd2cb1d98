import type { NetworkAccess } from "../../base/schema/network.ts";
import type { LastStage } from "../../sandboxes/index.ts";
import type { LoadOptions } from "../task-format.ts";
import type { StepConfig, TaskConfig } from "./task-config.ts";

/** A folder of the host with a Dockerfile, or an image by its name. */
export type ImageSource = { image: string; build: null; stage: LastStage } | { image: null; build: string; stage: LastStage };

/** What all that is made of one task folder shares. */
export type FolderOrder = {
  folder: string;
  file: string;
  config: TaskConfig;
  source: ImageSource;
  host: Readonly<Record<string, string>>;
  unstated: NetworkAccess;
  options: LoadOptions;
};

export type PlacedStep = { config: StepConfig; index: number };
