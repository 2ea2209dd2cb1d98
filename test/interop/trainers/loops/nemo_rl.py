"""NeMo RL over NeMo Gym: its environment's `run_rollouts` over the agent server, its rollout (message logs, order, masks), its groups by
equal first prompts, GRPO advantages and clipped loss. Stubbed: the Ray actor of the environment, the servers of Gym but for ours, the
workers of policy and generation; the model is one on the CPU."""

import asyncio
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import torch
from actor import SAMPLES, STEPS, TASKS, Actor, say, worst
from alidade.live import fenced
from alidade.nemo_gym import AlidadeAgentConfig
from stand_ins import stand_in_for

from loops.nemo_gym import exported, serve

# Loggers, and readers of sound.
stand_in_for("mlflow", "swanlab", "matplotlib", "soundfile", "scipy", "absl")
sys.modules["torch.utils.tensorboard"] = SimpleNamespace(SummaryWriter=None)

from nemo_gym.rollout_collection import RolloutCollectionHelper
from nemo_gym.server_utils import BaseServerConfig
from nemo_rl.algorithms.advantage_estimator import AdvEstimatorConfig, GRPOAdvantageEstimator
from nemo_rl.algorithms.grpo import _apply_mask_sample_filter, add_grpo_token_loss_masks_and_generation_logprobs, extract_initial_prompt_messages
from nemo_rl.algorithms.loss import ClippedPGLossConfig, ClippedPGLossFn
from nemo_rl.data.llm_message_utils import batched_message_log_to_flat_message
from nemo_rl.distributed.batched_data_dict import BatchedDataDict
from nemo_rl.environments.nemo_gym import NemoGym
from nemo_rl.experience.rollouts import run_nemo_gym_rollout_sync

VERSION = "checkout"
# As its configuration has it: what Gym's path refuses is not set.
GENERATION = {"temperature": 1.0, "top_p": 1.0, "top_k": None, "max_new_tokens": 64, "stop_strings": None, "stop_token_ids": None}
ENGINE = SimpleNamespace(cfg={"vllm_cfg": {"max_model_len": 32768}})


def run(rig):
    actor, loop = Actor(rig), asyncio.new_event_loop()
    pad = {"token_ids": actor.tokenizer.pad_token_id or 0}
    actor.tokenizer.pad_token_id = pad["token_ids"]
    threading.Thread(target=loop.run_forever, daemon=True).start()
    server, url = serve(AlidadeAgentConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="alidade", set=rig.key, service=rig.address))
    head = serve_head(url)
    gym = Gym(actor.tokenizer, loop, RolloutCollectionHelper(), BaseServerConfig(host="127.0.0.1", port=head.server_port))
    for step in range(STEPS):
        with fenced(rig.service, step):
            actor.load(f"step-{step}")
        live = update(actor, pad, roll(gym, actor.tokenizer))
        again = Gym(actor.tokenizer, loop, Export(exported(rig, gym.results)), None)
        export = update(actor, pad, roll(again, actor.tokenizer))
        say(step=step + 1, **worst(*live[1:4]), **actor.compared(live[0], export[0]), rows=live[4], rollouts=len(gym.results))
        actor.step(live[0])
    server.should_exit = True


class Gym:
    """The environment's class without its Ray actor and without the servers that it would start. Like the actor it has one event loop."""

    def __init__(self, tokenizer, loop, helper, head):
        self._own = object.__new__(NemoGym.__ray_metadata__.modified_class)
        self._own.cfg, self._own.rh, self._own.rch, self._own.head_server_config = {}, self, helper, head
        self._own.set_tokenizer(tokenizer)
        self._loop, self.results = loop, []

    @property
    def run_rollouts(self):
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self._stream))

    async def _stream(self, *args):
        found = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._all(*args), self._loop))
        self.results = [result["full_result"] for _, result, _ in sorted(found, key=lambda one: one[0])]
        for one in found:
            ready = asyncio.get_running_loop().create_future()
            ready.set_result(one)
            yield ready

    async def _all(self, *args):
        return [one async for one in self._own.run_rollouts(*args)]


class Export:
    """In the place of Gym's client: the rows of an export."""

    def __init__(self, rows):
        self._rows = rows

    def run_examples(self, examples, head_server_config):
        for example, row in zip(examples, self._rows):
            yield self._give(example, row)

    async def _give(self, example, row):
        return example, row


def serve_head(url):
    """Gym's head server, which says where the agents are."""
    host, port = url.removeprefix("http://").split(":")
    agents = json.dumps({"alidade": {"responses_api_agents": {"alidade": {"host": host, "port": int(port)}}}}).encode()

    class Head(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(agents)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Head)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def roll(gym, tokenizer):
    rows = [
        {"responses_create_params": {"input": [{"role": "user", "content": task}], "metadata": {"task_id": task}}, "agent_ref": {"name": "alidade"}}
        for task in TASKS
        for _ in range(SAMPLES)
    ]
    batch = BatchedDataDict({"extra_env_info": rows, "loss_multiplier": torch.ones(len(rows))})
    return run_nemo_gym_rollout_sync(
        policy_generation=ENGINE, input_batch=batch, tokenizer=tokenizer, task_to_env={"nemo_gym": gym},
        generation_config=GENERATION, log_full_result_tables=False,
    ).final_batch


def update(actor, pad, batch):
    """As its `grpo_train` does it with a batch."""
    prompts, _ = batched_message_log_to_flat_message(extract_initial_prompt_messages(batch["message_log"], batch["length"]), pad_value_dict=pad)
    groups = {tuple(ids.tolist()) for ids in prompts["token_ids"]}
    assert len(groups) == len(TASKS), f"{len(groups)} first prompts of {len(TASKS)} tasks"
    assert "mask_sample" in batch
    assert _apply_mask_sample_filter(batch) == 0
    add_grpo_token_loss_masks_and_generation_logprobs(batch["message_log"])
    flat, lengths = batched_message_log_to_flat_message(batch["message_log"], pad_value_dict=pad)
    data = BatchedDataDict(
        input_ids=flat["token_ids"], input_lengths=lengths, generation_logprobs=flat["generation_logprobs"],
        token_mask=flat["token_loss_mask"], sample_mask=batch["loss_multiplier"],
    )
    new = torch.stack([torch.nn.functional.pad(actor.logprobs(ids[:length]), (0, len(ids) - length)) for ids, length in zip(data["input_ids"], lengths)])
    # Of a token in its own place, as policy workers give them.
    data["prev_logprobs"] = torch.nn.functional.pad(new.detach(), (1, 0))
    mask = data["token_mask"] * data["sample_mask"][:, None]
    options = ClippedPGLossConfig(reference_policy_kl_penalty=0, use_importance_sampling_correction=True)
    estimator = GRPOAdvantageEstimator(AdvEstimatorConfig(), options)
    data["advantages"] = estimator.compute_advantage(prompt_ids=prompts["token_ids"], rewards=batch["total_reward"], mask=mask)
    loss, _ = ClippedPGLossFn(options)(new, data, data["sample_mask"].sum(), mask[:, 1:].sum())
    return loss, new, data["generation_logprobs"][:, 1:], mask[:, 1:], len(batch["message_log"])
