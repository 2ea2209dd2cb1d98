"""AReaL: its workflow executor with its data loader, its bound on staleness and its check of what a workflow returns; then its actor's
advantages, update and loss. Stubbed: the engine that trains, which is one model on the CPU, the one that would sample, and its loggers."""

import torch
from actor import SAMPLES, STEPS, TASKS, Actor, exported, say, worst
from alidade.areal import AlidadeWorkflow
from alidade.live import fenced
from alidade.loaders.areal import tensors
from stand_ins import stand_in_for

stand_in_for("swanlab", "trackio", "tensorboardX")

from areal.api.cli_args import InferenceEngineConfig, NormConfig, PPOActorConfig
from areal.infra.workflow_executor import WorkflowExecutor
from areal.trainer.ppo.actor import PPOActor
from areal.utils.data import concat_padded_tensors
from torchdata.stateful_dataloader import StatefulDataLoader

PACKAGE = "areal"


class Engine:
    """AReaL's TrainEngine, and the version provider of its rollout engine."""

    def __init__(self, rig):
        self.actor, self.version = Actor(rig), 0

    def get_version(self):
        return self.version

    def eval(self):
        pass

    def train(self):
        pass

    def new(self, batch):
        """Entry i is the logprob of token i + 1, as AReaL rolls it."""
        rows = []
        for ids, attention in zip(batch["input_ids"], batch["attention_mask"].bool()):
            got = self.actor.logprobs(ids[attention])
            rows.append(torch.cat([got, torch.zeros(len(ids) - len(got))]))
        return torch.stack(rows)

    def forward(self, input_, aggregate_fn):
        return self.new(input_)

    def train_batch(self, batch, loss_fn, loss_weight_fn):
        new = self.new(batch)
        loss = loss_fn(new, torch.zeros_like(new), batch)
        self.said, self.loss = worst(new, batch["logprobs"], batch["loss_mask"]), loss
        return {}


def run(rig):
    engine = Engine(rig)
    config = InferenceEngineConfig(consumer_batch_size=len(TASKS), max_concurrent_rollouts=len(TASKS), max_head_offpolicyness=0, check_trajectory_format=True)
    executor = WorkflowExecutor(config, engine)
    executor.initialize(train_data_parallel_size=1)
    loader = StatefulDataLoader([{"task_id": task} for task in TASKS], batch_size=len(TASKS), collate_fn=list)
    norm = NormConfig(mean_level="group", std_level="group", group_size=SAMPLES)
    settings = PPOActorConfig(experiment_name="x", trial_name="y", reward_norm=norm, adv_norm=None, use_decoupled_loss=False, kl_ctl=0.0, ppo_n_minibatches=1)
    actor = PPOActor(settings, engine)
    workflow = AlidadeWorkflow(rig.set())
    try:
        for step in range(STEPS):
            # As AReaL's own trainer does around each update.
            executor.pause()
            with fenced(rig.service, step):
                engine.actor.load(f"step-{step}")
                engine.version = step
            executor.resume()
            batch = executor.prepare_batch(loader, workflow)
            sampled = torch.cat([one["versions"][one["loss_mask"].bool()] for one in batch])
            assert set(sampled.tolist()) == {step}, sampled
            rows = sum(len(one["input_ids"]) for one in batch)
            export = loss_of(actor, [export_of(rig, step)])
            live = loss_of(actor, batch)
            say(step=step + 1, **engine.said, **engine.actor.compared(live, export), rows=rows, rollouts=rows)
            engine.actor.step(live)
    finally:
        executor.destroy()


def loss_of(actor, batch):
    """Its update as far as the optimizer's step, which waits for the comparison."""
    actor.ppo_update(actor.compute_advantages(batch))
    return actor.engine.loss


def export_of(rig, step):
    return concat_padded_tensors([tensors(row, True) for row in exported(rig, [f"{step}/{task}/0" for task in TASKS], "areal")])
