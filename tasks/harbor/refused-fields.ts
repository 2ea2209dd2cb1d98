/** What a task of Harbor may ask for and no sandbox of ours gives: named, so that it is not run as another task. */
import { join } from "node:path";
import { exists } from "../host-path.ts";
import { taskError } from "../task-error.ts";
import { composeName } from "./compose/read-compose.ts";
import type { EnvironmentConfig, TaskConfig } from "./task-config.ts";

type Refusal = { field: string; value: unknown; why: string };

/** Throws the first, with its value and what would be right. */
export async function refuseFields(config: TaskConfig, folder: string, file: string): Promise<void> {
  const found = [
    ...environmentRefusals("environment", config.environment),
    ...ofVerifier("", config),
    ...(config.steps ?? []).flatMap((step, index) => ofVerifier(`steps.${index}.`, step)),
  ][0];
  if (found) throw taskError(file, found.field, `is ${JSON.stringify(found.value)}: ${found.why}`);
  const ofSteps = (config.steps ?? []).map(({ name }) => `steps/${name}/tests`);
  for (const place of ["tests", ...ofSteps]) await refuseCompose(join(folder, place));
}

function environmentRefusals(within: string, { os, gpus, tpu, mcp_servers, skills_dir }: EnvironmentConfig): Refusal[] {
  // A verifier has no agent.
  const [server] = within === "environment" ? [] : mcp_servers;
  const all: (Refusal | false)[] = [
    os !== "linux" && { field: "os", value: os, why: 'sandboxes are Linux containers: write "linux"' },
    (gpus ?? 0) > 0 && { field: "gpus", value: gpus, why: "sandboxes have no GPU: write 0" },
    tpu !== undefined && tpu !== null && { field: "tpu", value: tpu, why: "sandboxes have no TPU: remove it" },
    server !== undefined && {
      field: "mcp_servers.0.name",
      value: server.name,
      why: "a verifier has no agent that could call them: remove them",
    },
    skills_dir !== null &&
      within !== "environment" && { field: "skills_dir", value: skills_dir, why: "a verifier has no agent: remove it" },
  ];
  return all.flatMap((one) => (one === false ? [] : [{ ...one, field: `${within}.${one.field}` }]));
}

type Judged = Pick<TaskConfig, "artifacts" | "verifier">;

function ofVerifier(within: string, judged: Judged): Refusal[] {
  const { environment } = judged.verifier;
  const own = environment ? environmentRefusals("verifier.environment", environment) : [];
  return [...own, ...serviceRefusals(judged)].map((one) => ({ ...one, field: `${within}${one.field}` }));
}

function serviceRefusals({ artifacts, verifier }: Judged): Refusal[] {
  const why = 'the files of a service do not cross: write "main"';
  const of = (list: readonly { service: string }[], field: string) =>
    list.flatMap(({ service }, index) => (service === "main" ? [] : [{ field: `${field}.${index}.service`, value: service, why }]));
  return [...of(artifacts, "artifacts"), ...of(verifier.collect, "verifier.collect")];
}

async function refuseCompose(folder: string): Promise<void> {
  const file = join(folder, composeName);
  if (!(await exists(file))) return;
  throw taskError(file, "services", "are not started for a verifier: remove the file, or write them into environment/docker-compose.yaml");
}
