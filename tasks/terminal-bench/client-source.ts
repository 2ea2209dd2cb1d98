/** Finds what the agent's sandbox is made from: the image that `client` builds or names. */
import { join } from "node:path";
import type { Build } from "../../base/schema/environment/build.ts";
import type { LastStage } from "../../sandboxes/index.ts";
import { lastStageOf } from "../../sandboxes/index.ts";
import { checkBuild } from "../harbor/check-build.ts";
import { textOf } from "../harbor/read-config.ts";
import { startOf } from "../harbor/to-environment.ts";
import { folderBelow } from "../host-path.ts";
import { taskError } from "../task-error.ts";
import type { LoadOptions } from "../task-format.ts";
import type { ClientConfig } from "./read-client.ts";

export type ClientSource = { image: string | null; build: Build | null; stage: LastStage };

export async function clientSource(
  { build, image, ...own }: ClientConfig,
  { folder, file }: { folder: string; file: string },
  options: LoadOptions,
): Promise<ClientSource> {
  const [workdir, user] = [own.working_dir ?? null, own.user ?? null];
  if (build === undefined) {
    const field = "services.client.image";
    if (image === undefined) throw taskError(file, "services.client.build", "is missing, and so is an image: give one of them");
    return { image, build: null, stage: await startOf({ from: image, workdir, user }, { file, field, hint: "" }, options) };
  }
  const field = "services.client.build";
  const made = { ...build, context: await folderBelow(folder, build.context, file, `${field}.context`) };
  await checkBuild(made, file, field);
  const dockerfile = join(made.context, made.dockerfile);
  const last = lastStageOf(await textOf(dockerfile));
  const stage = { ...last, workdir: workdir ?? last.workdir, user: user ?? last.user };
  return { image: null, build: made, stage: await startOf(stage, { file, field: dockerfile, hint: "" }, options) };
}
