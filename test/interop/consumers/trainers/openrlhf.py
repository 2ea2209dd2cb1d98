"""OpenRLHF: its way from an executor's response to an `Experience`, its batching and its loss."""

import importlib.util
import sys
import types

from alidade.loaders.openrlhf import responses
from policy import next_logprobs, ratios, refused

PACKAGE = "openrlhf"


def import_without_engines():
    """Its modules import vLLM, DeepSpeed and Ray's actors for generation, which is not asked of them here."""
    stand_ins = ["deepspeed", "vllm", "openrlhf.trainer.ray", "openrlhf.trainer.ray.vllm_engine", "openrlhf.models"]
    made = {name: types.ModuleType(name) for name in stand_ins}
    made["vllm"].SamplingParams = object
    made["openrlhf.trainer.ray.vllm_engine"].batch_vllm_engine_call = None
    [package] = importlib.util.find_spec("openrlhf").submodule_search_locations
    made["openrlhf.models"].__path__ = [f"{package}/models"]
    sys.modules |= made
    try:
        from openrlhf.models.loss import PolicyLoss
        from openrlhf.trainer.ppo_utils.experience import Experience
        from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator
    finally:
        # Other trainers look whether vLLM is there.
        for name in ("deepspeed", "vllm"):
            del sys.modules[name]
    return SamplesGenerator, Experience, PolicyLoss


SamplesGenerator, Experience, PolicyLoss = import_without_engines()


def ratios_of(file, policy):
    generator = object.__new__(SamplesGenerator)
    limit = {"max_len": 65536}
    refused("a row that would be cut in a turn", lambda: list(responses(file, max_len=8)))
    experiences = [generator._process_response_into_experience(each, **limit) for each in responses(file, **limit)]
    batch = Experience.concat_experiences(experiences, pad_token_id=policy.pad)
    model = policy.copy()
    new = next_logprobs(model, batch.sequences, batch.attention_mask)
    advantages = (batch.rewards - batch.rewards.mean())[:, None].expand_as(new)
    out = PolicyLoss()(new, batch.rollout_log_probs, advantages, action_mask=batch.action_mask.float())
    policy.step(model, out[0] if isinstance(out, tuple) else out)
    return ratios(new, batch.rollout_log_probs, batch.action_mask)
