"""OpenEnv: its strict `TrainingTrace`, then the hand-over to TRL's asynchronous trainer, by TRL's own code."""

import importlib.util
import sys
import types

import torch
from policy import ratios

PACKAGE = "openenv"


def import_without_server():
    """The package's own __init__ wants the server half (fastmcp, gradio)."""
    [package] = importlib.util.find_spec("openenv").submodule_search_locations
    for part in ("core", "core/env_server", "core/harness"):
        module = types.ModuleType("openenv." + part.replace("/", "."))
        module.__path__ = [f"{package}/{part}"]
        sys.modules[module.__name__] = module


import_without_server()
from alidade.loaders.openenv import training_traces  # noqa: E402
from trl.experimental.async_grpo.async_rollout_worker import TurnRecord, _chain_to_sequences  # noqa: E402


def ratios_of(file, policy):
    found = []
    for row, trace in training_traces(file):
        turns = [
            TurnRecord(turn.prompt_token_ids, turn.completion_token_ids, turn.per_token_logps, turn.loss_mask[len(turn.prompt_token_ids) :])
            for turn in trace.turns
        ]
        for sequence in _chain_to_sequences(turns, row["rollout_id"], 0)[0]:
            new = policy.logprobs(torch.tensor([sequence.input_ids]))[0]
            found.append(ratios(new, torch.tensor(sequence.old_log_probs[1:]), torch.tensor(sequence.completion_mask[1:])))
    return torch.cat(found)
