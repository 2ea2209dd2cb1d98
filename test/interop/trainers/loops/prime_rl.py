"""prime-rl over verifiers: the episodes of its environment, its GRPO over a group's episodes, its samples, its packing for two workers
and its loss. Stubbed: what serves and moves the tensors; the model is one on the CPU."""

import asyncio
import sys
import types

import torch
from actor import STEPS, Actor, say, worst
from alidade.live import fenced
from verifiers.v1 import Episode
from verifiers.v1.envs.single_agent import SingleAgentEnvConfig
from verifiers.v1.trace import Branch
from verifiers.v1.utils.loaders import environment_class

from loops.verifiers import episodes, exported_traces

# Its type checks at run time, which the environment does not have.
sys.modules["beartype"] = types.SimpleNamespace(beartype=lambda function: function)
# Newer than the verifiers of the registry: it asks branches for images.
for name in ("multi_modal_data", "routed_experts"):
    if not hasattr(Branch, name):
        setattr(Branch, name, None)

from prime_rl.configs.trainer import DefaultLossConfig
from prime_rl.orchestrator.algo.grpo import GRPOAlgorithm
from prime_rl.orchestrator.trajectories import trace_to_samples
from prime_rl.trainer.batch import build_bin_cost, prepare_batch
from prime_rl.trainer.rl.loss import compute_loss, setup_rl_loss_fn

VERSION = "checkout"


def run(rig):
    env_class = environment_class("alidade_talks")
    env_class.run_set = rig.service.set(rig.key, samples=1)
    env, actor = env_class(SingleAgentEnvConfig.model_validate({"taskset": {"id": "alidade_talks"}})), Actor(rig)
    for step in range(STEPS):
        with fenced(rig.service, step):
            actor.load(f"step-{step}")
        groups = asyncio.run(episodes(env))
        traces = [[episode.traces[0] for episode in group] for group in groups]
        again = [
            [episode.model_copy(update={"traces": [trace]}) for episode, trace in zip(group, found)]
            for group, found in zip(groups, exported_traces(rig, traces))
        ]
        live, export = update(actor, groups), update(actor, again)
        say(step=step + 1, **worst(*live[1:4]), **actor.compared(live[0], export[0]), rows=live[4], rollouts=sum(map(len, traces)))
        actor.step(live[0])


def update(actor, groups: list[list[Episode]]):
    algorithm = object.__new__(GRPOAlgorithm)
    algorithm.length_penalty = None
    samples = []
    for group in groups:
        asyncio.run(algorithm.score_group(group))
        for episode in group:
            for sample in trace_to_samples(episode.traces[0], env_name="alidade"):
                sample.temperatures = [1.0] * len(sample.token_ids)
                samples.append(sample)
    grid = prepare_batch(samples, seq_len=4096, num_train_workers=2, bin_cost=build_bin_cost(None))
    new, old, masks, advantages = [], [], [], []
    for batch in (batch for worker in grid for batch in worker):
        start = 0
        for length in batch.sequence_lengths:
            ids = torch.tensor(batch.input_ids[start : start + length])
            if len(ids) > 1:
                # Its arrays stay in place: the entry of a token is that token's.
                new.append(torch.cat([torch.zeros(1), actor.logprobs(ids)]))
                for kept, values in ((old, batch.inference_logprobs), (masks, batch.loss_mask), (advantages, batch.advantages)):
                    kept.append(torch.tensor(values[start : start + length]))
            start += length
    tokens = int(sum(mask.sum() for mask in masks))
    loss, _ = compute_loss(
        trainer_logprobs=new,
        inference_logprobs=old,
        ref_logprobs=None,
        advantages=advantages,
        loss_mask=masks,
        rl_weights=None,
        ce_weights=None,
        ref_kl_weights=None,
        rl_loss_fn=setup_rl_loss_fn(DefaultLossConfig()),
        rl_scale=tokens,
        ce_scale=1,
        ref_kl_scale=1,
    )
    return loss, torch.cat(new), torch.cat(old), torch.cat(masks), len(samples)
