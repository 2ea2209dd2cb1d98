/** Kept tokens over the service: rows train calls with a cut only if the trainer asks for it, and then have their sets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ServiceClient } from "../../index.ts";
import { pythonClient } from "../fakes/processes/python-client.ts";
import { cutSet } from "../fakes/proxies/cut-set.ts";
import { serviceTask } from "../fakes/proxies/service-at.ts";
import { need } from "../needs.ts";

type CutRow = { token_ids: number[]; loss_mask: number[]; support?: { sha256: string }[] };

test("rows of the service train calls with a cut if kept_sets is train, and the line has their sets", async (t) => {
  const { set, url, finish } = await cutSet(t);
  await using client = ServiceClient.at(url, "all");
  const run = await client.set("s", { samples: 1 });
  await run.submit([{ group_key: "g", task: serviceTask }]);
  await finish();
  assert.equal(run.id, set);
  for (const kept_sets of [undefined, "leave_out", "train"] as const) {
    const [line] = await Array.fromAsync(run.groups<CutRow>({ wait: 0, ...(kept_sets && { kept_sets }) }));
    const { left_out } = line?.report ?? {};
    if (kept_sets !== "train") {
      assert.deepEqual([left_out, line?.pictures], [{ truncated_sampling: 2 }, undefined]);
      continue;
    }
    assert.deepEqual(left_out, {});
    const named = line?.rows?.flatMap(({ support = [] }) => support.map(({ sha256 }) => sha256)) ?? [];
    assert.equal(named.length, 2);
    assert.deepEqual(Object.keys(line?.pictures ?? {}).sort(), [...new Set(named)].sort());
  }
});

test("another value of kept_sets, and a format without kept tokens, are refused in one sentence", async (t) => {
  const { call, set } = await cutSet(t);
  for (const path of ["results", "rollouts/r"])
    for (const [query, param, message] of [
      ["kept_sets=some", "kept_sets", /^kept_sets is "some": expected one of "leave_out"\|"train"$/],
      ["kept_sets=train&format=skyrl", "kept_sets", /^the format skyrl has no field for kept tokens: ask without kept_sets=train$/],
    ] as const) {
      const { status, body } = await call("GET", `/sets/${set}/${path}?payload=rows&${query}`);
      assert.deepEqual([status, body.error.param], [400, param], JSON.stringify(body));
      assert.match(body.error.message, message);
    }
});

test("the client in Python gives flat rows with their sets, and refuses another value before it asks", async (t) => {
  if (!(await need(t, "python"))) return;
  const { url, finish, call, set } = await cutSet(t);
  await call("POST", `/sets/${set}/groups`, JSON.stringify({ group_key: "g", task: serviceTask }));
  await finish();
  await call("POST", `/sets/${set}/drain`, {});
  const script = `
import json, sys
from alidade import Service, support
run = Service(sys.argv[1], "all").set("s", samples=1)
made = []
for line in [*run.groups(kept_sets="train"), *run.groups(kept_sets="train", whole=False)]:
    made += [[row["token_ids"], row["loss_mask"], support.sets(row, line.pictures)] for row in line.rows]
said = []
for ask in (lambda: next(run.groups(kept_sets="yes")), lambda: run.rollout("g", 0, "t", kept_sets=True)):
    try: ask()
    except ValueError as error: said.append(str(error))
left = [line.report["left_out"] for line in run.groups()]
print(json.dumps([made, said, left]))`;
  const [rows, said, left] = JSON.parse(await pythonClient(script, url)) as [[number[], number[], unknown[]][], string[], unknown[]];
  assert.equal(rows.length, 2);
  for (const [ids, mask, sets] of rows)
    assert.deepEqual(
      sets,
      ids.map((id, at) => (mask[at] === 1 ? [id, id + 1] : null)),
    );
  assert.deepEqual(said, ['kept_sets is \'yes\': give "train" or "leave_out"', 'kept_sets is True: give "train" or "leave_out"']);
  assert.deepEqual(left, [{ truncated_sampling: 2 }]);
});

/** verifiers, as far as the hook goes: a trace is its line. */
const verifiers = `
import asyncio, json, os, sys
from types import ModuleType, SimpleNamespace as Of
def stand_in(name, **members):
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:end]), ModuleType(parts[-1]))
    vars(sys.modules[name]).update(members)
class Base:
    async def finalize(self, task, episode): pass
class WireTrace:
    model_validate = staticmethod(lambda row: Of(ok=True, nodes=[Of(**node) for node in row["nodes"]]))
stand_in("verifiers.v1.envs.single_agent", SingleAgentEnv=Base)
stand_in("verifiers.v1.episode", EnvInfo=Of, Episode=lambda **_: Of(traces=[], errors=[]))
stand_in("verifiers.v1.trace", Error=Of, TraceTask=Of, WireTrace=WireTrace)
stand_in("verifiers.v1.types", SamplingMask=Of(from_sampling_mask=list))
from alidade import Service
from alidade.verifiers import AlidadeEnv
class Env(AlidadeEnv):
    config = Of(env_id="e")
    run_set = Service(sys.argv[1], "all").set("s", samples=1)
    def task_of(self, task): return json.loads(sys.argv[2])
    async def ask(self):
        return await self.run_episode(Of(data=None, key="k", hash="h"), Of(sampling=Of(temperature=1.0)))
`;

test("verifiers: traces have sampling_mask at trained tokens if kept_sets is train, and another value is refused before it asks", async (t) => {
  if (!(await need(t, "python"))) return;
  const { url, whenQueued, call, set } = await cutSet(t);
  const script = `${verifiers}
class Cut(Env): kept_sets = "train"
class Wrong(Env): kept_sets = "all"
async def main():
    try: await Wrong().ask()
    except ValueError as error: said = str(error)
    (trace,), (bare,) = (await Cut().ask()).traces, (await Env().ask()).traces
    nodes = [[node.token_ids, node.mask, node.sampling_mask] for node in trace.nodes if node.sampled]
    print(json.dumps([said, nodes, [any(node.mask) or hasattr(node, "sampling_mask") for node in bare.nodes]]))
asyncio.run(main())
sys.stdout.flush()
os._exit(0)`;
  const ran = pythonClient(script, url, JSON.stringify(serviceTask));
  await whenQueued();
  await whenQueued();
  const [said, nodes, bare] = JSON.parse(await ran) as [string, [number[], boolean[], number[][]][], boolean[]];
  assert.equal(said, 'kept_sets is \'all\': give "train" or "leave_out"');
  assert.equal(nodes.length, 2);
  for (const [ids, mask, sets] of nodes) {
    assert.ok(mask.every(Boolean));
    assert.deepEqual(
      sets,
      ids.map((id) => [id, id + 1]),
    );
  }
  assert.ok(bare.length > 0 && !bare.includes(true));
  assert.equal((await call("GET", `/sets/${set}`)).body.rollouts.completed, 2, "the refused episode sampled nothing");
});
