/**
 * Reads a task's `docker-compose.yaml`. `client` is the agent's sandbox, the others become its services. An unknown key is
 * refused; the error names file, service and key.
 */
import { z } from "zod";
import { ImageName } from "../../base/schema/environment/image-name.ts";
import type { Services } from "../../base/schema/environment/services.ts";
import { Argv } from "../harbor/compose/compose-words.ts";
import { readServices } from "../harbor/compose/read-compose.ts";
import { MainConfig, SidecarConfig } from "../harbor/compose/service-config.ts";

/** The variables that Terminal-Bench sets. Those for folders of the host get words that only `volumes` accepts. */
const variables = {
  T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME: "client",
  T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME: "client",
  T_BENCH_TASK_DOCKER_NAME_PREFIX: "task",
  T_BENCH_TEST_DIR: "/tests",
  T_BENCH_CONTAINER_LOGS_PATH: "/logs",
  T_BENCH_CONTAINER_AGENT_LOGS_PATH: "/agent-logs",
  T_BENCH_TASK_LOGS_PATH: "host-logs",
  T_BENCH_TASK_AGENT_LOGS_PATH: "host-agent-logs",
};

const logVolume = /^host-(?:agent-)?logs(?:\/[^:]*)?:(\/[^:]*)$/;

/** Commands that only keep the container alive. A sandbox stays alive without them. */
const keepAlive = /^(?:(?:\/bin\/)?(?:ba)?sh(?: -c (?:exec )?|$))?(?:sleep infinity|tail -f \/dev\/null)?$/;

const { build, working_dir, user, mem_limit, cpus, pids_limit, deploy } = SidecarConfig.shape;

const ClientConfig = z.strictObject({
  ...MainConfig.shape,
  ...{ build, working_dir, user, mem_limit, cpus, pids_limit, deploy },
  image: ImageName.optional(),
  command: Argv.nullable()
    .optional()
    .refine((argv) => keepAlive.test(argv?.join(" ") ?? ""), {
      error: ({ input }) => `is ${JSON.stringify(input)}: a sandbox is only kept alive, so start programs in the image's ENTRYPOINT`,
    }),
  /** The folders in the sandbox to which volumes of logs are mounted. */
  volumes: z
    .array(
      z
        .string()
        .regex(logVolume, {
          error: ({ input }) => `is ${JSON.stringify(input)}: files of the host are not given to a sandbox, so COPY them in the Dockerfile`,
        })
        .transform((volume) => logVolume.exec(volume)?.[1] ?? ""),
    )
    .default([]),
});
export type ClientConfig = z.infer<typeof ClientConfig>;

/** Returns the client and the services. `host`: the variables that the operator gives to tasks. Throws `task_invalid`. */
export function readClient(file: string, host: Readonly<Record<string, string>>): Promise<{ own: ClientConfig; services: Services }> {
  return readServices(file, { name: "client", schema: ClientConfig, without: (raw) => raw }, { ...host, ...variables });
}
