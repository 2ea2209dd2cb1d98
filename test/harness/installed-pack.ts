import type { TestContext } from "node:test";
import type { Harness } from "../../harnesses/harness.ts";
import { ensurePack, hasPack, hostPlatform, type Pack } from "../../harnesses/pack.ts";
import { type Need, need } from "../needs.ts";

/**
 * The pack of a harness for a test on the host. One that is not installed is a few hundred megabytes, so it is installed
 * for a test only where nothing may be left out; otherwise the test is skipped and null comes back.
 */
export async function installedPack(t: TestContext, harness: Harness): Promise<Pack | null> {
  const platform = hostPlatform();
  if (!(await hasPack(harness, platform))) {
    if (process.env.ALIDADE_TEST_ALL !== "1") {
      t.skip(`harness:${harness.name}: its pack is not installed; npm run packs`);
      return null;
    }
    await need(t, `harness:${harness.name}` as Need);
  }
  return ensurePack(harness, { signal: t.signal, platform, progress: (line) => t.diagnostic(line) });
}
