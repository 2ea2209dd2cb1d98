import { hashOf } from "../../base/schema/ids.ts";
import { probes } from "../probes/index.ts";

/** Raised where the checks or a probe mean something else than before: what was admitted is checked again. */
const checks = 10;

/** `version`: Alidade's own, whose graders may give another reward than an older one's. */
export function checksVersion(version: string): string {
  return `${version}+checks.${checks}.${hashOf(probes.map(({ name, languages }) => [name, languages])).slice(0, 8)}`;
}
