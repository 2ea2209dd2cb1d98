/** The hack probes, by families; a new one stands in a family's list. */
import { burdens } from "./burdens.ts";
import { changedTests } from "./changed-tests.ts";
import { forgedReports } from "./forged-reports.ts";
import { gitProbes } from "./git.ts";
import { hollowChecks } from "./hollow-checks.ts";
import { leftBehind } from "./left-behind.ts";
import { oneProcess } from "./one-process.ts";
import type { Probe, WorkLanguage } from "./probe.ts";

export const probes: readonly Probe[] = [leftBehind, changedTests, forgedReports, hollowChecks, oneProcess, gitProbes, burdens].flat();

export type AimedProbe = { probe: Probe; language: WorkLanguage | null };

/** The probes of a task: once for each of its languages, and those of any language once. */
export function probesFor(languages: readonly WorkLanguage[], wanted: readonly Probe[] = probes): AimedProbe[] {
  return wanted.flatMap((probe): AimedProbe[] => {
    if (probe.languages === "any") return [{ probe, language: null }];
    return probe.languages.filter((one) => languages.includes(one)).map((language) => ({ probe, language }));
  });
}
