/** The most memory that a grader's sandboxes took, as the engine's control group counts it: with the cache of their files. */
import { isIsolated } from "../../base/schema/rollout.ts";
import type { Sandbox } from "../../sandboxes/index.ts";
import type { GradeContext } from "../grader.ts";

/** cgroup v2, then v1. */
const readPeak = "cat /sys/fs/cgroup/memory.peak 2>/dev/null || cat /sys/fs/cgroup/memory/memory.max_usage_in_bytes 2>/dev/null";

type Fresh = GradeContext["fresh"];

/** The same sandboxes; `peak_mb` is null until one of them was released that tells its peak. */
export function measuringMemory(fresh: Fresh): { fresh: Fresh; peak_mb: () => number | null } {
  const peaks: number[] = [];
  return {
    async fresh(other) {
      const sandbox = await fresh(other);
      const release = sandbox[Symbol.asyncDispose].bind(sandbox);
      sandbox[Symbol.asyncDispose] = async () => {
        peaks.push(...(await peakOf(sandbox)));
        await release();
      };
      return sandbox;
    },
    peak_mb: () => (peaks.length === 0 ? null : Math.round(Math.max(...peaks) / 1024 ** 2)),
  };
}

/** [] where it is not told: without isolation the group would be that of the machine. */
async function peakOf(sandbox: Sandbox): Promise<number[]> {
  if (!isIsolated(sandbox.facts.isolation)) return [];
  try {
    const { stdout } = await sandbox.exec(["sh", "-c", readPeak], { cwd: "/", timeout_ms: 5_000, max_output_bytes: 100 });
    const bytes = Number.parseInt(stdout, 10);
    return Number.isSafeInteger(bytes) ? [bytes] : [];
  } catch {
    return [];
  }
}
