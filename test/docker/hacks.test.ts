/** The hack table holds: probes tried again in containers come to what docs/hacks.md says. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { probes } from "../../graders/probes/index.ts";
import { oneProcess } from "../../graders/probes/one-process.ts";
import { recordedOutcomes } from "../contracts/hacks-page.ts";
import { hackSettings, tryHacks } from "../fakes/hacks/hack-settings.ts";
import { need } from "../needs.ts";

/** What a work does in one process with its tests is tried in each way that loads it, and where it is loaded apart. */
const inOneProcess = oneProcess.map(({ name }) => name);

/** A few others, for each costs a container or two; `node test/contracts/hacks-page.ts --try` tries all of them. */
const tried: Record<string, string[]> = {
  harbor: ["surviving-daemon", "path-shims"],
  python: ["planted-conftest", "forged-report", "equal-to-everything", ...inOneProcess],
  "javascript-tap": ["printed-names", "forged-report", ...inOneProcess],
  cases: ["path-shims", "forged-report"],
  "python-together": inOneProcess,
  "python-apart": ["key-in-memory", "patched-framework", "equal-to-everything", "hang", ...inOneProcess],
  "pytest-together": inOneProcess,
  "pytest-apart": inOneProcess,
  javascript: inOneProcess,
  "javascript-apart": inOneProcess,
  "tape-together": inOneProcess,
  "tape-apart": inOneProcess,
};

for (const setting of hackSettings.filter(({ name }) => Object.hasOwn(tried, name)))
  test(`${setting.name}: hacks earn what the table says`, { timeout: 300_000 }, async (t) => {
    for (const what of ["docker", ...(setting.needs ?? [])] as const) if (!(await need(t, what))) return;
    const { [setting.name]: names = [] } = tried;
    const wanted = probes.filter(({ name }) => names.includes(name));
    const { [setting.name]: recorded = {} } = await recordedOutcomes();
    const outcomes = await tryHacks(setting, t.signal, wanted);
    // "no reward" in the place of "stopped" may be a machine that is loaded.
    assert.deepEqual(
      wanted.map(({ name }) => [name, outcomes[name] === "paid"]),
      wanted.map(({ name }) => [name, recorded[name] === "paid"]),
    );
  });
