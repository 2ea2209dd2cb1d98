"""verl: its synchronous V1 trainer (`fit`) with its data set, its agent loop worker in Ray, its TransferQueue, its replay buffer,
advantages and loss. Stubbed: the group of GPU workers, which is one model on the CPU here, and the replicas that it would sample with."""

import json
import time
from types import SimpleNamespace

import ray
import torch
import transfer_queue as tq
from actor import Actor, exported, groups, say, worst
from alidade.loaders.verl import advantages, data_proto
from alidade.verl import fence
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from verl.checkpoint_engine.base import CheckpointEngineManager
from verl.trainer.ppo.core_algos import get_policy_loss_fn
from verl.trainer.ppo.v1 import AgentLoopManagerTQ
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils.config import omega_conf_to_dataclass
from verl.utils.tensordict_utils import assign_non_tensor
from verl.workers.utils.losses import ppo_loss

PACKAGE = "verl"
NAMES = ["input_ids", "prompts", "responses", "response_mask", "old_log_probs", "advantages", "rollout_log_probs", "uid"]
PHASES = ("update", "sample", "train")


class Group:
    """The actor's worker group: one rank."""

    _dispatch_info = {"actor": [0]}
    world_size = 1

    def __init__(self, rig, config):
        self.rig, self.config, self.actor, self.steps, self.means, self.began = rig, config, Actor(rig), 0, [], {}
        if rig.learning:
            chosen = config.optim
            self.actor.optimizer = torch.optim.AdamW(self.actor.model.parameters(), chosen.lr, chosen.betas, weight_decay=chosen.weight_decay)

    def update_weights(self, global_steps, mode):
        self.begin("update")
        self.actor.load(f"step-{global_steps}")
        self.begin("sample")
        return ray.put({})

    def begin(self, phase):
        self.began[phase] = time.monotonic()

    def compute_log_prob(self, batch):
        self.begin("train")
        data = self.get(batch, ["input_ids", "responses"])
        with torch.no_grad():
            nested = torch.nested.as_nested_tensor(self.logprobs(data), layout=torch.jagged)
        fields = {"log_probs": nested, "entropy": nested}
        tq.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=_tensordict(fields, len(batch)))
        return batch

    compute_ref_log_prob = compute_log_prob

    def logprobs(self, data):
        """As verl's engines say them: an entry for each token of a row, about the next one."""
        rows = zip(data["input_ids"].unbind(), data["responses"].unbind())
        return [torch.cat([self.actor.logprobs(row, len(response)), torch.zeros(1)]) for row, response in rows]

    def update_actor(self, batch):
        if self.rig.learning:
            return self.learn(batch)
        data = self.get(batch, NAMES)
        flat = torch.cat(self.logprobs(data))
        assign_non_tensor(data, dp_size=1, batch_num_tokens=int(data["response_mask"].values().sum()), global_batch_size=len(batch))
        loss, metrics = ppo_loss(self.config, {"log_probs": flat}, data)
        mask = data["response_mask"].values()
        self.steps += 1
        real = [key for key, tag in zip(batch.keys, batch.tags) if not tag.get("is_padding")]
        say(
            step=self.steps,
            **worst(_responses(flat, data), data["rollout_log_probs"].values(), mask),
            **self.actor.compared(loss, self.loss_of_export(list(dict.fromkeys(key.split("_")[0] for key in real)))),
            rows=len(real),
            rollouts=len({key.rsplit("_", 1)[0] for key in real}),
        )
        self.actor.step(loss)
        return {"metrics": {"mfu": 0.0, "pg_loss": loss.item()}}

    def learn(self, batch):
        """verl's epochs over the batch, with its loss and the optimizer of its configuration."""
        data = self.get(batch, [*NAMES, *(["ref_log_prob"] if self.config.use_kl_loss else [])])
        tokens = int(data["response_mask"].values().sum())
        assign_non_tensor(data, dp_size=1, batch_num_tokens=tokens, global_batch_size=len(batch))
        for epoch in range(batch.extra_info["epochs"]):
            new = self.logprobs(data)
            loss, _ = ppo_loss(self.config, {"log_probs": torch.cat(new)}, data)
            if epoch == 0:
                exact = worst(_responses(torch.cat(new), data), data["rollout_log_probs"].values(), data["response_mask"].values())
            self.actor.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.actor.model.parameters(), self.config.optim.clip_grad)
            self.actor.optimizer.step()
        keys = list(dict.fromkeys(key.split("_")[0] for key, tag in zip(batch.keys, batch.tags) if not tag.get("is_padding")))
        found = [[one for one in group["results"] if one["reward"] is not None] for group in groups(self.rig, keys, "verl")]
        measured = [one["reward"] for group in found for one in group]
        self.means.append(sum(measured) / len(measured))
        lags = {one["lag"] for group in found for one in group}
        say(
            step=self.steps,
            reward=self.means[-1],
            rewards={group[0]["task_id"]: sum(one["reward"] for one in group) / len(group) for group in found},
            rollouts=len(measured),
            worst_ratio=exact["worst"],
            lag=None if None in lags else max(lags),
            trained_tokens=tokens,
            seconds={phase: round(end - self.began[phase], 1) for phase, end in zip(PHASES, [*(self.began[phase] for phase in PHASES[1:]), time.monotonic()])},
        )
        self.steps += 1
        return {"metrics": {"mfu": 0.0, "pg_loss": loss.item()}}

    def loss_of_export(self, keys):
        """verl's loss of the rows that an export has of the same rollouts."""
        rows = exported(self.rig, keys, "verl")
        sizes = [max(len(row[name]) for row in rows) for name in ("prompts", "responses")]
        batch = data_proto(rows, *sizes, pad_token_id=0)
        advantages(batch)
        width, new = batch.batch["responses"].shape[1], []
        for row in rows:
            got = self.actor.logprobs(torch.tensor(row["prompts"] + row["responses"]))[len(row["prompts"]) - 1 :]
            new.append(torch.cat([got, torch.zeros(width - len(got))]))
        new = torch.stack(new)
        self.config.global_batch_info.update(dp_size=1, batch_num_tokens=int(batch.batch["response_mask"].sum()), global_batch_size=len(rows))
        return get_policy_loss_fn("vanilla")(
            old_log_prob=new.detach(),
            log_prob=new,
            advantages=batch.batch["advantages"],
            response_mask=batch.batch["response_mask"].bool(),
            loss_agg_mode=self.config.loss_agg_mode,
            config=self.config,
        )[0]

    @staticmethod
    def get(batch, names):
        return tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=names)


def _tensordict(fields, size):
    from tensordict import TensorDict

    return TensorDict(fields, batch_size=size)


def _responses(flat, data):
    """Of each row what its response has; the entry before a token is that token's."""
    found, end = [], 0
    for whole, response in zip(data["input_ids"].unbind(), data["responses"].unbind()):
        end += len(whole)
        found.append(flat[end - len(response) - 1 : end - 1])
    return torch.cat(found)


class OnCpu(PPOTrainerSync):
    def _setup(self):
        self._init_tokenizer()
        self._init_dataloader()
        self._init_dump_executor()
        actor = omega_conf_to_dataclass(self.config.actor_rollout_ref.actor)
        self.actor_rollout_wg = Group(self.rig, actor)
        if self.use_reference_policy:
            self.ref_in_actor, self.ref_policy_wg = False, Group(self.rig, actor)
        self.reward_loop_manager = SimpleNamespace(reward_loop_worker_handles=[])
        engine = omega_conf_to_dataclass(self.config.actor_rollout_ref.rollout.checkpoint_engine)
        engine.backend = "naive"
        self.checkpoint_manager = CheckpointEngineManager(config=engine, actor_wg=self.actor_rollout_wg, replicas=[])
        self._load_checkpoint()

    def on_step_end(self):
        super().on_step_end()
        learning, means = self.rig.learning, self.actor_rollout_wg.means
        if learning and len(means) > 1 and min(means[-2:]) >= learning["enough"]:
            self.total_training_steps = self.global_steps

    def _start_profiling(self):
        pass

    def _stop_profiling(self):
        pass

    def _compute_metrics(self, *args, **kwargs):
        pass


def run(rig):
    rows = [{"prompt": [{"role": "user", "content": task}], "data_source": "alidade", "reward_model": {}, "extra_info": {"index": at, "task_id": task}} for at, task in enumerate(rig.tasks)]
    data = rig.folder / "verl.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    loop = rig.folder / "agent_loop.yaml"
    loop.write_text(json.dumps([{"name": "alidade", "_target_": "alidade.verl.AlidadeLoop", "set": rig.key, "samples": rig.samples, "service": rig.address}]))
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("ppo_trainer", [
            f"data.train_files={data}", f"data.val_files={data}", f"data.train_batch_size={len(rig.tasks)}", "data.dataloader_num_workers=0",
            "data.filter_overlong_prompts=False",
            f"actor_rollout_ref.model.path={rig.policy}", "actor_rollout_ref.rollout.name=vllm", f"actor_rollout_ref.rollout.n={rig.samples}",
            "actor_rollout_ref.rollout.calculate_log_probs=True", "actor_rollout_ref.rollout.agent.num_workers=1",
            f"actor_rollout_ref.rollout.agent.agent_loop_config_path={loop}", "actor_rollout_ref.rollout.agent.default_agent_loop=alidade",
            f"actor_rollout_ref.actor.ppo_mini_batch_size={len(rig.tasks)}", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1",
            "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1",
            "algorithm.adv_estimator=grpo", "trainer.logger=[]", "trainer.val_before_train=False", "trainer.test_freq=-1", "trainer.save_freq=-1",
            f"trainer.total_training_steps={rig.steps}", f"trainer.total_epochs={rig.steps}", "trainer.resume_mode=disable", "trainer.n_gpus_per_node=1",
            "trainer.use_v1=True", "transfer_queue.backend.SimpleStorage.num_data_storage_units=1", "trainer.v1.trainer_mode=sync",
            *(rig.learning["verl"] if rig.learning else []),
        ])
    OmegaConf.resolve(config)
    ray.init(num_cpus=16, include_dashboard=False, object_store_memory=100 * 2**20, logging_level="ERROR")
    config.transfer_queue.enable = True
    tq.init(config.transfer_queue)
    OnCpu.rig = rig
    try:
        trainer = OnCpu(config)
        trainer._setup()
        fence(trainer, rig.service)
        trainer.on_init_end()
        trainer.fit(AgentLoopManagerTQ.create(config=config, llm_client=None, reward_loop_worker_handles=None))
    finally:
        tq.close()
        ray.shutdown()
