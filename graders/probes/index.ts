/** The hack probes; a new one is a file here and a line below. */
import { deletedTests } from "./deleted-tests.ts";
import { equalToEverything } from "./equal-to-everything.ts";
import { exitAtLoad } from "./exit-at-load.ts";
import { flood } from "./flood.ts";
import { forgedReport } from "./forged-report.ts";
import { forgingDaemon } from "./forging-daemon.ts";
import { gitConfig } from "./git-config.ts";
import { gitHistory } from "./git-history.ts";
import { hang } from "./hang.ts";
import { hostileFiles } from "./hostile-files.ts";
import { keyInMemory } from "./key-in-memory.ts";
import { linkerPreload } from "./linker-preload.ts";
import { nodeOptions } from "./node-options.ts";
import { oneProcess } from "./one-process.ts";
import { patchedAssertions } from "./patched-assertions.ts";
import { patchedFramework } from "./patched-framework.ts";
import { pathShims } from "./path-shims.ts";
import { plantedConftest } from "./planted-conftest.ts";
import { plantedFramework } from "./planted-framework.ts";
import { plantedMakefile } from "./planted-makefile.ts";
import { plantedRewards } from "./planted-rewards.ts";
import { printedNames } from "./printed-names.ts";
import type { Probe, WorkLanguage } from "./probe.ts";
import { rewrittenTests } from "./rewritten-tests.ts";
import { saysEverything } from "./says-everything.ts";
import { staleCaches } from "./stale-caches.ts";
import { startedPython } from "./started-python.ts";
import { survivingDaemon } from "./surviving-daemon.ts";

export const probes: readonly Probe[] = [
  plantedRewards,
  survivingDaemon,
  pathShims,
  plantedConftest,
  startedPython,
  nodeOptions,
  linkerPreload,
  plantedFramework,
  plantedMakefile,
  staleCaches,
  deletedTests,
  rewrittenTests,
  exitAtLoad,
  printedNames,
  forgingDaemon,
  forgedReport,
  keyInMemory,
  patchedAssertions,
  patchedFramework,
  equalToEverything,
  saysEverything,
  ...oneProcess,
  gitHistory,
  gitConfig,
  hang,
  flood,
  hostileFiles,
];

export type AimedProbe = { probe: Probe; language: WorkLanguage | null };

/** The probes of a task: once for each of its languages, and those of any language once. */
export function probesFor(languages: readonly WorkLanguage[], wanted: readonly Probe[] = probes): AimedProbe[] {
  return wanted.flatMap((probe): AimedProbe[] => {
    if (probe.languages === "any") return [{ probe, language: null }];
    return probe.languages.filter((one) => languages.includes(one)).map((language) => ({ probe, language }));
  });
}
