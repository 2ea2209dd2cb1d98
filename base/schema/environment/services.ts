/** Containers beside a task's sandbox, which its commands reach by name: a database, an application, a server of tools. */
import { z } from "zod";
import { AbsolutePath } from "./absolute-path.ts";
import { Build } from "./build.ts";
import { Healthcheck } from "./healthcheck.ts";
import { ImageName } from "./image-name.ts";
import { startOrder } from "./start-order.ts";

/** As names of hosts are; compose files have the underscore too. */
export const ServiceName = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9_.-]{0,61}[a-z0-9])?$/i, "letters, digits, dot, dash and underscore, at most 63");

/** The folder in which a service finds its `files`. */
export const serviceFiles = "/srv/files";

/** Ports of the sandbox's own doors: to the model, and to a network that its task allows. */
const doorPorts = [4000, 3128];

export const Service = z
  .strictObject({
    image: ImageName.nullable().default(null).describe("null: Alidade's own base image, which has Python"),
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
    network: z
      .enum(["agent", "apart"])
      .default("agent")
      .describe(
        "agent: in the sandbox's own network namespace; apart: in one of its own with the other services apart, out of the agent's reach",
      ),
    expose: z
      .array(z.number().int().min(1).max(65_535))
      .max(16)
      .default([])
      .describe("ports of a service apart that the sandbox reaches, at its own 127.0.0.1 and by the service's names"),
    files: z.string().nullable().default(null).describe(`a folder beside the task file, which it finds read-only at ${serviceFiles}`),
    state: z.array(AbsolutePath).max(16).default([]).describe("files and folders of it that a grader reads after the agent has ended"),
    folders: z.array(AbsolutePath).max(16).default([]).describe("made for its user where the image has none"),
    memory_mb: z.number().int().positive().default(1024),
    cpus: z.number().positive().default(1),
    pids: z.number().int().positive().default(256),
    disk_mb: z.number().int().positive().default(1024),
  })
  .refine(({ image, build }) => image === null || build === null, {
    path: ["build"],
    message: "a service has an image or a build, and not both",
  })
  .refine(({ image, build, entrypoint, command }) => image !== null || build !== null || entrypoint !== null || command !== null, {
    path: ["image"],
    message: "a service has an image or a build; without one it is Alidade's own base image, and needs a command",
  })
  .refine(({ network, expose }) => network === "apart" || expose.length === 0, {
    path: ["expose"],
    message: "a service in the agent's network has all of its ports there: leave it out, or say network: apart",
  });
export type Service = z.infer<typeof Service>;

/** A task of a sandbox and eight more is a deployment, and takes a machine of its own. */
export const mostServices = 8;
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
  const exposed = new Set(doorPorts);
  for (const [name, { expose }] of Object.entries(services))
    for (const port of expose) {
      if (exposed.has(port)) complain([name, "expose"], `the port ${port} is taken in the sandbox: let the service listen at another one`);
      exposed.add(port);
    }
  for (const [name, { depends_on }] of Object.entries(services))
    for (const other of Object.keys(depends_on))
      if (!Object.hasOwn(services, other)) complain([name, "depends_on", other], `is no service: there are ${names.join(", ")}`);
  if (startOrder(services) === null) complain([], "wait for each other in a circle (depends_on)");
});
export type Services = z.infer<typeof Services>;

/** Taken names, in lower case: those of the services, their aliases and the sandbox itself. */
export function namesOfServices(services: Services): string[] {
  const own = Object.entries(services).flatMap(([name, { aliases }]) => [name, ...aliases]);
  return [...taken, ...own.map((name) => name.toLowerCase())];
}

/** Returns the services that do not share the sandbox's network namespace. */
export function servicesApart(services: Services = {}): Services {
  return Object.fromEntries(Object.entries(services).filter(([, { network }]) => network === "apart"));
}

/** Returns the services that commands in the sandbox can reach: all in its network, and services apart that expose a port. */
export function reachableServices(services: Services = {}): Services {
  return Object.fromEntries(Object.entries(services).filter(([, { network, expose }]) => network === "agent" || expose.length > 0));
}
