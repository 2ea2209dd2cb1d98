/** The contracts that `alidade plugin check` holds a user's file to, held to by everything that is built in. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { currentOwner } from "../../base/host/owner.ts";
import { engineContract } from "../../engines/contract.ts";
import { engines } from "../../engines/registry.ts";
import { exporterContract } from "../../exporters/contract.ts";
import { exporters } from "../../exporters/registry.ts";
import { graderContract } from "../../graders/contract.ts";
import { graders } from "../../graders/registry.ts";
import { harnessContract } from "../../harnesses/contract.ts";
import { harnesses } from "../../harnesses/registry.ts";
import { branchingContract } from "../../rollouts/branching/contract.ts";
import { branchingPolicies } from "../../rollouts/branching/index.ts";
import { sandboxContract } from "../../sandboxes/contract.ts";
import { backends } from "../../sandboxes/registry.ts";
import { allocationContract, allocationPolicies } from "../../service/ledger/index.ts";
import { taskFormatContract } from "../../tasks/contract.ts";
import { taskFormats } from "../../tasks/registry.ts";
import { goldenSibling, goldenTrajectory } from "../fakes/records/golden-session.ts";
import { need } from "../needs.ts";
import { cases } from "./engine-cases.ts";

for (const kind of engines)
  for (const { says, check } of engineContract)
    test(`engine ${kind.name}: ${says}`, async () => {
      await using server = await cases[kind.name]!.start(() => ({ text: "hello" }));
      await check(kind, { url: server.url, apiKey: "key", signal: AbortSignal.timeout(20_000) });
    });

for (const harness of harnesses)
  for (const { says, check } of harnessContract) test(`harness ${harness.name}: ${says}`, () => check(harness, {}));

const specs = {
  tests: { kind: "tests", command: ["true"], parser: "tap", tests: "schema", fail_to_pass: ["a"], pass_to_pass: [] },
  script: { kind: "script", command: ["true"] },
  state: { kind: "state", only: [] },
  answer: { kind: "answer", exact: "a" },
  trajectory: { kind: "trajectory", max_turns: 1 },
  judge: { kind: "judge", rubric: [{ name: "a", says: "It is done." }] },
  composite: { kind: "composite", combine: "all", parts: [{ name: "a", grader: { kind: "answer", exact: "a" } }] },
};

for (const grader of graders)
  for (const { says, check } of graderContract)
    test(`grader ${grader.name}: ${says}`, async () => {
      for (const spec of [null, ...Object.values(specs).filter(({ kind }) => kind === grader.name)]) await check(grader, { spec });
    });

for (const exporter of exporters)
  for (const { says, check } of exporterContract)
    test(`exporter ${exporter.name}: ${says}`, () => check(exporter, { trajectories: [goldenTrajectory(), goldenSibling()] }));

for (const backend of backends)
  for (const { says, check } of sandboxContract)
    test(`sandbox ${backend.name}: ${says}`, { timeout: 300_000 }, async (t) => {
      if (backend.name === "docker" && !(await need(t, "docker"))) return;
      await check(backend, { run_id: "run-test-contract", owner: await currentOwner(), signal: t.signal });
    });

for (const policy of branchingPolicies)
  for (const { says, check } of branchingContract) test(`branching policy ${policy.name}: ${says}`, () => check(policy, {}));

for (const policy of allocationPolicies)
  for (const { says, check } of allocationContract) test(`allocation policy ${policy.name}: ${says}`, () => check(policy, {}));

// Loading the other's example needs a registry of npm packages.
for (const format of taskFormats)
  for (const { says, check } of taskFormatContract)
    test(`task format ${format.name}: ${says}`, () => check(format, { path: format.name === "native" ? "examples/demo/tasks" : null }));

test("every contract says each of its statements once", () => {
  for (const contract of [
    engineContract,
    harnessContract,
    graderContract,
    exporterContract,
    sandboxContract,
    taskFormatContract,
    allocationContract,
  ]) {
    const all = contract.map(({ says }) => says);
    assert.deepEqual([...new Set(all)], all);
  }
});
