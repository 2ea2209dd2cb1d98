/** Harbor's verifier of a task, or of one of its steps, as a spec of the grader `harbor`. */
import { lstat } from "node:fs/promises";
import { join, posix } from "node:path";
import type { NetworkAccess } from "../../base/schema/network.ts";
import type { HarborSpec } from "../../graders/index.ts";
import { exists, folderBelow } from "../host-path.ts";
import { taskError } from "../task-error.ts";
import { expandEnv } from "./expand-env.ts";
import type { FolderOrder, PlacedStep } from "./folder-order.ts";
import type { EnvironmentConfig, VerifierConfig } from "./task-config.ts";
import { imageSource, networkOf, statedLimits, toEnvironment, userOf } from "./to-environment.ts";

/** A verifier's words, with where they stand: the step's own first, then the task's. */
type WordPlace = { verifier: VerifierConfig; field: string; tests: string };

function placesOf({ config }: FolderOrder, step: PlacedStep | null): WordPlace[] {
  const ofTask = { verifier: config.verifier, field: "verifier", tests: "tests" };
  if (step === null) return [ofTask];
  const { name, verifier } = step.config;
  return [{ verifier, field: `steps.${step.index}.verifier`, tests: `steps/${name}/tests` }, ofTask];
}

export async function toVerifier(order: FolderOrder, step: PlacedStep | null): Promise<HarborSpec & Record<string, unknown>> {
  const { config, source, file, host, options } = order;
  const places = placesOf(order, step);
  const separate = await separateVerifier(order, step, places);
  const [tests, step_tests] = separate?.ownsTests ? [null, null] : await testsOf(order, places);
  const { workdir } = config.environment;
  const inWorkdir = (path: string) => posix.resolve(workdir ?? source.stage.workdir ?? "/", path);
  const fromTask = [...places].reverse();
  return {
    kind: "harbor",
    tests,
    step_tests,
    env: Object.assign({}, ...fromTask.map(({ verifier, field }) => expandEnv(verifier.env, host, file, `${field}.env`))),
    user: userOf(testUser(places), separate?.source ?? source),
    hold_back: config.metadata.alidade.hold_back,
    reward: config.metadata.alidade.reward ?? options.harborReward ?? null,
    printed: null,
    verifier: separate && { environment: separate.environment, limits: separate.limits },
    artifacts: [
      { source: "/logs/artifacts", exclude: [] },
      ...[...config.artifacts, ...(step?.config.artifacts ?? [])].map((one) => ({ source: inWorkdir(one.source), exclude: one.exclude })),
    ],
    collect: fromTask.flatMap(({ verifier }) =>
      verifier.collect.map(({ command, timeout_sec, user }) => ({
        command,
        timeout_seconds: timeout_sec,
        user: user === null ? null : userOf(user, source),
      })),
    ),
  };
}

function testUser(places: readonly WordPlace[]): string | number | null {
  return places.map(({ verifier }) => verifier.user).find((user) => user !== null) ?? null;
}

/** What the tests reach: the word of the step, else of the task, else of the environment that they run in, else the operator's. */
export function testNetwork(
  order: FolderOrder,
  step: PlacedStep | null,
  [field, environment]: readonly [string, EnvironmentConfig],
): NetworkAccess {
  const words = placesOf(order, step).map((one) => [one.field, one.verifier] as const);
  // That an agent may reach the internet says nothing of what the tests need: that word is the operator's.
  const allow_internet = environment.allow_internet === false ? false : null;
  const unstated = order.options.verifierNetwork ?? "none";
  return networkOf([...words, [field, { ...environment, allow_internet }]], unstated, order.file);
}

/** Folders of tests: the task's, and over it the step's. One of them has the script. */
async function testsOf({ folder, file }: FolderOrder, places: readonly WordPlace[]): Promise<[string | null, string | null]> {
  const scripts = await Promise.all(places.map(({ tests }) => isFile(join(folder, tests, "test.sh"))));
  const named = places.map(({ tests }) => `${tests}/test.sh`);
  if (!scripts.includes(true))
    throw taskError(
      file,
      named[0] ?? "",
      `is no file (links are not followed)${named[1] ? `, nor is ${named[1]}` : ""}: Harbor's verifier runs it`,
    );
  const below = async ({ tests }: WordPlace) => ((await exists(join(folder, tests))) ? folderBelow(folder, tests, file, tests) : null);
  const [own, ofTask] = await Promise.all(places.map(below));
  return places.length === 1 ? [own ?? null, null] : [ofTask ?? null, own ?? null];
}

async function isFile(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null))?.isFile() === true;
}

/** A container of the verifier's own: its image, the one that the tests' Dockerfile makes, or the task's. null: it has none. */
async function separateVerifier(order: FolderOrder, step: PlacedStep | null, places: readonly WordPlace[]) {
  const { folder, file, config, source, host, options } = order;
  if (modeOf(places) === "shared") return null;
  const stated = places.find(({ verifier }) => verifier.environment !== null);
  const own: EnvironmentConfig = stated?.verifier.environment ?? config.environment;
  const field = stated ? `${stated.field}.environment` : "environment";
  const imaged = await imagedPlace(folder, places);
  const from = imaged
    ? await imageSource(
        { ...own, docker_image: imaged.verifier.environment?.docker_image ?? null },
        { folder: await folderOf(order, imaged), file, field },
        options,
      )
    : source;
  const made = toEnvironment({
    config: own,
    source: from,
    env: expandEnv(own.env, host, file, `${field}.env`),
    user: userOf(testUser(places), from),
    network: "none",
    grading_network: testNetwork(order, step, [field, own]),
  });
  return { environment: made, limits: statedLimits(own), ownsTests: imaged !== undefined, source: from };
}

/** null: where an image is named there may be no tests beside it. */
async function folderOf({ folder, file }: FolderOrder, { tests }: WordPlace): Promise<string | null> {
  return (await exists(join(folder, tests))) ? folderBelow(folder, tests, file, tests) : null;
}

function modeOf(places: readonly WordPlace[]): "shared" | "separate" {
  const modes = places.map(({ verifier }) => verifier.environment_mode ?? (verifier.environment ? "separate" : null));
  return modes.find((mode) => mode !== null) ?? "shared";
}

/** The first place that names an image or has a Dockerfile beside its tests. Its image has the tests. */
async function imagedPlace(folder: string, places: readonly WordPlace[]): Promise<WordPlace | undefined> {
  const has = await Promise.all(
    places.map(
      async ({ verifier, tests }) => verifier.environment?.docker_image != null || (await exists(join(folder, tests, "Dockerfile"))),
    ),
  );
  return places.find((_, index) => has[index]);
}
