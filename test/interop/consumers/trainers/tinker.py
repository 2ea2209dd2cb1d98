"""tinker: our Datums are its own, and what tinker-cookbook builds turn by turn from the same tokens is the same Datum."""

import tinker
import torch
from alidade.loaders.tinker import advantages_of, datums
from alidade import read
from policy import next_logprobs, ratios
from tinker_cookbook.completers import TokensWithLogprobs
from tinker_cookbook.rl.data_processing import trajectory_to_data
from tinker_cookbook.rl.types import Trajectory, Transition

PACKAGE = "tinker"


def ratios_of(file, policy):
    rows, ours = list(read(file)), datums(file)
    advantages = advantages_of(rows)
    model, found, loss = policy.copy(), [], 0
    for row, datum in zip(rows, ours):
        compare(datum, cookbook_datum(datum, advantages[row["trajectory_id"]]))
        ids = torch.tensor([datum.model_input.to_ints()])
        inputs = {name: tensor.to_torch() for name, tensor in datum.loss_fn_inputs.items()}
        whole = torch.cat([ids, inputs["target_tokens"][None, -1:]], 1)
        new = next_logprobs(model, whole, torch.ones_like(whole))[0]
        # The service's importance-sampling loss, which only exists there.
        loss = loss - (torch.exp(new - inputs["logprobs"]) * inputs["advantages"]).sum()
        found.append(ratios(new, inputs["logprobs"], inputs["mask"]))
    policy.step(model, loss)
    return torch.cat(found)


def cookbook_datum(datum, advantage):
    """Each run of the mask is an action, what lies before it an observation."""
    targets = datum.loss_fn_inputs["target_tokens"].to_torch().tolist()
    tokens = datum.model_input.to_ints()[:1] + targets
    mask = [0] + [int(each) for each in datum.loss_fn_inputs["mask"].to_torch()]
    logprobs = [0.0] + datum.loss_fn_inputs["logprobs"].to_torch().tolist()
    transitions, start = [], None
    for at, trained in enumerate(mask + [0]):
        if trained and start is None:
            start = at
        elif not trained and start is not None:
            action = TokensWithLogprobs(tokens=tokens[start:at], maybe_logprobs=logprobs[start:at], stop_reason="stop")
            transitions.append(Transition(tinker.ModelInput.from_ints(tokens[:start]), action, 0.0, False))
            start = None
    final = tinker.ModelInput.from_ints(tokens)
    [built] = trajectory_to_data(Trajectory(transitions=transitions, final_ob=final), advantage)
    return built


def compare(ours, theirs):
    assert ours.model_input.to_ints() == theirs.model_input.to_ints(), "the cookbook has other inputs"
    for name, tensor in theirs.loss_fn_inputs.items():
        assert torch.equal(tensor.to_torch().float(), ours.loss_fn_inputs[name].to_torch().float()), f"the cookbook has other {name}"
