/** What the live hooks ask the service for and wait for, without any trainer; with the trainers' own loops: `test/interop/trainers/`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ServiceClient } from "../../index.ts";
import { putPacked } from "../../service/blobs/index.ts";
import { until } from "../fakes/machine/until.ts";
import { pythonClient } from "../fakes/processes/python-client.ts";
import { serviceAt, serviceTask } from "../fakes/proxies/service-at.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { goldenTrajectory } from "../fakes/records/golden-session.ts";
import { need } from "../needs.ts";

/** A trainer's module that has no more than what its hook imports, and a set that notes the keys that it is asked for. */
const standIns = `
import asyncio, json, os, sys, threading
from types import ModuleType, SimpleNamespace as Of

def stand_in(name, **members):
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:end]), ModuleType(parts[-1]))
    vars(sys.modules[name]).update(members)

class Notes:
    id, key, spec = "s", "notes", {"samples": 2}
    def __init__(self):
        self.asked, self.service = [], self
    def rollout(self, key, index, task, wait):
        self.asked.append(f"{key} {index}")
        return self.asked[-1]
    def request(self, *_, **__):
        return {"result": {"rollout_id": "r", "reward": None, "error": None}, "rows": []}
    def groups(self, **_):
        threading.Event().wait()
`;

async function printed(script: string): Promise<unknown> {
  return JSON.parse(await pythonClient(`${standIns}${script}\nsys.stdout.flush()\nos._exit(0)`)) as unknown;
}

test("two requests for one rollout both get its line, also if one of them finds it over", async (t) => {
  if (!(await need(t, "python"))) return;
  const script = `
from alidade.live import Live
class Slow(Notes):
    looks, asked_once, may_be_read = 0, threading.Event(), threading.Event()
    def request(self, *_, **__):
        self.looks += 1
        if self.looks > 1: return super().request()
        self.asked_once.set()
        return {"result": None}
    def groups(self, **_):
        self.may_be_read.wait()
        yield Of(cursor="c", results=[{"rollout_id": "key 0"}])
        threading.Event().wait()
async def main():
    run = Slow()
    live = Live(run)
    first = asyncio.create_task(live.rollout("key", 0, "task"))
    await asyncio.to_thread(run.asked_once.wait)
    second = await live.rollout("key", 0, "task")
    run.may_be_read.set()
    print(json.dumps([second["result"], (await asyncio.wait_for(first, 60))["result"]]))
asyncio.run(main())`;
  const over = { rollout_id: "r", reward: null, error: null };
  assert.deepEqual(await printed(script), [over, over]);
});

test("whole groups: after a restart the rows of a new one are read, and those of none before it", async (t) => {
  if (!(await need(t, "python"))) return;
  const { ledger, lease, blobs, url } = await serviceAt(t);
  await using client = ServiceClient.at(url, "all");
  const run = await client.set("s", { samples: 1 });
  await run.submit(["a", "b"].map((group_key) => ({ group_key, task: serviceTask })));
  const finishAll = async (): Promise<void> => {
    for (const claim of await ledger.claim(lease, 9)) {
      const payload = await putPacked(blobs, `${claim.set_id}/${claim.rollout_id}/1`, goldenTrajectory({ reward: 1 }));
      await ledger.finish(claim, attemptResult({ payload }));
    }
  };
  await finishAll();
  const script = `
from alidade import Service
from alidade.live import LiveGroups
class Counted(Service):
    read = []
    def stream(self, *asked):
        for line in super().stream(*asked):
            self.read.append([line["group_key"], "rows" in line])
            yield line
run = Counted(${JSON.stringify(url)}, "all").set("s", samples=1)
async def main():
    line = await LiveGroups(run, format="nemo-gym").rollout("c", ${JSON.stringify(serviceTask)})
    print(json.dumps([line["result"]["group_key"], line["report"]["trajectories"], Counted.read]))
asyncio.run(main())`;
  const line = printed(script);
  await until(async () => (await run.state()).rollouts.queued > 0);
  await finishAll();
  const read = [..."abc"].map((key) => [key, false]);
  assert.deepEqual(await line, ["c", 1, [...read, ["c", true]]]);
});

test("skyrl: a prompt that is asked for again in its step gets rollouts of its own, and after a restart the same ones again", async (t) => {
  if (!(await need(t, "python"))) return;
  const script = `
stand_in("PIL", Image=None)
stand_in("skyrl.train.generators.base", GeneratorInterface=object, GeneratorOutput=dict)
from alidade.skyrl import AlidadeGenerator
batch = {
    "batch_metadata": Of(global_step=3, training_phase="train"),
    "trajectory_ids": [Of(instance_id="a", repetition_id=index) for index in range(2)],
    "env_extras": [{"task_id": "task"}] * 2,
}
async def life(times):
    run = Notes()
    generator = AlidadeGenerator(run, step_wise=True)
    for _ in range(times): await generator.generate(batch)
    return run.asked
async def main():
    print(json.dumps([sorted(await life(2)), sorted(await life(1))]))
asyncio.run(main())`;
  const first = ["3/a 0", "3/a 1"];
  assert.deepEqual(await printed(script), [[...first, "3/a/1 0", "3/a/1 1"], first]);
});

test("verifiers: a temperature that rows are not sampled at is refused, before anything is asked for", async (t) => {
  if (!(await need(t, "python"))) return;
  const script = `
stand_in("verifiers.v1.envs.single_agent", SingleAgentEnv=object)
stand_in("verifiers.v1.episode", EnvInfo=Of, Episode=lambda **_: Of(traces=[], errors=[]))
stand_in("verifiers.v1.trace", Error=Of, TraceTask=Of, WireTrace=Of)
from alidade.verifiers import AlidadeEnv
class Env(AlidadeEnv):
    config, run_set = Of(env_id="e"), Notes()
Env.run_set.spec = {"samples": 1}
async def of(temperature):
    task = Of(data=Of(id="task"), key="k", hash="h")
    try: await Env().run_episode(task, Of(sampling=Of(temperature=temperature)))
    except ValueError as error: return str(error)
async def main():
    said = [await of(temperature) for temperature in (0.7, 1.0, None)]
    print(json.dumps([said, len(Env.run_set.asked)]))
asyncio.run(main())`;
  const [[other, ...others], asked] = (await printed(script)) as [(string | null)[], number];
  assert.match(other ?? "", /temperature is 0.7: rows are sampled at 1.0/);
  assert.deepEqual([others, asked], [[null, null], 2]);
});

test("skyrl, slime and verl: other temperatures are refused before anything is asked for; the first two refuse evaluation, too", async (t) => {
  if (!(await need(t, "python"))) return;
  const script = `
stand_in("PIL", Image=None)
stand_in("torch")
stand_in("omegaconf", OmegaConf=None)
stand_in("skyrl.train.generators.base", GeneratorInterface=object, GeneratorOutput=dict)
stand_in("verl.experimental.agent_loop.agent_loop", AgentLoopBase=object, AgentLoopMetrics=Of, AgentLoopOutput=Of)
from alidade import skyrl, slime, verl
run = Notes()
loop = verl.AlidadeLoop.__new__(verl.AlidadeLoop)
loop._live = skyrl.Live(run, format="verl")
options = Of(partial_rollout=False, dynamic_sampling_filter_path="f", alidade={})
def generate(phase, **sampling):
    batch = {"batch_metadata": Of(global_step=3, training_phase=phase), "trajectory_ids": [], "sampling_params": sampling}
    return skyrl.AlidadeGenerator(run, step_wise=True).generate(batch)
async def main():
    said = []
    for asked in (
        generate("train", temperature=0.7), slime.generate(options, None, {"temperature": 0.7}), loop.run({"temperature": 0}, session_id=0),
        generate("eval"), slime.generate(options, None, {}, evaluation=True),
    ):
        try: await asked
        except ValueError as error: said.append(str(error))
    print(json.dumps([said, run.asked]))
asyncio.run(main())`;
  const [said, asked] = (await printed(script)) as [string[], string[]];
  const refusals = [
    /^temperature is 0.7:/,
    /^temperature is 0.7:/,
    /^temperature is 0:/,
    /^training_phase is eval:/,
    /^eval_interval is set:/,
  ];
  assert.equal(said.length, refusals.length);
  for (const [at, refusal] of refusals.entries()) assert.match(said[at] ?? "", refusal);
  assert.deepEqual(asked, []);
});

const areal = `
stand_in("areal.api.workflow_api", RolloutWorkflow=object)
stand_in("areal.utils.data", concat_padded_tensors=list)
context = Of(is_eval=False)
stand_in("areal.infra", workflow_context=Of(get=lambda: context, stat_scope=lambda: "rollout"))
counted = []
stand_in("areal.utils", stats_tracker=Of(get=lambda scope: Of(scalar=lambda **counts: counted.append([scope, *counts.values()]))))
from alidade.areal import AlidadeWorkflow
`;

test("areal: an evaluation of the trainer is refused before it asks the training's set", async (t) => {
  if (!(await need(t, "python"))) return;
  const script = `${areal}
async def main():
    context.is_eval, run = True, Notes()
    try: said = await AlidadeWorkflow(run).arun_episode(Of(get_version=lambda: 7), {"task_id": "task"})
    except ValueError as error: said = str(error)
    print(json.dumps([said, run.asked]))
asyncio.run(main())`;
  const [said, asked] = (await printed(script)) as [string, string[]];
  assert.match(said, /leave out its evaluation, and make a set with purpose="eval"/);
  assert.deepEqual(asked, []);
});

test("areal: processes of one trainer that get the same task ask for rollouts of their own", async (t) => {
  if (!(await need(t, "python"))) return;
  const script = `${areal}
async def keys_of(rank):
    os.environ.pop("RANK", None) if rank is None else os.environ.update(RANK=rank)
    run = Notes()
    await AlidadeWorkflow(run).arun_episode(Of(get_version=lambda: 7), {"task_id": "task"})
    return sorted({asked.split()[0] for asked in run.asked})
async def main():
    print(json.dumps([key for rank in (None, "0", "1", "2") for key in await keys_of(rank)]))
asyncio.run(main())`;
  assert.deepEqual(await printed(script), ["7/task/0", "7/task/0", "7/task/rank-1/0", "7/task/rank-2/0"]);
});

test("areal: why groups are rejected is in its own statistics for each, and in the log once", async (t) => {
  if (!(await need(t, "python"))) return;
  const script = `${areal}
import logging
said = []
logging.getLogger("alidade").addHandler(Of(level=0, handle=lambda record: said.append(record.getMessage())))
class Hot(Notes):
    reward, error, report = 0.5, None, {"left_out": {"other_temperature": 2}}
    def request(self, *_, **__):
        return {"result": {"rollout_id": "r", "reward": self.reward, "error": self.error}, "rows": [], "report": self.report}
async def main():
    run = Hot()
    workflow = AlidadeWorkflow(run)
    ask = lambda: workflow.arun_episode(Of(get_version=lambda: 7), {"task_id": "task"})
    got = [await ask(), await ask()]
    run.reward, run.error = None, {"code": "grader_failed"}
    got.append(await ask())
    print(json.dumps([got, counted, said]))
asyncio.run(main())`;
  const [got, counted, said] = (await printed(script)) as [null[], unknown[][], string[]];
  assert.deepEqual(got, [null, null, null]);
  const [untrained, unrewarded] = [
    ["rollout", false, true],
    ["rollout", true, false],
  ];
  assert.deepEqual(counted, [untrained, untrained, unrewarded]);
  assert.deepEqual(
    said.map((text) => text.split(",")[0]),
    ["r: none of its tokens can be trained (other_temperature; docs/reasons.md)", "r: it has no reward (grader_failed)"],
  );
});

const verl = `
stand_in("torch")
stand_in("omegaconf", OmegaConf=None)
stand_in("verl.experimental.agent_loop.agent_loop", AgentLoopBase=object, AgentLoopMetrics=Of, AgentLoopOutput=Of)
from alidade.verl import fence, output_of
`;

test("verl: an update without a step has the name of the last one, and both managers of separate_async are fenced", async (t) => {
  if (!(await need(t, "python"))) return;
  const script = `${verl}
from contextlib import contextmanager
done = []
class Gate:
    @contextmanager
    def weights(self, version, step):
        done.append(f"shut {version} {step}")
        yield
        done.append("open")
def manager(name):
    return Of(update_weights=lambda global_steps=None: done.append(f"{name} {global_steps}"))
trainer = Of(checkpoint_manager=manager("both"), standalone_checkpoint_manager=manager("samples"))
fence(trainer, Gate())
try: trainer.checkpoint_manager.update_weights()
except ValueError as error: said = str(error)
trainer.standalone_checkpoint_manager.update_weights(7)
trainer.checkpoint_manager.update_weights()
one = manager("one")
fence(one, Gate())
one.update_weights(8)
print(json.dumps([said, done]))`;
  const [said, done] = (await printed(script)) as [string, string[]];
  assert.match(said, /call fence before trainer.fit/);
  const loads = (step: number, load: string) => [`shut step-${step} ${step}`, load, "open"];
  assert.deepEqual(done, [...loads(7, "samples 7"), ...loads(7, "both None"), ...loads(8, "one 8")]);
});

test("verl: a component that was not measured is a number for its filter of groups, and equal to none", async (t) => {
  if (!(await need(t, "python"))) return;
  const script = `${verl}
row = {name: [] for name in ("key", "prompts", "responses", "response_mask", "rollout_log_probs", "num_turns", "rollout_id")}
row |= {"min_global_steps": 1, "max_global_steps": 1, "reward_score": 1, "reward_extra_info": {"tests": 0.5, "style": None}}
info = output_of(row).extra_fields["reward_extra_info"]
style = float(info["style"])
print(json.dumps([info["tests"], style == style]))`;
  assert.deepEqual(await printed(script), [0.5, false]);
});
