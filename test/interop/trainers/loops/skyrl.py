"""SkyRL: `RayPPOTrainer.train()` with its data set, its checks, its advantages and its loss, step-wise. Stubbed: the dispatch to its
GPU workers, which is one model on the CPU here."""

import asyncio
import json

import torch
from actor import SAMPLES, STEPS, TASKS, Actor, exported, say, worst
from alidade.loaders.skyrl import generator_output
from alidade.skyrl import AlidadeGenerator, fence
from skyrl.backends.skyrl_train.utils.ppo_utils import PolicyLossRegistry
from skyrl.train.config import SkyRLTrainConfig
from skyrl.train.dataset.dataset import PromptDataset
from skyrl.train.trainer import RayPPOTrainer

PACKAGE = "skyrl"


class Output:
    def __init__(self, loss_fn_outputs=(), metrics=None):
        self.loss_fn_outputs, self.metrics = list(loss_fn_outputs), metrics or {}


class Dispatch:
    """WorkerDispatch with one worker."""

    def __init__(self, rig, config):
        self.rig, self.config, self.actor, self.trainer, self.loss = rig, config, Actor(rig), None, None

    def get_lcm_dp_size(self):
        return 1

    def init_weight_sync_state(self, client):
        pass

    def empty_cache(self, model=None):
        pass

    def get_timing_metrics(self):
        return {}

    def finalize_pending_saves(self, model):
        pass

    async def save_weights_for_sampler(self):
        self.actor.load(f"step-{self.trainer.global_step}")

    def new(self, batch):
        """Of each row the logprobs of its response, which stands at the end."""
        width, found = batch["response_mask"].shape[1] if "response_mask" in batch.keys() else batch.metadata["response_length"], []
        for ids, attention in zip(batch["sequences"], batch["attention_mask"].bool()):
            got = torch.zeros(len(ids) - 1)
            at = torch.nonzero(attention)[1:, 0] - 1
            found.append(got.index_put((at,), self.actor.logprobs(ids[attention]))[-width:])
        return torch.stack(found)

    def forward_from_staged(self, model, batch):
        with torch.no_grad():
            return Output({"logprobs": row.tolist()} for row in self.new(batch))

    def stage_data(self, model, batch, boundaries):
        return [batch[start:end] for start, end in boundaries]

    def forward_backward_from_staged(self, model, batch):
        new = self.new(batch)
        self.loss = self.loss_of(new, batch)
        found = {**worst(new, batch["rollout_logprobs"], batch["loss_mask"] > 0), **self.actor.compared(self.loss, self.loss_of_export(self.ids))}
        say(step=self.trainer.global_step, **found, rows=len(self.ids), rollouts=len({one.to_string() for one in self.ids}))
        return Output(metrics={"policy_loss": self.loss.item()})

    def loss_of(self, new, batch):
        return PolicyLossRegistry.get("regular")(
            log_probs=new,
            old_log_probs=batch["action_log_probs"],
            advantages=batch["advantages"],
            config=self.config.trainer.algorithm,
            loss_mask=batch["loss_mask"],
            rollout_logprobs=batch["rollout_logprobs"],
        )[0]

    def loss_of_export(self, ids):
        """Of the rows that an export has of these rollouts, through the trainer's own steps."""
        groups = list(dict.fromkeys(one.instance_id for one in ids))
        file = self.rig.folder / "skyrl-rows.jsonl"
        rows = exported(self.rig, [f"{self.trainer.global_step}/{group}" for group in groups], "skyrl")
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        output = generator_output(file, step_wise=True)
        uids = [one.instance_id for one in output["trajectory_ids"]]
        batch = self.trainer.convert_to_training_input(*self.trainer.postprocess_generator_output(output, uids))
        batch = self.trainer.compute_advantages_and_returns(self.trainer.fwd_logprobs_values_reward(batch))
        batch = self.trainer._normalize_advantages(batch, batch.metadata["policy_mini_batch_boundaries"], batch.metadata.get("policy_prompt_boundaries"))
        return self.loss_of(self.new(batch), batch)

    def optim_step(self, model):
        self.actor.step(self.loss)


class Tracker:
    def log(self, *args, **kwargs):
        pass

    def finish(self):
        pass


class Watched(AlidadeGenerator):
    async def generate(self, input_batch):
        output = await super().generate(input_batch)
        self.dispatch.ids = output["trajectory_ids"]
        return output


def run(rig):
    data = rig.folder / "skyrl.jsonl"
    data.write_text("".join(json.dumps({"prompt": [{"role": "user", "content": task}], "env_class": None, "task_id": task}) + "\n" for task in TASKS))
    config = SkyRLTrainConfig.from_cli_overrides([
        f"trainer.train_batch_size={len(TASKS)}", f"trainer.policy_mini_batch_size={len(TASKS)}", f"trainer.epochs={STEPS}",
        "trainer.eval_interval=-1", "trainer.eval_before_train=false", "trainer.ckpt_interval=-1", "trainer.hf_save_interval=-1", "trainer.resume_mode=none",
        "trainer.placement.colocate_all=false", "trainer.print_example_interval=-1", "trainer.algorithm.use_kl_loss=false",
        f"generator.n_samples_per_prompt={SAMPLES}", "generator.step_wise_trajectories=true", "generator.inference_engine.enable_ray_prometheus_stats=false", "trainer.enable_ray_gpu_monitor=false", "data.dataloader.num_workers=0", "data.dataloader.persistent_workers=false",
    ])
    dispatch = Dispatch(rig, config)
    tokenizer = dispatch.actor.tokenizer
    dataset = PromptDataset(str(data), tokenizer, 10_000, num_workers=1)
    generator = Watched(rig.set(), step_wise=True)
    generator.dispatch = dispatch
    trainer = RayPPOTrainer(config, Tracker(), tokenizer, dataset, None, generator)
    trainer.dispatch, dispatch.trainer = dispatch, trainer
    fence(trainer, rig.service)
    asyncio.run(trainer.train())
