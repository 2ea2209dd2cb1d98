/** Containers beside a task's sandbox, which its commands reach by name: a database, an application, a server of tools. */
import { z } from "zod";
import { AbsolutePath } from "./absolute-path.ts";
import { Build } from "./build.ts";
import { Healthcheck } from "./healthcheck.ts";
import { ImageName } from "./image-name.ts";
import { startOrder } from "./start-order.ts";

/** As names of hosts are; compose files have the underscore too. */
const ServiceName = z.string().regex(/^[a-z0-9](?:[a-z0-9_.-]{0,61}[a-z0-9])?$/i, "letters, digits, dot, dash and underscore, at most 63");

export const Service = z
  .strictObject({
    image: ImageName.nullable().default(null),
    build: Build.nullable().default(null).describe("or an image that is built from files beside the task"),
    entrypoint: z.array(z.string()).min(1).nullable().default(null).describe("instead of the image's ENTRYPOINT and CMD"),
    command: z.array(z.string()).nullable().default(null).describe("instead of the image's CMD"),
    env: z.record(z.string(), z.string()).default({}),
    user: z
      .string()
      .regex(/^[a-z0-9_][\w.-]*(?::[a-z0-9_][\w.-]*)?$/i, "a user of the image by name or uid, as in postgres or 999:999")
      .nullable()
      .default(null)
      .describe("null: the image's; it has no capabilities, root neither, so that a program which changes its user cannot do so"),
    workdir: AbsolutePath.nullable().default(null).describe("null: the image's"),
    healthcheck: z
      .union([z.enum(["none", "completed"]), Healthcheck])
      .nullable()
      .default(null)
      .describe("when it is ready; null: as the image's HEALTHCHECK says; none: once it is started; completed: once it has ended with 0"),
    depends_on: z
      .record(ServiceName, z.enum(["started", "ready"]))
      .default({})
      .describe("it is started when these have come that far"),
    aliases: z.array(ServiceName).max(8).default([]).describe("more names that it is reached at"),
    folders: z.array(AbsolutePath).max(16).default([]).describe("made for its user where the image has none"),
    memory_mb: z.number().int().positive().default(1024),
    cpus: z.number().positive().default(1),
    pids: z.number().int().positive().default(256),
    disk_mb: z.number().int().positive().default(1024),
  })
  .refine(({ image, build }) => (image === null) !== (build === null), { path: ["image"], message: "a service has an image or a build" });
export type Service = z.infer<typeof Service>;

/** A task of a sandbox and eight more is a deployment, and takes a machine of its own. */
const mostServices = 8;
/** Names of the sandbox itself. */
const taken = ["main", "localhost", "sandbox"];

export const Services = z.record(ServiceName, Service).superRefine((services, { addIssue }) => {
  const names = Object.keys(services);
  const complain = (path: (string | number)[], message: string) => addIssue({ code: "custom", path, message });
  if (names.length > mostServices) complain([], `are ${names.length}: a task has at most ${mostServices}`);
  const seen = new Set(taken);
  for (const [name, { aliases }] of Object.entries(services))
    for (const one of [name, ...aliases]) {
      if (seen.has(one.toLowerCase())) complain([name], `the name ${one} is taken: choose another`);
      seen.add(one.toLowerCase());
    }
  for (const [name, { depends_on }] of Object.entries(services))
    for (const other of Object.keys(depends_on))
      if (!Object.hasOwn(services, other)) complain([name, "depends_on", other], `is no service: there are ${names.join(", ")}`);
  if (startOrder(services) === null) complain([], "wait for each other in a circle (depends_on)");
});
export type Services = z.infer<typeof Services>;
