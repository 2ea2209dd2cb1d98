/** deploy/helm, rendered by Helm's own code and held against Kubernetes' schemas. It runs in no cluster. */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { z } from "zod";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, root } from "../fakes/processes/cli.ts";
import { rendered } from "../interop/helm/place.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("helm");
const chart = join(root, "deploy/helm");
/** The oldest that Chart.yaml allows, and a new one. */
const versions = ["1.29", "1.36"];

const Container = z.object({ name: z.string(), command: z.array(z.string()).optional(), args: z.array(z.string()).optional() });
const Pod = z.object({
  terminationGracePeriodSeconds: z.number().optional(),
  initContainers: z.array(Container).default([]),
  containers: z.array(Container),
});
const Manifest = z.object({
  kind: z.string(),
  data: z.record(z.string(), z.string()).optional(),
  spec: z.object({ template: z.object({ spec: Pod }).optional() }).optional(),
});
const Answer = z.union([
  z.object({ refused: z.string() }),
  z.object({ manifests: z.array(Manifest), lint: z.object({ errors: z.array(z.string()).nullable() }) }),
]);

const render = async (values: unknown, version = versions[0] ?? "") => Answer.parse(await rendered(chart, version, values));

test("the chart's manifests are what Kubernetes takes, and start nodes that are drained before their engine ends", async (t) => {
  if (!(await need(t, "helm"))) return;
  const elsewhere = { docker: { host: "tcp://docker:2376", certSecret: "certs" } };
  for (const version of versions)
    for (const values of [{}, { ...elsewhere, trajectories: { place: "/trajectories", claim: "shared" } }]) {
      const answer = await render(values, version);
      assert.ok("manifests" in answer, JSON.stringify(answer));
      const { manifests, lint } = answer;
      assert.deepEqual(manifests.map(({ kind }) => kind).sort(), ["ConfigMap", "Deployment", "Service", "StatefulSet"]);
      assert.deepEqual(lint.errors ?? [], []);
      const pods = new Map(manifests.map(({ kind, spec }) => [kind, spec?.template?.spec]));
      const node = pods.get("StatefulSet");
      assert.deepEqual([node?.terminationGracePeriodSeconds, node?.initContainers.length], [330, "docker" in values ? 0 : 1]);
      const config = manifests.find(({ data }) => data)?.data?.["run.yaml"] ?? "";
      for (const pod of [node, pods.get("Deployment")]) await assertIsCommand(pod?.containers[0], config);
    }
});

test("values that the chart does not know are refused by their name", async (t) => {
  if (!(await need(t, "helm"))) return;
  for (const [values, word] of [
    [{ nodes: {} }, /'nodes' not allowed/],
    [{ ledger: "postgres://alidade:word@db/rollouts" }, /'\/ledger'/],
    [{ node: { drainSeconds: -1 } }, /'\/node\/drainSeconds'/],
    [{ trajectories: { place: "/tmp/x" } }, /'\/trajectories\/place'/],
  ] as const) {
    const answer = await render(values);
    assert.ok("refused" in answer && word.test(answer.refused), JSON.stringify(answer));
  }
});

test("the chart is of this version", async () => {
  const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const { appVersion } = parse(await readFile(join(chart, "Chart.yaml"), "utf8"));
  const { image } = parse(await readFile(join(chart, "values.yaml"), "utf8"));
  assert.deepEqual([appVersion, image], [version, `alidade:${version}`]);
});

/** Our command line takes the container's words and its run file, and ends where there is no such database. */
async function assertIsCommand(container: z.infer<typeof Container> | undefined, config: string): Promise<void> {
  const file = join(scratch, "run.yaml");
  await writeFile(file, config.replace("sandbox: docker", "sandbox: process\nunsafe_host: true"));
  const words = [...(container?.command ?? []), ...(container?.args ?? [])];
  const own = words.slice(1).map((word) => {
    if (word.startsWith("--config=")) return `--config=${file}`;
    if (word.startsWith("--out=")) return `--out=${join(scratch, "out")}`;
    return word.replace("$(POD_NAME)", "alidade-node-0").replace("@postgres/", "@127.0.0.1:1/");
  });
  // A node waits for its database by itself, for minutes: here it is told not to.
  if (own[0] === "node") own.push("--wait-seconds=0");
  const { code, stderr } = await cli(own, { env: { ALIDADE_SERVICE_TOKEN: "a-token-of-the-test" } });
  assert.equal(words[0], "alidade");
  assert.match(stderr, /127\.0\.0\.1:1\b/, `${code}: ${own.join(" ")}: ${stderr}`);
}
