/**
 * Podman's service of root as the engine. The attacks on Docker run against it; ALIDADE_TEST_PODMAN=1 adds the contract of
 * sandboxes and the other suites.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { PodmanService } from "../fakes/machine/podman-service.ts";
import { root } from "../fakes/processes/cli.ts";
import { need } from "../needs.ts";

const attacks = ["docker/hostile-work", "docker/isolation", "docker/kernel", "docker/tool-services"];
const others = [
  "docker/apart",
  "docker/failures",
  "docker/grade",
  "docker/layer-ways",
  "docker/modes",
  "docker/reap",
  "docker/services",
  "docker/services-apart",
  "docker/services-connect",
];
const contracts = ["docker/start", "contracts/sandboxes", "contracts/set-up"];

test("the attacks on Docker fail on Podman too", { timeout: 1_500_000 }, async (t) => {
  if (!(await need(t, "podman"))) return;
  await using podman = await PodmanService.start(AbortSignal.timeout(240_000));
  const everything = process.env.ALIDADE_TEST_PODMAN === "1";
  const files = [...attacks, ...(everything ? [...others, ...contracts] : [])].map((name) => `test/${name}.test.ts`);
  const child = podman.spawn(root, process.execPath, [
    "--test",
    "--test-concurrency=2",
    "--import",
    join(root, "test/end-of-file.ts"),
    ...files,
  ]);
  const [said, [code]] = await Promise.all([text(child.stdout as NodeJS.ReadableStream), once(child, "close")]);
  assert.equal(code, 0, said);
  assert.match(said, /pass [1-9]/);
  assert.deepEqual(await podman.docker.listContainers({ all: true }), [], "nothing is left behind");
  const { Volumes } = await podman.docker.listVolumes({ filters: { label: ["alidade.sandbox"] } });
  assert.deepEqual(
    (Volumes ?? []).map(({ Name }) => Name),
    [],
  );
});
