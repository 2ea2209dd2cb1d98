"""NeMo Gym: its result row; each item that a call sampled is of a class for training. NeMo RL's rule is ours here: each
prompt goes on from what was there before."""

import torch
from alidade import read
from nemo_gym.base_resources_server import BaseVerifyResponse
from nemo_gym.openai_utils import TokenIDLogProbMixin
from policy import ratios

PACKAGE = "nemo-gym"


def ratios_of(file, policy):
    found = []
    for row in read(file):
        result = BaseVerifyResponse.model_validate(row)
        assert result.reward == row["reward"]
        items = [item for item in result.response.output if isinstance(item, TokenIDLogProbMixin)]
        said = [item for item in row["response"]["output"] if "generation_token_ids" in item]
        assert len(items) == len(said), "an item lost its tokens: two arrays of three are dropped without an error"
        before = []
        for item in items:
            prompt, sampled = item.prompt_token_ids, item.generation_token_ids
            assert prompt[: len(before)] == before, "the prompt does not go on from the turn before"
            assert len(sampled) == len(item.generation_log_probs)
            before = prompt + sampled
            new = policy.logprobs(torch.tensor([before]))[0, len(prompt) - 1 :]
            found.append(ratios(new, torch.tensor(item.generation_log_probs), torch.ones(len(sampled))))
    return torch.cat(found)
