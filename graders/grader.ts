/** A grader turns what an agent did, and the work that was taken out of its sandbox, into a verdict. */

import type { WorkLayer } from "../base/files/layer.ts";
import type { Tier, Verdict } from "../base/schema/rollout.ts";
import type { Environment, GraderSpec, Task } from "../base/schema/task.ts";
import type { Trajectory } from "../base/schema/trajectory.ts";
import type { Sandbox } from "../sandboxes/index.ts";
import type { NetworkLog } from "../sandboxes/network/index.ts";
import type { MayDiffer } from "./bounded/ask-child.ts";
import type { QuestionToService } from "./work/ask-service.ts";

/** The tokenizer of a model at an engine: text to ids, with the template's tokens where the text has them, and back. */
export type ModelTokenizer = {
  tokenize(text: string, signal: AbortSignal): Promise<number[]>;
  detokenize(ids: number[], signal: AbortSignal): Promise<string>;
};

/** Models behind the proxy for a grader, in a session of its own, which is recorded and never trained. */
export type GraderSampler = {
  /** The proxy without a trailing slash and without `/v1`, for any SDK that it speaks to. */
  readonly url: string;
  readonly key: string;
  readonly session_id: string;
  /** ServiceReadOptions where the task names no model. */
  readonly model: string;
  /** One for each engine that a question to this model may reach. null: that engine does not tell how it reads a text. */
  tokenizers(model: string): { engine: string; tokenizer: ModelTokenizer | null }[];
};

/** A session of its own for one grading, sealed with the scope. `grades`: the name of what is graded. */
export type OpenSampler = (task_id: string, grades: string) => Promise<GraderSampler & AsyncDisposable>;

/** `network`: what was asked of its network, with a budget of its own; absent where it is not known. */
export type GradingSandbox = Sandbox & { network?: NetworkLog };

/** What an agent left at the end of a step. `services`: absent where the task has none whose `state` is read. */
export type StepWork = { work: WorkLayer; services?: ServiceReadings };

/** The state of a task's services before the agent began and after it ended: layers with `/state/<service>/<path>`. */
export type ServiceReadings = {
  before: WorkLayer;
  /** Also `/answers/<question>.json`: what running services answered. */
  after: WorkLayer;
};

export type GradeContext = {
  task: Task;
  /** What the agent changed, read from outside after everything inside was ended. */
  work: WorkLayer;
  /** What was left after each step of a task with steps that the agent ended, in order. `work` is the last one's. */
  steps?: readonly StepWork[];
  /** What was read of the task's services. Absent where the task has none whose `state` is read. */
  services?: ServiceReadings;
  /** The agent's trajectory, reconstructed before grading. Absent without an agent, as in `alidade check`. */
  trajectory?: Trajectory;
  /** Absent where the grader does not say `asksModels`, and where there is no proxy. */
  sampler?: GraderSampler;
  /**
   * A fresh sandbox of the task's environment as it is delivered to an agent, or of another environment; the grader releases
   * it.
   */
  fresh(other?: Partial<Pick<Task, "environment" | "limits">>): Promise<GradingSandbox>;
  /**
   * The agent's own sandbox, where the task is graded there (`grading: shared`): the work stands in it. Every process of its
   * container has ended, unless the task keeps them (`keep_processes`).
   * The grader releases it, and may ask for it again.
   */
  lend?(): Promise<GradingSandbox>;
  /** What isolated the agent from this machine; absent where that is unknown. */
  isolation?: Verdict["isolation"];
  /** Grades the same work and trajectory by another spec. `grade` gives it to graders with parts. */
  part?(spec: GraderSpec): Promise<Verdict>;
  /** Grades one step's work by that step's tests. `grade` gives it where the task has steps. */
  step?(index: number): Promise<Verdict>;
  /** Graders that a task may name. Default: the built-in ones. */
  graders?: readonly Grader[];
  signal: AbortSignal;
};

/** `given`: what the work gets to read for it. */
export type ExpectedText = { text: string; given: string };

/**
 * What is looked for inside of an output that may hold more: a text, or a regular expression. `longest`: characters of the
 * output that it is looked for in. `file`: where the work leaves it, from the workdir or absolute; null: it is printed.
 */
export type LooseText = { text: string; isPattern: boolean; longest: number; file: string | null };

/** `field`: its path in the spec. `message`: goes on from the field, as in `is shop: name one of desk`. */
export type Misfit = { field: string; message: string };

export interface Grader<Spec extends GraderSpec = GraderSpec> {
  /** The `kind` of its specs. */
  readonly name: string;
  readonly title: string;
  /** Written into its verdicts. Change it where the same work may earn another reward than before. */
  readonly version?: string;
  /** Reads a task's `grader` and throws for what is wrong in it; a zod schema does. Absent: the spec is taken as it is. */
  readonly spec?: { parse(value: unknown): Spec };
  /** Fields of the spec that name a folder beside the task file, or hold null for none. The loader makes them absolute. */
  readonly folders?: readonly string[];
  /** Environments that it asks `fresh` for, beside the task's own. Their images are made before the run. */
  readonly environments?: (spec: Spec) => Environment[];
  /** Texts that it expects in a work's output or in an answer. No agent may find them beforehand. */
  readonly expected?: (spec: Spec) => ExpectedText[];
  /** Texts that it searches in a work's outputs. A work that prints everything contains them too. */
  readonly loose?: (spec: Spec) => LooseText[];
  /** It asks models: `grade` gets a `sampler`. */
  readonly asksModels?: boolean;
  /** What it asks services that run, once the agent has ended. */
  readonly asksServices?: (spec: Spec) => QuestionToService[];
  /** What the spec lets differ in databases of services, by their paths there. */
  readonly allows?: (spec: Spec) => { service: string; file: string; except: MayDiffer[] }[];
  /** What of the spec names nothing that the task has. The task is refused when it is loaded. */
  readonly misfits?: (spec: Spec, environment: Environment) => Misfit[];
  /** Where specs of other graders stand in its own. */
  readonly parts?: GraderParts<Spec>;
  /**
   * The tier of its verdicts on works from containers; `tierOf` answers for its parts. `run --min-tier` refuses a grader
   * without it.
   */
  tier?(spec: Spec, task: Task, tierOf: (part: GraderSpec) => Tier | null): Tier | null;
  /** True if most gradings ask for a fresh sandbox of the task: one is then made ahead. Absent: true. */
  readonly startsFresh?: (spec: Spec) => boolean;
  /** Never throws for what the work did; throws AlidadeError for what the infrastructure did. */
  grade(spec: Spec, context: GradeContext): Promise<Verdict>;
}

export type GraderParts<Spec> = {
  /** The field of the spec with a list of `{grader}`, in the order of `of`. An error about a part names it. */
  field: string;
  of(spec: Spec): GraderSpec[];
  /** The spec with other ones in their places, in the order of `of`. */
  with(spec: Spec, parts: GraderSpec[]): Spec;
};
