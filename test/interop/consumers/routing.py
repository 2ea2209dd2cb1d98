"""The experts of our files as trainers read them, by their own code where it is installed or a variable names a checkout.

    VENV/bin/python routing.py FOLDER            FORMAT.jsonl of each format, without.jsonl, media/

Prints one JSON object: by trainer and row, the experts of all tokens but the last, from the first token of the prompt; what was
refused and why; which checkouts there are not; and whose own code read them.
"""

import asyncio
import importlib
import json
import os
import sys
import types
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[3] / "clients" / "python"))
sys.path.insert(0, str(Path(__file__).parents[1] / "trainers"))
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import numpy
import torch
from alidade import read, routing
from alidade.loaders import nemo_rl, prime_rl, skyrl, slime, verl
from stand_ins import stand_in_for

folder = sys.argv[1]
media = f"{folder}/media"
file = lambda name: f"{folder}/{name}.jsonl"
left_out, read_by = [], ["verl", "SkyRL"]


def by_verl():
    from alidade.verl import output_of
    from verl.workers.utils.padding import left_right_2_no_padding

    rows = list(read(file("verl")))
    loop = [output_of(row, experts=one).as_dict()["routed_experts"] for row, one in zip(rows, verl.replayed(rows, media))]
    _, fields, _ = verl.transfer_queue(rows, global_steps=7, pictures=media, replay=True)
    prompt, response = (max(len(row[name]) for row in rows) for name in ("prompts", "responses"))
    batch = verl.data_proto(rows, prompt_length=prompt, response_length=response, pad_token_id=0, pictures=media, replay=True).batch
    # The way into its engines: without padding, token by token.
    unpadded = left_right_2_no_padding(batch)["routed_experts"].unbind()
    every = {"verl_loop": loop, "verl_queue": [one["routed_experts"] for one in fields], "verl_batch": unpadded}
    for name, made in every.items():
        assert all(one.dtype == torch.int16 and len(one) == len(row["prompts"] + row["responses"]) for one, row in zip(made, rows)), name
        assert not any(one[-1].any() for one in made), f"{name}: the last token was not computed, so it has no experts"
    return {name: [one[:-1].tolist() for one in made] for name, made in every.items()}


def by_verl_live():
    from alidade import verl as live

    rows, given = list(read(file("verl"))), service_bytes()
    loop = object.__new__(live.AlidadeLoop)
    loop.rollout_config, loop.processor = {"enable_rollout_routing_replay": True}, None
    loop._live = answering({"rows": rows, "result": {"reward": 1.0}, "pictures": given})
    row = {"uid": "u", "session_id": 0, "extra_info": {"task_id": "t"}}
    made = asyncio.run(loop.run({}, **row))
    loop._live = answering({"rows": [{**rows[0], "routing": rows[0]["routing"][1:]}], "result": {"reward": 1.0}, "pictures": given})
    assert asyncio.run(loop.run({}, **row)) == [], "a rollout whose experts are unknown is left out"
    return {"verl_live": [one.as_dict()["routed_experts"][:-1].tolist() for one in made]}


def by_skyrl():
    from skyrl.train.dataset.preprocess import convert_prompts_responses_to_batch_tensors
    from skyrl.train.utils.trainer_utils import validate_generator_output

    output = skyrl.generator_output(file("skyrl"), step_wise=True, replay=True)
    ids = {one.to_string() for one in output["trajectory_ids"]}
    validate_generator_output(len(ids), output, step_wise=True, routes_expected=True)
    columns = ("prompt_token_ids", "response_ids", "rewards", "loss_masks", "rollout_logprobs", "rollout_expert_indices")
    packed = convert_prompts_responses_to_batch_tensors(0, *(output[column] for column in columns))[6]
    ends = packed.cu_seqlens.tolist()
    return {"skyrl": [packed.values[start : end - 1].tolist() for start, end in zip(ends, ends[1:])]}


def by_slime():
    dump = f"{folder}/rollout.pt"
    slime.write_debug_dump(file("slime"), dump, rollout_id=0, replay=True)
    rows = torch.load(dump, weights_only=False)["samples"]
    every = {"slime": rows, "miles": list(slime._rows(file("miles"), None, None, True))}
    for rows in every.values():
        # What both trainers ask of it.
        assert all(row["rollout_routed_experts"].shape == (len(row["tokens"]) - 1, 2, 2) and row["rollout_routed_experts"].dtype == numpy.int32 for row in rows)
    if path("ALIDADE_MILES"):
        stand_in_for("sglang", "sglang_router", "megatron")
        for sample in slime.samples(file("miles"), package="miles", replay=True):
            sample.validate()
        read_by.append("miles")
    return {name: [row["rollout_routed_experts"].tolist() for row in rows] for name, rows in every.items()}


class Sample(SimpleNamespace):
    Status = SimpleNamespace(ABORTED="ABORTED", COMPLETED="COMPLETED")


def by_slime_live():
    from alidade import slime as live

    args = SimpleNamespace(dynamic_sampling_filter_path="x", alidade={"set": "s"}, n_samples_per_prompt=1, use_rollout_routing_replay=True, partial_rollout=False)
    rows, given = list(read(file("verl"))), service_bytes()

    def samples(rows):
        live._live_of = lambda *_: answering({"rows": rows, "result": {"reward": 1.0}, "pictures": given})
        return asyncio.run(live.generate(args, Sample(group_index=0, index=0, metadata={"task_id": "t"}), {}))

    [aborted] = samples([{**rows[0], "routing": rows[0]["routing"][1:]}])
    refused["live"] = f"{aborted.status} {aborted.remove_sample}"
    return {"slime_live": [one.rollout_routed_experts.tolist() for one in samples(rows)]}


def by_prime_rl():
    if path("ALIDADE_PRIME_RL", "src", "packages/prime-rl-configs/src"):
        sys.modules["beartype"] = types.SimpleNamespace(beartype=lambda function: function)
        samples = list(prime_rl.training_samples(file("prime-rl"), replay=True))
        grid = prime_rl.micro_batches(file("prime-rl"), seq_len=512, num_train_workers=1, replay=True)
        packed = [one for batch in grid for one in batch if any(one.loss_mask)]
        assert sum(one.routed_experts.shape[0] for one in packed) == sum(len(one.input_ids) for one in packed)
        read_by.append("prime-rl")
    else:
        fields = ("token_ids", "mask", "logprobs", "temperatures", "env_name", "advantages", "routed_experts")
        module = types.ModuleType("prime_rl.transports.rollouts.types")
        module.TrainingSample = lambda **given: SimpleNamespace(**{name: given.pop(name) for name in fields}, rest=given)
        module.RoutedExperts = SimpleNamespace
        for name in ("prime_rl", "prime_rl.transports", "prime_rl.transports.rollouts"):
            sys.modules[name] = types.ModuleType(name)
        sys.modules[module.__name__] = sys.modules["prime_rl.transports.rollouts"].types = module
        samples = list(prime_rl.training_samples(file("prime-rl"), replay=True))
    told = [one.routed_experts for one in samples]
    assert all(len(one.token_ids) == experts.shape[0] for one, experts in zip(samples, told))
    return {"prime_rl": [numpy.frombuffer(one.data, one.dtype).reshape(one.shape)[:-1].tolist() for one in told]}


def by_nemo_rl():
    data = nemo_rl.data(list(read(file("nemo-rl"))), pictures=media, replay=True)
    joined = [torch.cat([message["routed_experts"] for message in one["message_log"]]) for one in data]
    assert all(len(message["routed_experts"]) == len(message["token_ids"]) for one in data for message in one["message_log"])
    assert all(one.dtype == torch.int16 and (one[-1] == -1).all() for one in joined)
    return {"nemo_rl": [one[:-1].tolist() for one in joined]}


def answering(line):
    async def rollout(*_):
        return line

    return SimpleNamespace(rollout=rollout, key_of=lambda *_: "key")


def service_bytes():
    import base64

    return {name: base64.b64encode(Path(media, name).read_bytes()).decode() for name in os.listdir(media)}


def path(variable, *below):
    checkout = os.environ.get(variable)
    if not checkout:
        left_out.append(f"{variable} names no checkout; its own code is run by hand")
        return False
    sys.path[:0] = [os.path.join(checkout, one) for one in below or (".",)]
    return True


def why_refused(rows):
    try:
        return str(routing.arrays(rows, media).__len__())
    except routing.RoutingError as error:
        return str(error)


refused = {}
rows = list(read(file("verl")))
refused["hole"] = why_refused([rows[0], {**rows[1], "routing": rows[1]["routing"][:-1]}])
refused["none"] = why_refused(list(read(file("without"))))
# A row that trains nothing needs none.
blank = {**rows[0], "routing": [], "response_mask": [0] * len(rows[0]["responses"])}
assert routing.arrays([blank, rows[1]], media)[0].tolist() == [[[0, 1], [0, 1]]]
told = {}
for each in (by_verl, by_verl_live, by_skyrl, by_slime, by_slime_live, by_prime_rl, by_nemo_rl):
    told.update(each())
print(json.dumps({"told": told, "refused": refused, "left_out": left_out, "read_by": read_by}), file=answers)
