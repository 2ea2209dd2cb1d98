"""Harbor's results: its agent context with rollout details and its verifier's result."""

import torch
from alidade import read
from harbor.models.agent.context import AgentContext
from harbor.models.verifier.result import VerifierResult
from policy import ratios

PACKAGE = "harbor"


def ratios_of(file, policy):
    found = []
    for row in read(file):
        assert VerifierResult.model_validate(row["verifier_result"]).rewards is not None
        for detail in AgentContext.model_validate(row["agent_result"]).rollout_details:
            for prompt, sampled, logprobs in zip(detail["prompt_token_ids"], detail["completion_token_ids"], detail["logprobs"], strict=True):
                new = policy.logprobs(torch.tensor([prompt + sampled]))[0, len(prompt) - 1 :]
                found.append(ratios(new, torch.tensor(logprobs), torch.ones(len(sampled))))
    return torch.cat(found)
