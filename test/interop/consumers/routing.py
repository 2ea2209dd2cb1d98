"""Reads the experts of our files as trainers do: by a trainer's own code, if it is installed or a variable names a checkout.

    VENV/bin/python routing.py FOLDER            FORMAT.jsonl of each format, without.jsonl, media/

Prints one JSON object: the experts of all tokens but the last, by trainer and row, from the first token of the prompt; refusals
with their reasons; missing checkouts; the trainers whose own code read the files.
"""

import asyncio
import importlib
import json
import logging
import os
import sys
import threading
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
from alidade.live import Live
from alidade.loaders import nemo_rl, prime_rl, skyrl, slime, verl
from stand_ins import stand_in_for

folder = sys.argv[1]
media = f"{folder}/media"
BLANK = [[0, 1], [0, 1]]
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
    # verl gives them to its engines without padding, one entry a token.
    unpadded = left_right_2_no_padding(batch)["routed_experts"].unbind()
    every = {"verl_loop": loop, "verl_queue": [one["routed_experts"] for one in fields], "verl_batch": unpadded}
    for name, made in every.items():
        assert all(one.dtype == torch.int16 and len(one) == len(row["prompts"] + row["responses"]) for one, row in zip(made, rows)), name
        assert not any(one[-1].any() for one in made), f"{name}: the last token was not computed, so it has no experts"
    return {name: [one[:-1].tolist() for one in made] for name, made in every.items()}


def by_verl_live():
    from alidade import verl as live

    rows, given = list(read(file("verl"))), service_bytes()
    live.AgentLoopBase.__init__ = lambda self: self.__dict__.update(rollout_config={"enable_rollout_routing_replay": True}, processor=None)
    service = Service(rows, given)
    live._live_of = lambda *options: service.live_of("verl", options[2])
    outputs = lambda: asyncio.run(live.AlidadeLoop(set="s", samples=2).run({}, uid="u", session_id=0, extra_info={"task_id": "t"}))
    service.rows = [masked(rows[0], "response_mask")]
    assert outputs() == [], "no form of experts is known yet"
    service.rows = [without(rows[0])]
    refused["verl_never"] = why(outputs)
    service.rows = rows
    made = outputs()
    service.rows = [{**rows[0], "routing": rows[0]["routing"][1:]}]
    assert outputs() == [], "a rollout whose experts are unknown is left out"
    service.rows = [masked(rows[0], "response_mask")]
    [blank] = outputs()
    assert blank.as_dict()["routed_experts"][0].tolist() == BLANK, "a rollout that trains nothing stays in the baseline"
    service.rows = [without(rows[0])]
    assert [outputs() for _ in range(routing.MOST_WITHOUT)] == [[]] * routing.MOST_WITHOUT
    refused["verl_anymore"] = why(outputs)
    service.rows, service.report = [], {"left_out_rollouts": {"line_too_long": 1}}
    assert outputs() == []
    assert {"wait": 0, "payload": "rows", "format": "verl", "experts": "true"} in service.queries
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


def by_skyrl_live():
    from alidade.skyrl import AlidadeGenerator
    from skyrl.train.generators.base import TrajectoryID
    from skyrl.train.generators.utils import concatenate_generator_outputs

    rows, given = list(read(file("skyrl"))), service_bytes()
    service = Service(rows, given)
    generator = AlidadeGenerator(service, step_wise=True, replay=True)

    def output():
        batch = SimpleNamespace(training_phase="train", global_step=1)
        asked = {"batch_metadata": batch, "trajectory_ids": [TrajectoryID("t", 0)], "env_extras": [{"task_id": "t"}]}
        return asyncio.run(generator.generate(asked))

    service.rows = [without(rows[0])]
    refused["skyrl_never"] = why(output)
    service.rows = rows
    whole = output()
    service.reward = None
    unmeasured = output()
    assert not any(map(any, unmeasured["loss_masks"])), "a group without a reward is masked"
    service.rows = []
    failed = output()
    assert [one[0].tolist() for one in failed["rollout_expert_indices"]] == [BLANK]
    # SkyRL joins the groups of a batch in this way.
    joined = concatenate_generator_outputs([whole, unmeasured, failed], step_wise=False, routes_expected=True)["rollout_expert_indices"]
    assert len(joined) == 2 * len(rows) + 1
    return {"skyrl_live": [one[: routing.length(row) - 1].tolist() for one, row in zip(whole["rollout_expert_indices"], rows)]}


def by_slime():
    dump = f"{folder}/rollout.pt"
    slime.write_debug_dump(file("slime"), dump, rollout_id=0, replay=True)
    rows = torch.load(dump, weights_only=False)["samples"]
    every = {"slime": rows, "miles": list(slime._rows(file("miles"), None, None, True))}
    for rows in every.values():
        # Both trainers require this shape and type.
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

    service = Service(rows, given)
    live._live_of = lambda *options: service.live_of("verl", options[2])

    def samples(rows):
        service.rows = rows
        return asyncio.run(live.generate(args, Sample(group_index=0, index=0, metadata={"task_id": "t"}), {}))

    nothing = [masked(rows[0], "response_mask")]
    [early] = samples(nothing)
    assert early.status == "ABORTED", "no form of experts is known yet"
    refused["slime_never"] = why(lambda: samples([without(rows[0])]))
    [aborted] = samples([{**rows[0], "routing": rows[0]["routing"][1:]}])
    refused["live"] = f"{aborted.status} {aborted.remove_sample}"
    told = [one.rollout_routed_experts.tolist() for one in samples(rows)]
    [blank] = samples(nothing)
    assert (blank.status, blank.reward) == ("COMPLETED", rows[0]["reward_score"]) and blank.rollout_routed_experts[0].tolist() == BLANK
    assert len(blank.rollout_routed_experts) == len(blank.tokens) - 1
    args.use_rollout_routing_replay = False
    [plain] = samples([without(rows[0])])
    assert plain.status == "COMPLETED" and not hasattr(plain, "rollout_routed_experts")
    assert [query.get("experts") for query in service.queries[-1:]] == [None], "experts are asked for only where they are replayed"
    return {"slime_live": told}


def stages():
    """Checks the padding for virtual stages. slime reads Megatron's own option, and miles takes the pipeline's size."""
    from alidade.slime import pad_rows

    args = SimpleNamespace(
        actor_num_nodes=1, actor_num_gpus_per_node=2, tensor_model_parallel_size=1, pipeline_model_parallel_size=2, context_parallel_size=1, micro_batch_size=1,
        use_dynamic_batch_size=False, global_batch_size=1, virtual_pipeline_model_parallel_size=2, microbatch_group_size_per_vp_stage=3,
    )
    padded = {}
    for package in ("slime", "miles"):
        row = type("Sample", (SimpleNamespace,), {"__module__": f"{package}.utils.types"})(tokens=[1, 2], response_length=1)
        data = [[[row]]]
        pad_rows(args, data)
        padded[package] = len(data[0][0])
    assert padded == {"slime": 3, "miles": 2}, padded
    pad_rows(args, [])


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
    data = nemo_rl.data(read(file("nemo-rl")), pictures=media, replay=True)
    joined = [torch.cat([message["routed_experts"] for message in one["message_log"]]) for one in data]
    assert all(len(message["routed_experts"]) == len(message["token_ids"]) for one in data for message in one["message_log"])
    assert all(one.dtype == torch.int16 and (one[-1] == -1).all() for one in joined)
    return {"nemo_rl": [one[:-1].tolist() for one in joined]}


class Service:
    """A set whose rollouts end at once, each with these rows."""

    id, key, spec = "set", "s", {"samples": 1}

    def __init__(self, rows, pictures):
        self.rows, self.pictures, self.reward, self.report, self.queries, self._lives = rows, pictures, 1.0, {}, [], {}

    @property
    def service(self):
        return self

    def live_of(self, format, replay):
        return self._lives.setdefault(replay, Live(self, format=format, replay=replay))

    def rollout(self, *_, wait):
        return "r-1"

    def request(self, method, path, query):
        self.queries.append({name: value for name, value in query.items() if value is not None})
        return {"rows": self.rows, "result": {"reward": self.reward, "rollout_id": "r-1"}, "report": self.report, "pictures": self.pictures}

    def groups(self, **_):
        over.wait()
        return []


def masked(row, mask):
    """Returns the row without trained tokens and without experts."""
    return {**without(row), mask: [0] * len(row[mask])}


def without(row):
    return {name: value for name, value in row.items() if name != "routing"}


def why(work):
    try:
        return f"{work()}"
    except routing.RoutingError as error:
        return str(error)


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


def why_refused(rows, files=media):
    return why(lambda: len(routing.arrays(rows, files)))


over, logged = threading.Event(), []
logging.getLogger("alidade").addHandler(SimpleNamespace(level=0, handle=lambda record: logged.append(record.getMessage())))
refused = {}
rows = list(read(file("verl")))
refused["hole"] = why_refused([rows[0], {**rows[1], "routing": rows[1]["routing"][:-1]}])
refused["none"] = why_refused(list(read(file("without"))))
# A row that trains nothing needs no experts.
blank = {**rows[0], "routing": [], "response_mask": [0] * len(rows[0]["responses"])}
assert routing.arrays([blank, rows[1]], media)[0].tolist() == [[[0, 1], [0, 1]]]
assert routing.arrays([blank], media, (2, 2))[0].tolist() == [BLANK]
refused["absent"] = why_refused(rows, f"{folder}/elsewhere")
refused["nowhere"] = why_refused(rows, None)
# All rows are checked first. Then their bytes are read, row by row.
one_by_one = routing.each_array([*rows, {**rows[0], "routing": [{**part, "sha256": "0" * 64} for part in rows[0]["routing"]]}], media)
assert [len(next(one_by_one)) for _ in rows] == [routing.length(row) - 1 for row in rows]
refused["late"] = why(lambda: next(one_by_one))
stages()
told = {}
for each in (by_verl, by_verl_live, by_skyrl, by_skyrl_live, by_slime, by_slime_live, by_prime_rl, by_nemo_rl):
    told.update(each())
print(json.dumps({"told": told, "refused": refused, "left_out": left_out, "read_by": read_by, "logged": logged}), file=answers)
