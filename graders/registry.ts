/** The graders; a new one is a file here and a line below. */

import { namedIn, registryOf } from "../base/host/plug-ins.ts";
import type { Environment, GraderSpec, Task } from "../base/schema/task.ts";
import { withServices } from "../sandboxes/index.ts";
import { answer } from "./answer.ts";
import { cases } from "./cases.ts";
import { composite } from "./composite.ts";
import type { Grader } from "./grader.ts";
import { harbor } from "./harbor.ts";
import { judge } from "./judge.ts";
import { remote } from "./remote.ts";
import { script } from "./script.ts";
import { state } from "./state.ts";
import { steps } from "./steps.ts";
import { tests } from "./tests.ts";
import { trajectory } from "./trajectory.ts";

export const graderRegistry = registryOf<Grader>({
  noun: "grader",
  param: "grader.kind",
  // A spec is only ever given to the grader of its own kind.
  list: [tests, cases, script, harbor, state, answer, trajectory, composite, steps, judge, remote] as unknown as readonly Grader[],
  members: {
    name: "text",
    title: "text",
    version: "text?",
    spec: "object?",
    folders: "list?",
    environments: "function?",
    expected: "function?",
    loose: "function?",
    asksModels: "boolean?",
    asksServices: "function?",
    misfits: "function?",
    allows: "function?",
    startsFresh: "function?",
    parts: "object?",
    tier: "function?",
    grade: "function",
  },
});
export const graders = graderRegistry.list;

/** The grader of a spec, among those that a run knows. Throws `plugin_unknown` with the kinds that there are. */
export function graderOf(spec: GraderSpec, known: readonly Grader[] = graders): Grader {
  return namedIn(known, spec.kind, "grader", "grader.kind");
}

/** The spec as its grader reads it, with its defaults. Throws what its schema throws. */
export function specOfGrader(spec: GraderSpec, known?: readonly Grader[]): GraderSpec {
  return graderOf(spec, known).spec?.parse(spec) ?? spec;
}

/** Does it, or one of its parts, ask a model? */
export function asksModels(spec: GraderSpec, known?: readonly Grader[]): boolean {
  return withParts(spec, known).some(({ grader }) => grader.asksModels === true);
}

/** True if the grader or one of its parts asks for a fresh sandbox of the task in most gradings. */
export function startsFresh(spec: GraderSpec, known?: readonly Grader[]): boolean {
  return withParts(spec, known).some(({ grader, spec: own }) => grader.startsFresh?.(own) ?? grader.parts === undefined);
}

/** The environment of each task, those that its grader makes of its own, and one for each service: what is to be prepared before the first sandbox. */
export function environmentsOf(tasks: readonly Task[], known?: readonly Grader[]): { task_id: string; environment: Environment }[] {
  return tasks.flatMap(({ task_id, environment, grader }) => {
    const others = withParts(grader, known).flatMap(({ grader: own, spec }) => own.environments?.(spec) ?? []);
    return [environment, ...others].flatMap(withServices).map((one) => ({ task_id, environment: one }));
  });
}

/** A grader's spec, and those of its parts and of theirs, each as its grader reads it. */
export function withParts(spec: GraderSpec, known?: readonly Grader[]): { grader: Grader; spec: GraderSpec }[] {
  const grader = graderOf(spec, known);
  const own = specOfGrader(spec, known);
  return [{ grader, spec: own }, ...(grader.parts?.of(own) ?? []).flatMap((part) => withParts(part, known))];
}
