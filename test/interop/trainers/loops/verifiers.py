"""verifiers: its task set, its planned episodes and its environment by their ids, and the branches of its traces. It has no trainer:
the update is ours, over what prime-rl reads of a branch."""

import asyncio

import torch
from actor import SAMPLES, STEPS, Actor, say, worst
from alidade.live import fenced
from verifiers.v1 import WireTrace
from verifiers.v1.clients import ModelContext
from verifiers.v1.configs.client import EvalClientConfig
from verifiers.v1.envs.single_agent import SingleAgentEnvConfig
from verifiers.v1.utils.loaders import environment_class

PACKAGE = "verifiers"


def run(rig):
    env_class = environment_class("alidade_talks")
    env_class.run_set = rig.service.set(rig.key, samples=1)
    env, actor = env_class(SingleAgentEnvConfig.model_validate({"taskset": {"id": "alidade_talks"}})), Actor(rig)
    for step in range(STEPS):
        with fenced(rig.service, step):
            actor.load(f"step-{step}")
        groups = asyncio.run(episodes(env))
        traces = [[episode.traces[0] for episode in group] for group in groups]
        live = update(actor, traces)
        export = update(actor, exported_traces(rig, traces))
        rows = sum(len(trace.branches) for group in traces for trace in group)
        say(step=step + 1, **worst(*live[1:]), **actor.compared(live[0], export[0]), rows=rows, rollouts=sum(map(len, traces)))
        actor.step(live[0])


async def episodes(env):
    context = ModelContext(model="tiny", client=EvalClientConfig(base_url="http://127.0.0.1:1"))
    planned = [env.slots(task, SAMPLES) for task in env.taskset]
    return [await asyncio.gather(*(env.run_slot(slot, context) for slot in group)) for group in planned]


def exported_traces(rig, groups):
    """The same traces as an export writes them."""
    lines, run = {}, rig.service.set(rig.key, samples=1)
    for line in rig.service.stream(f"/sets/{run.id}/results", {"format": "verifiers", "payload": "rows", "limit": 1000}, 5):
        for row in line["rows"]:
            lines[row["id"]] = WireTrace.model_validate(row)
    return [[lines[trace.id] for trace in group] for group in groups]


def update(actor, groups):
    loss, new, old, masks = 0, [], [], []
    for group in groups:
        mean = sum(trace.reward for trace in group) / len(group)
        for trace in group:
            for branch in trace.branches:
                got = actor.logprobs(torch.tensor(branch.token_ids))
                sampled, mask = torch.tensor(branch.logprobs[1:]), torch.tensor(branch.sampled_mask[1:])
                loss = loss - (torch.exp(got - sampled) * mask).sum() * (trace.reward - mean)
                new.append(got), old.append(sampled), masks.append(mask)
    return loss, torch.cat(new), torch.cat(old), torch.cat(masks)
