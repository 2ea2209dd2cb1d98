/**
 * Heavy test files, for load, crashes, hostile input, long searches, benchmarks, online training or the whole package: together a third of the
 * seconds of all files on a machine without Docker. They prove little about the machine, so a plain `npm test` leaves them out and
 * says so; `ALIDADE_TEST_HEAVY=1`, `ALIDADE_TEST_ALL=1` and a filter run them.
 */
import { matchesGlob } from "node:path";

export const heavy: readonly string[] = [
  "test/bench/*.test.ts",
  "test/cli/commands/audit.test.ts",
  "test/cli/commands/damaged-records.test.ts",
  "test/contracts/dialects-there-and-back.test.ts",
  "test/contracts/hostile-requests.test.ts",
  "test/contracts/layers.test.ts",
  "test/deploy/compose.test.ts",
  "test/deploy/ray.test.ts",
  "test/docker/budget.test.ts",
  "test/docker/desk-api.test.ts",
  "test/docker/hacks.test.ts",
  "test/docker/hostile-work.test.ts",
  "test/docker/miniwob.test.ts",
  "test/docker/retail.test.ts",
  "test/docker/tool-sets.test.ts",
  "test/docker/ticket-desk.test.ts",
  "test/e2e/full-disk.test.ts",
  "test/e2e/killed.test.ts",
  "test/e2e/nodes.test.ts",
  "test/e2e/parked-harnesses.test.ts",
  "test/e2e/resume-elsewhere.test.ts",
  "test/e2e/resume-harnesses.test.ts",
  "test/e2e/siblings.test.ts",
  "test/e2e/strays.test.ts",
  "test/e2e/train-online.test.ts",
  "test/examples/train.test.ts",
  "test/graders/tests.test.ts",
  "test/interop/trainers/live.test.ts",
  "test/package.test.ts",
  "test/practice/generation.test.ts",
  "test/proxy/calls/limits.test.ts",
  "test/proxy/continuity/session-kinds.test.ts",
  "test/proxy/http/bounds.test.ts",
  "test/proxy/session/fold.test.ts",
  "test/rollouts/full-disk.test.ts",
  "test/rollouts/left-behind.test.ts",
  "test/tasks/check.test.ts",
];

/** The heavy files among these, where nothing asks for them. */
export function heavyOf(files: string[], filters: string[], env: NodeJS.ProcessEnv = process.env): string[] {
  const isAsked = env.ALIDADE_TEST_HEAVY === "1" || env.ALIDADE_TEST_ALL === "1" || filters.some((filter) => !filter.startsWith("!"));
  return isAsked ? [] : files.filter((file) => heavy.some((glob) => matchesGlob(file, glob)));
}

export function sayHeavy(files: string[]): string {
  return `Left out: ${files.length} heavy test ${files.length === 1 ? "file" : "files"} (load, crashes, hostile input, the package). To add: ALIDADE_TEST_HEAVY=1 npm test`;
}
