/** Makes the words of a task in Alidade's own form what it runs with: folders of this machine, Node, the grader's defaults. */
import { z } from "zod";
import { AlidadeError, messageOf } from "../base/errors.ts";
import type { Build } from "../base/schema/environment/build.ts";
import type { Services } from "../base/schema/environment/services.ts";
import type { Environment, GoldScript, GraderSpec, Task, TaskStep } from "../base/schema/task.ts";
import type { Grader } from "../graders/index.ts";
import { graderOf, specOfGrader } from "../graders/index.ts";
import { displayClash, nodeInside, withDisplay } from "../sandboxes/index.ts";
import { nodeWord, withNode } from "./node-environment.ts";
import { issuesError, taskError } from "./task-error.ts";

/** Where a task stands: its name for errors, and which folder of this machine a path in it means. */
export type TaskPlace = { name: string; folder(path: string, field: string): Promise<string> };

/** Throws `task_invalid` naming the field. */
export async function resolveTask(given: Task, place: TaskPlace, graders?: readonly Grader[]): Promise<Task> {
  const clash = displayClash(given.environment);
  if (clash) throw taskError(place.name, `environment.${clash.field}`, clash.message);
  const task = { ...given, environment: withDisplay(given.environment) };
  assertServersOf(task, place);
  if (task.steps && task.simulated_user)
    throw taskError(place.name, "simulated_user", "is set: a task with steps has no conversation, so leave one of them out");
  return {
    ...task,
    environment: await resolveEnvironment(task.environment, place),
    grader: await resolveGrader(task.grader, { place, environment: task.environment, known: graders }),
    gold_files: task.gold_files === null ? null : await place.folder(task.gold_files, "gold_files"),
    ...(task.gold_script && { gold_script: await resolveScript(task.gold_script, place, "gold_script") }),
    ...((task.steps || task.grader.kind === "steps") && { steps: await resolveSteps(task, task.steps ?? [], place) }),
  };
}

/** Calls of a known solution are made at servers that the task has. */
function assertServersOf({ environment, gold_calls = [], bad_calls = {} }: Task, place: TaskPlace): void {
  const names = (environment.tools ?? []).map(({ name }) => name);
  for (const [field, calls] of [
    ["gold_calls", gold_calls] as const,
    ...Object.entries(bad_calls).map(([name, all]) => [`bad_calls.${name}`, all] as const),
  ])
    for (const [index, { server }] of calls.entries())
      if (!names.includes(server)) {
        const known = names.length === 0 ? "the task has no environment.tools" : `name one of ${names.join(", ")}`;
        throw taskError(place.name, `${field}.${index}.server`, `is ${server}: ${known}`);
      }
}

async function resolveScript(script: GoldScript, place: TaskPlace, field: string): Promise<GoldScript> {
  return { ...script, files: await place.folder(script.files, `${field}.files`) };
}

/** Steps and their grader's are the same ones. */
async function resolveSteps({ grader }: Task, steps: TaskStep[], place: TaskPlace): Promise<TaskStep[]> {
  const graded = grader.kind === "steps" && Array.isArray(grader.steps) ? (grader.steps as { name?: unknown }[]) : [];
  const [names, wanted] = [steps.map(({ name }) => name), graded.map(({ name }) => name)];
  if (JSON.stringify(names) !== JSON.stringify(wanted))
    throw taskError(
      place.name,
      "grader.steps",
      `are ${JSON.stringify(wanted)}: write a grader of kind steps with ${JSON.stringify(names)}`,
    );
  return Promise.all(
    steps.map(async (step, index) => ({
      ...step,
      files: step.files === null ? null : await place.folder(step.files, `steps.${index}.files`),
      ...(step.gold_script && { gold_script: await resolveScript(step.gold_script, place, `steps.${index}.gold_script`) }),
    })),
  );
}

async function resolveEnvironment(environment: Environment, place: TaskPlace): Promise<Environment> {
  const own = Object.entries(environment.mounts).filter(([, path]) => path !== nodeWord);
  for (const [inside, path] of Object.entries(environment.mounts)) {
    if (path === nodeWord && inside !== nodeInside) {
      throw taskError(place.name, `environment.mounts.${inside}`, `${nodeWord} is mounted at ${nodeInside} and nowhere else`);
    }
    if (!inside.startsWith("/")) throw taskError(place.name, `environment.mounts.${inside}`, "a mount's path inside begins with /");
  }
  const mounts = await Promise.all(
    own.map(async ([inside, path]) => [inside, await place.folder(path, `environment.mounts.${inside}`)] as const),
  );
  const files = environment.files === null ? null : await place.folder(environment.files, "environment.files");
  const build = environment.build && (await resolveBuild(environment.build, place, "environment.build"));
  const services = environment.services && { services: await resolveServices(environment.services, place) };
  const resolved = { ...environment, files, build, ...services, mounts: Object.fromEntries(mounts) };
  return own.length < Object.keys(environment.mounts).length ? withNode(resolved) : resolved;
}

async function resolveBuild(build: Build, place: TaskPlace, field: string): Promise<Build> {
  return { ...build, context: await place.folder(build.context, `${field}.context`) };
}

async function resolveServices(services: Services, place: TaskPlace): Promise<Services> {
  const resolved = Object.entries(services).map(async ([name, { build, files, ...service }]) => {
    const own = build && (await resolveBuild(build, place, `environment.services.${name}.build`));
    const folder = files === null ? null : await place.folder(files, `environment.services.${name}.files`);
    return [name, { ...service, build: own, files: folder }] as const;
  });
  return Object.fromEntries(await Promise.all(resolved));
}

/** Parts of parts of parts: deeper is no grading that a person can follow. */
const deepestPart = 3;

/** What a grader's spec is read against. */
type GraderPlace = { place: TaskPlace; environment: Environment; known: readonly Grader[] | undefined };

async function resolveGrader(grader: GraderSpec, at: GraderPlace, within = "grader", depth = 0): Promise<GraderSpec> {
  const { place, environment, known } = at;
  const spec = readSpec(grader, place, within, known);
  const { folders = [], parts, misfits } = graderOf(spec, known);
  const [misfit] = misfits?.(spec, environment) ?? [];
  if (misfit) throw taskError(place.name, `${within}.${misfit.field}`, misfit.message);
  const resolved: GraderSpec = { ...spec };
  for (const field of folders) {
    const path = spec[field];
    if (typeof path === "string") resolved[field] = await place.folder(path, `${within}.${field}`);
  }
  if (parts === undefined) return resolved;
  if (depth === deepestPart) throw taskError(place.name, within, `graders stand in one another more than ${deepestPart} deep`);
  const own: GraderSpec[] = [];
  for (const [index, part] of parts.of(resolved).entries())
    own.push(await resolveGrader(part, at, `${within}.${parts.field}.${index}.grader`, depth + 1));
  return parts.with(resolved, own);
}

function readSpec(grader: GraderSpec, { name: file }: TaskPlace, within: string, known?: readonly Grader[]): GraderSpec {
  try {
    return specOfGrader(grader, known);
  } catch (error) {
    if (error instanceof AlidadeError) throw taskError(file, within === "grader" ? (error.param ?? within) : within, error.message);
    const issues = error instanceof z.ZodError ? error.issues : [];
    throw issuesError(issues, grader, file, within) ?? taskError(file, within, messageOf(error));
  }
}
