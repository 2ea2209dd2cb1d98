"""verifiers: its `WireTrace` and the arrays that it spreads over each branch."""

import torch
from alidade import read
from policy import ratios
from verifiers.v1 import WireTrace

PACKAGE = "verifiers"


def ratios_of(file, policy):
    found = []
    for row in read(file):
        trace = WireTrace.model_validate(row)
        assert trace.reward == row["rewards"]["reward"]["score"]
        for node in trace.nodes:
            # Loading compares no lengths, and a short list becomes 0.0 without an error.
            assert len(node.mask) == len(node.token_ids) and len(node.logprobs or []) == sum(node.mask)
        for branch in trace.branches:
            new = policy.logprobs(torch.tensor([branch.token_ids]))[0]
            found.append(ratios(new, torch.tensor(branch.logprobs[1:]), torch.tensor(branch.sampled_mask[1:])))
    return torch.cat(found)
