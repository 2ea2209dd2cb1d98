"""Harbor's ATIF: its validated documents, written out and read again, then the tokens in the steps' metrics."""

import torch
from alidade import read
from harbor.models.trajectories import Trajectory
from policy import ratios

PACKAGE = "harbor"


def ratios_of(file, policy):
    found = []
    for row in read(file):
        document = Trajectory.model_validate(row)
        assert Trajectory.model_validate_json(document.model_dump_json()) == document
        Trajectory.model_validate({**row, "schema_version": "ATIF-v1.7"})
        for each in [document, *(document.subagent_trajectories or [])]:
            found += [of_metrics(step.metrics, policy) for step in each.steps if step.metrics and step.metrics.logprobs]
    return torch.cat(found)


def of_metrics(metrics, policy):
    """Harbor does not compare the lengths, so this does."""
    prompt, sampled = metrics.prompt_token_ids, metrics.completion_token_ids
    assert len(metrics.logprobs) == len(sampled) == metrics.completion_tokens
    assert len(prompt) == metrics.prompt_tokens
    new = policy.logprobs(torch.tensor([prompt + sampled]))[0, len(prompt) - 1 :]
    return ratios(new, torch.tensor(metrics.logprobs), torch.ones(len(sampled)))
