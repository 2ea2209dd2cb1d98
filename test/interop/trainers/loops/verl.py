"""verl: its synchronous V1 trainer (`fit`) with its data set, its agent loop worker in Ray, its TransferQueue, its replay buffer,
advantages and loss. Stubbed: the group of GPU workers, which is one model on the CPU here, and the replicas that it would sample with."""

import json
from types import SimpleNamespace

import ray
import torch
import transfer_queue as tq
from actor import SAMPLES, STEPS, TASKS, Actor, exported, say, worst
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


class Group:
    """The actor's worker group: one rank."""

    _dispatch_info = {"actor": [0]}
    world_size = 1

    def __init__(self, rig, config):
        self.rig, self.config, self.actor, self.steps = rig, config, Actor(rig), 0

    def update_weights(self, global_steps, mode):
        self.actor.load(f"step-{global_steps}")
        return ray.put({})

    def compute_log_prob(self, batch):
        ids = self.get(batch, ["input_ids"])["input_ids"].unbind()
        with torch.no_grad():
            found = [torch.cat([self.actor.logprobs(row), torch.zeros(1)]) for row in ids]
        nested = torch.nested.as_nested_tensor(found, layout=torch.jagged)
        fields = {"log_probs": nested, "entropy": nested}
        tq.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=_tensordict(fields, len(batch)))
        return batch

    def update_actor(self, batch):
        names = ["input_ids", "prompts", "responses", "response_mask", "old_log_probs", "advantages", "rollout_log_probs", "uid"]
        data = self.get(batch, names)
        flat = torch.cat([torch.cat([self.actor.logprobs(row), torch.zeros(1)]) for row in data["input_ids"].unbind()])
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
        self.actor_rollout_wg = Group(self.rig, omega_conf_to_dataclass(self.config.actor_rollout_ref.actor))
        self.reward_loop_manager = SimpleNamespace(reward_loop_worker_handles=[])
        engine = omega_conf_to_dataclass(self.config.actor_rollout_ref.rollout.checkpoint_engine)
        engine.backend = "naive"
        self.checkpoint_manager = CheckpointEngineManager(config=engine, actor_wg=self.actor_rollout_wg, replicas=[])
        self._load_checkpoint()

    def _start_profiling(self):
        pass

    def _stop_profiling(self):
        pass

    def _compute_metrics(self, *args, **kwargs):
        pass


def run(rig):
    rows = [{"prompt": [{"role": "user", "content": task}], "data_source": "alidade", "reward_model": {}, "extra_info": {"index": at, "task_id": task}} for at, task in enumerate(TASKS)]
    data = rig.folder / "verl.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    loop = rig.folder / "agent_loop.yaml"
    loop.write_text(json.dumps([{"name": "alidade", "_target_": "alidade.verl.AlidadeLoop", "set": rig.key, "samples": SAMPLES, "service": rig.address}]))
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("ppo_trainer", [
            f"data.train_files={data}", f"data.val_files={data}", f"data.train_batch_size={len(TASKS)}", "data.dataloader_num_workers=0",
            "data.filter_overlong_prompts=False",
            f"actor_rollout_ref.model.path={rig.policy}", "actor_rollout_ref.rollout.name=vllm", f"actor_rollout_ref.rollout.n={SAMPLES}",
            "actor_rollout_ref.rollout.calculate_log_probs=True", "actor_rollout_ref.rollout.agent.num_workers=1",
            f"actor_rollout_ref.rollout.agent.agent_loop_config_path={loop}", "actor_rollout_ref.rollout.agent.default_agent_loop=alidade",
            f"actor_rollout_ref.actor.ppo_mini_batch_size={len(TASKS)}", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1",
            "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1",
            "algorithm.adv_estimator=grpo", "trainer.logger=[]", "trainer.val_before_train=False", "trainer.test_freq=-1", "trainer.save_freq=-1",
            f"trainer.total_training_steps={STEPS}", f"trainer.total_epochs={STEPS}", "trainer.resume_mode=disable", "trainer.n_gpus_per_node=1",
            "trainer.use_v1=True", "transfer_queue.backend.SimpleStorage.num_data_storage_units=1", "trainer.v1.trainer_mode=sync",
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
