"""SkyRL: its validation and collation, step-wise, then its GRPO advantages and its loss."""

import numpy as np
from alidade.loaders.skyrl import generator_output
from policy import next_logprobs, ratios, refused
from skyrl.backends.skyrl_train.utils.ppo_utils import PolicyLossRegistry, compute_advantages_and_returns
from skyrl.train.config import AlgorithmConfig
from skyrl.train.dataset.preprocess import convert_prompts_responses_to_batch_tensors
from skyrl.train.utils.trainer_utils import validate_generator_output

PACKAGE = "skyrl"


def ratios_of(file, policy):
    output = generator_output(file, step_wise=True)
    if not all(output["is_last_step"]):
        refused("several rows of a rollout as rollouts of their own", lambda: generator_output(file))
    ids = [each.to_string() for each in output["trajectory_ids"]]
    validate_generator_output(len(set(ids)), output, step_wise=True)
    columns = ("prompt_token_ids", "response_ids", "rewards", "loss_masks", "rollout_logprobs")
    batch = convert_prompts_responses_to_batch_tensors(policy.pad, *(output[column] for column in columns))
    sequences, attention, response, rewards, mask, sampled = batch[:6]
    model = policy.copy()
    new = next_logprobs(model, sequences, attention)[:, -mask.shape[1] :]
    groups = np.array([each.instance_id for each in output["trajectory_ids"]])
    advantages, _ = compute_advantages_and_returns(
        token_level_rewards=rewards,
        response_mask=response,
        index=groups,
        adv_estimator="grpo",
        grpo_norm_by_std=True,
        config=None,
    )
    loss, *_ = PolicyLossRegistry.get("regular")(
        log_probs=new,
        old_log_probs=sampled,
        advantages=advantages,
        config=AlgorithmConfig(),
        loss_mask=mask,
        rollout_logprobs=sampled,
    )
    policy.step(model, loss)
    return ratios(new, sampled, mask)
