"""Checks rows with pictures in the trainers' own code: a small vision model gives the same logprobs for a batch as for the flat row.

    VENV/bin/python pictures.py FOLDER FACTS.json      FOLDER: a file a format and media/; prints one line of JSON a trainer

FACTS: the ids of the picture's tokens and the size of the vocabulary. The image processor, the model and the batches are real; what
else a processor of transformers holds (tokenizer, videos) is not asked of it here. prime-rl, NeMo RL, slime and miles are in no
registry: of them stand the types that their samples are made of.
"""

import base64
import contextlib
import json
import logging
import os
import sys
import types
from pathlib import Path

os.environ |= {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"}
sys.path[:0] = [str(Path(__file__).parents[3] / "clients" / "python"), str(Path(__file__).parent)]

import msgspec
import numpy as np
import torch
from alidade import areal as areal_hook, media, read
from alidade.trl_pictures import hand_over
from alidade.verl import output_of as verl_output_of
from transformers import BatchFeature, Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen2_5_VLModel
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil


class Processor:
    """The parts of the model's processor that trainers and our loaders use."""

    def __init__(self, facts, config, **settings):
        self.image_processor = Qwen2VLImageProcessorPil(patch_size=14, merge_size=2, temporal_patch_size=2, **settings)
        self.image_token_id, self.video_token_id, self.config = facts["pad"], facts["video"], config
        # Bound in the same way as by verl's hf_processor.
        self.get_rope_index = types.MethodType(Qwen2_5_VLModel.get_rope_index, self)
        self.get_vision_position_ids = types.MethodType(Qwen2_5_VLModel.get_vision_position_ids, self)

    def __call__(self, text, images=None, videos=None, return_tensors="pt"):
        made = self.image_processor(images=images, return_tensors=return_tensors) if images else {}
        one = torch.zeros(1, 1, dtype=torch.long)
        return BatchFeature({**made, "input_ids": one, "attention_mask": one, "mm_token_type_ids": one})


def make(facts):
    torch.manual_seed(0)
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 6, 6]}
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    vision = {"depth": 2, "hidden_size": 64, "intermediate_size": 128, "num_heads": 4, "out_hidden_size": 64, "fullatt_block_indexes": [1]}
    tokens = {"image_token_id": facts["pad"], "video_token_id": facts["video"], "vision_start_token_id": facts["start"], "vision_end_token_id": facts["end"]}
    text = {"vocab_size": facts["vocabulary"], "initializer_range": 0.2, "rope_parameters": rope, **sizes}
    config = Qwen2_5_VLConfig(text_config=text, vision_config=vision, **tokens)
    return config, Qwen2_5_VLForConditionalGeneration(config).float().eval()


class Eyes:
    """The model, and its logprobs of each rollout's sampled tokens, computed from the flat rows."""

    def __init__(self, folder, facts):
        self.folder, self.pictures = folder, f"{folder}/media"
        config, self.model = make(facts)
        self.processor = Processor(facts, config)
        self.rows = list(read(f"{folder}/flat.jsonl"))
        assert all(len(row["media"]) == 2 for row in self.rows), "the rows show other pictures"
        self.said = {row["rollout_id"]: self.of(row, self.processor) for row in self.rows}

    def of(self, row, processor, pictures=None):
        made = media.tensors(row, pictures or self.pictures, processor)
        ids, kinds = torch.tensor([row["token_ids"]]), made.pop("mm_token_type_ids")
        return self.logprobs(ids, torch.ones_like(ids), mm_token_type_ids=kinds[None], **made)[0][torch.tensor(row["loss_mask"][1:]).bool()]

    @torch.no_grad()
    def logprobs(self, ids, attention_mask, **inputs):
        logits = self.model(input_ids=ids, attention_mask=attention_mask, **inputs).logits[:, :-1].float()
        return logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]

    def kinds(self, ids):
        """The token kinds, as a trainer without kinds in its batch derives them from ids."""
        return (ids == self.processor.image_token_id).long()

    def worst(self, rollouts, new, masks):
        """`new`, `masks`: [B, T - 1] in the order of `rollouts`."""
        assert sorted(rollouts) == sorted(self.said), "other rollouts"
        gaps = [(said[mask.bool()] - self.said[rollout]).abs().max() for rollout, said, mask in zip(rollouts, new, masks)]
        return float(max(gaps))


def trl(eyes):
    """Runs three optimizer steps. Two are on a group with pictures, from a file and from a service. One is on a group with a text-only
    rollout, in batches of one row."""
    from alidade.loaders.trl import GrpoRows

    rows = list(read(f"{eyes.folder}/trl-grpo.jsonl"))
    text = {**rows[1], "prompt_ids": [3, 4, 5], "completion_ids": [6, 7, 8], "logprobs": [-1.0] * 3, "env_mask": [1] * 3}
    del text["media"]
    mixed = f"{eyes.folder}/trl-mixed.jsonl"
    Path(mixed).write_text("".join(f"{json.dumps(row)}\n" for row in (rows[0], text)))
    whole = trained_by_trl(eyes, GrpoRows(f"{eyes.folder}/trl-grpo.jsonl"), per_device_train_batch_size=2)
    parts = trained_by_trl(eyes, GrpoRows(mixed), per_device_train_batch_size=1, gradient_accumulation_steps=2, num_iterations=2)
    assert all(old is not None for *_, old in parts), "TRL computes no logprobs before the step"
    alone = torch.tensor([text["prompt_ids"] + text["completion_ids"]])
    said = eyes.logprobs(alone, torch.ones_like(alone))[0, -3:]
    live = trained_by_trl(eyes, LiveRows(eyes, rows), per_device_train_batch_size=2)
    found = [(both, eyes.said[row["rollout_id"]] if "media" in row else said) for row, both in (*pair(whole, rows), *pair(live, rows), *pair(parts, [rows[0], text]))]
    return max(float((new - wanted).abs().max()) for both, wanted in found for new in both)


def trl_sft(eyes):
    """Runs a step of TRL's own trainer on the rows with pictures and one of text alone. Its loss is that of the flat rows' logprobs."""
    import copy
    import tempfile

    from alidade.loaders.trl import sft_trainer
    from datasets import load_dataset
    from trl import SFTConfig, SFTTrainer

    text = {"input_ids": [3, 4, 5, 6, 7, 8], "labels": [-100] * 3 + [6, 7, 8], "reward": 1}
    file = f"{eyes.folder}/trl-sft-mixed.jsonl"
    Path(file).write_text(Path(f"{eyes.folder}/trl-sft.jsonl").read_text() + json.dumps(text) + "\n")
    dataset = load_dataset("json", data_files=file, split="train", cache_dir=f"{eyes.folder}/cache")
    alone = torch.tensor([text["input_ids"]])
    said = [*eyes.said.values(), eyes.logprobs(alone, torch.ones_like(alone))[0, -3:]]
    model = copy.deepcopy(eyes.model)
    before = model.model.visual.patch_embed.proj.weight.detach().clone()
    with tempfile.TemporaryDirectory() as folder:
        fixed = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False, "report_to": [], "save_strategy": "no", "logging_steps": 1}
        config = SFTConfig(output_dir=folder, max_steps=1, per_device_train_batch_size=len(dataset), learning_rate=1e-3, max_length=8, **fixed)
        parts = {"args": config, "processing_class": trl_processor(eyes), "train_dataset": dataset}
        trainer = sft_trainer(eyes.pictures)(model=model, **parts)
        trainer.train()
        try:
            SFTTrainer(model=copy.deepcopy(eyes.model), **parts).train()
        except (KeyError, ValueError) as error:
            print(f"TRL's own trainer refuses rows with pictures: {error!r}")
        else:
            raise AssertionError("TRL's own trainer takes rows with pictures, and shows the model none")
    assert not torch.equal(before, model.model.visual.patch_embed.proj.weight), "the step moves no weight of the vision tower"
    [loss] = [one["loss"] for one in trainer.state.log_history if "loss" in one]
    return abs(loss + float(torch.cat(said).mean()))


def pair(trained, rows):
    """Pairs rows by their completion, because TRL shuffles the rows of a batch."""
    found = []
    for row in rows:
        for ids, *logprobs in trained:
            if ids[: len(row["completion_ids"])] == row["completion_ids"]:
                found.append((row, [one[: len(row["env_mask"])][torch.tensor(row["env_mask"]).bool()] for one in logprobs if one is not None]))
    assert len(found) == len(rows), "other rows"
    return found


class LiveRows:
    """The hook for a service that answers with these rows."""

    def __init__(self, eyes, rows):
        from alidade.trl import Rollouts

        results = [{"rollout_id": row["rollout_id"], "policies": []} for row in rows]
        group = {"key": "0.0/0", "cursor": "1", "rows": rows, "results": results, "pictures": base64_of(eyes, rows)}
        service = types.SimpleNamespace(weights=lambda **_: contextlib.nullcontext())
        run = types.SimpleNamespace(key="set", spec={"samples": len(rows)}, service=service, submit=list, groups=lambda **_: [types.SimpleNamespace(**group)])
        hook = Rollouts(run, load=lambda trainer, version: None)
        self.rollout_func, self.reward = hook.rollout_func, hook.reward

    def dataset(self):
        from datasets import Dataset

        return Dataset.from_list([{"prompt": "task"}])


def trained_by_trl(eyes, rows, **settings):
    """Runs one step of TRL's own trainer. Returns each row's completion, its logprobs in the loss, and those before the step, if any."""
    import copy
    import tempfile

    from alidade.trl_pictures import grpo_trainer
    from trl import GRPOConfig

    found = []

    class Watched(grpo_trainer()):
        def _compute_loss(self, model, inputs):
            self.seen = inputs
            return super()._compute_loss(model, inputs)

        def _get_per_token_logps_and_entropies(self, *arguments, compute_entropy=False, **given):
            made = super()._get_per_token_logps_and_entropies(*arguments, compute_entropy=compute_entropy, **given)
            if compute_entropy:
                ids = self.seen["completion_ids"].tolist()
                found.extend(zip(ids, made[0].detach(), self.seen.get("old_per_token_logps", [None] * len(ids))))
            return made

    model = copy.deepcopy(eyes.model)
    before = model.model.visual.patch_embed.proj.weight.detach().clone()
    with tempfile.TemporaryDirectory() as folder:
        fixed = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False, "disable_dropout": True, "report_to": [], "save_strategy": "no"}
        config = GRPOConfig(output_dir=folder, num_generations=2, max_steps=1, max_completion_length=65536, learning_rate=1e-3, **fixed, **settings)
        parts = {"processing_class": trl_processor(eyes), "train_dataset": rows.dataset(), "reward_funcs": rows.reward}
        Watched(model=model, args=config, rollout_func=rows.rollout_func, **parts).train()
    assert not torch.equal(before, model.model.visual.patch_embed.proj.weight), "the step moves no weight of the vision tower"
    return found


def trl_processor(eyes):
    """Makes a processor of transformers, which TRL needs. It has a word for each id."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast, ProcessorMixin

    words = {f"t{at}": at for at in range(eyes.model.config.text_config.vocab_size)}

    class TrlProcessor(ProcessorMixin):
        def __init__(self, inner):
            self.image_processor, self.image_token_id = inner.image_processor, inner.image_token_id
            self.chat_template = None
            self.tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="t0")), pad_token="t0", eos_token="t1")

    return TrlProcessor(eyes.processor)


def verl(eyes):
    from alidade.loaders.verl import data_proto
    from alidade.verl import output_of
    from verl.experimental.agent_loop.agent_loop import AgentLoopWorker

    rows = list(read(f"{eyes.folder}/verl.jsonl"))
    prompt, response = (max(len(row[name]) for row in rows) + 3 for name in ("prompts", "responses"))
    batch = data_proto(rows, prompt, response, 0, eyes.processor, eyes.pictures)
    tensors, inputs = batch.batch, batch.non_tensor_batch["multi_modal_inputs"]
    worker = object.__new__(getattr(getattr(AgentLoopWorker, "__ray_metadata__", None), "modified_class", AgentLoopWorker))
    worker.processor, worker.tokenizer = eyes.processor, types.SimpleNamespace(decode=lambda ids, skip_special_tokens: "")
    worker.mm_processor_kwargs = None
    for at, row in enumerate(rows):
        output = output_of(row, eyes.pictures, eyes.processor)
        ids, attended = tensors["input_ids"][at : at + 1], tensors["attention_mask"][at : at + 1]
        theirs = worker._compute_multi_modal_inputs(output, ids)
        positions = worker._compute_position_ids(ids, attended, theirs)
        for name, one in theirs.items():
            assert torch.equal(one, inputs[at][name]), f"verl's own agent loop makes another {name}"
        assert torch.equal(positions[..., attended[0].bool()], tensors["position_ids"][at : at + 1][..., attended[0].bool()]), "other positions"
    merged = {name: torch.cat([one[name] for one in inputs]) for name in ("pixel_values", "image_grid_thw")}
    new = eyes.logprobs(tensors["input_ids"], tensors["attention_mask"], position_ids=tensors["position_ids"].transpose(0, 1), **merged)
    return eyes.worst([row["rollout_id"] for row in rows], new[:, prompt - 1 :], tensors["response_mask"])


def skyrl(eyes):
    from alidade.loaders.skyrl import generator_output
    from skyrl.backends.skyrl_train.training_batch import TensorList
    from skyrl.train.dataset.preprocess import convert_prompts_responses_to_batch_tensors
    from skyrl.train.utils.trainer_utils import validate_generator_output

    file = f"{eyes.folder}/skyrl.jsonl"
    output = generator_output(file, processor=eyes.processor)
    validate_generator_output(len(output["response_ids"]), output)
    columns = ("prompt_token_ids", "response_ids", "rewards", "loss_masks", "rollout_logprobs")
    sequences, attention, _, _, mask, _ = convert_prompts_responses_to_batch_tensors(0, *(output[column] for column in columns))[:6]
    shown = {name: torch.cat(TensorList(output[name]).tensors) for name in ("pixel_values", "image_grid_thw")}
    new = eyes.logprobs(sequences, attention, mm_token_type_ids=eyes.kinds(sequences), **shown)
    return eyes.worst(rollouts_in_order(eyes), new[:, -mask.shape[1] :], mask)


def openrlhf(eyes):
    from alidade.loaders.openrlhf import responses
    from openrlhf.utils.vlm_utils import merge_mm_train_inputs
    from trainers.openrlhf import Experience, SamplesGenerator

    generator, limit = object.__new__(SamplesGenerator), {"max_len": 65536}
    made = list(responses(f"{eyes.folder}/openrlhf.jsonl", **limit, processor=eyes.processor))
    assert all(len(one["images"]) == 2 for one in made)
    batch = Experience.concat_experiences([generator._process_response_into_experience(one, **limit) for one in made], pad_token_id=0)
    shown = merge_mm_train_inputs(batch.mm_train_inputs, "cpu")
    new = eyes.logprobs(batch.sequences, batch.attention_mask, mm_token_type_ids=eyes.kinds(batch.sequences), **shown)
    return eyes.worst(rollouts_in_order(eyes), new, batch.action_mask)


def areal(eyes):
    """AReaL's engine makes positions, packs rows and takes the pictures of each part. The hook for a service gives the same tensors."""
    import torch.distributed as dist
    from alidade.loaders.areal import trajectories
    from areal.api.cli_args import MicroBatchSpec
    from areal.engine.fsdp_engine import FSDPEngine
    from areal.infra.workflow_executor import check_trajectory_format
    from areal.utils.data import concat_padded_tensors

    file = f"{eyes.folder}/areal.jsonl"
    rows, made = list(read(file)), trajectories(file, eyes.processor)
    for one, row in zip(made, eyes.rows):
        check_trajectory_format(one, batch_size=1)
        live = areal_hook.trajectory_of({"rows": [row], "pictures": base64_of(eyes, [row])}, eyes.processor)
        [shown], [also] = one.pop("multi_modal_input"), live.pop("multi_modal_input")
        assert all(torch.equal(live[name], one[name]) for name in one) and all(torch.equal(also[name], shown[name]) for name in shown)
        one["multi_modal_input"] = [shown]
    text = f"{eyes.folder}/areal-text.jsonl"
    row = {**rows[0], "input_ids": [3, 4, 5, 6], "loss_mask": [0, 0, 1, 1], "logprobs": [0.0, 0.0, -1.0, -1.0], "versions": [-1, -1, 7, 7]}
    Path(text).write_text(json.dumps({name: value for name, value in row.items() if name != "media"}) + "\n")
    batch = concat_padded_tensors([*made, *trajectories(text, eyes.processor)])

    engine = object.__new__(FSDPEngine)
    engine.logger = logging.getLogger("areal")
    engine.enable_tree_training, engine.model, engine.model_config = False, eyes.model, eyes.model.config
    engine.config = types.SimpleNamespace(mb_spec=MicroBatchSpec(n_mbs=3, max_tokens_per_mb=int(batch["attention_mask"].sum(1).max())), pad_to_maximum=False)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        parts = engine._prepare_mb_list(batch)
    finally:
        dist.destroy_process_group()
    alone = torch.tensor([row["input_ids"]])
    wanted = {tuple(one["input_ids"]): eyes.said[one["rollout_id"]] for one in rows}
    wanted[tuple(row["input_ids"])] = eyes.logprobs(alone, torch.ones_like(alone))[0, 1:]
    masks = {tuple(one["input_ids"]): torch.tensor(one["loss_mask"][1:]).bool() for one in [*rows, row]}
    worst = 0.0
    for item in parts:
        inputs, length = item.padded_mb, int(item.padded_mb["cu_seqlens"][1])
        given = {name: inputs[name] for name in ("input_ids", "position_ids", "attention_mask", "pixel_values", "image_grid_thw") if name in inputs}
        new = eyes.logprobs(given.pop("input_ids"), **given)[0, : length - 1]
        ids = tuple(inputs["input_ids"][0, :length].tolist())
        worst = max(worst, float((new[masks[ids]] - wanted.pop(ids)).abs().max()))
    assert not wanted, "a row is in no part"
    return worst


def tinker(eyes):
    """Checks that the Datum equals the cookbook's own, and that its chunks are the sampled context. A teacher is asked about the same
    context."""
    import io

    from alidade.loaders.tinker import advantages_of, datums, distilled
    from PIL import Image
    from tinker import EncodedTextChunk, ModelInput
    from tinker_cookbook.completers import TokensWithLogprobs
    from tinker_cookbook.rl.data_processing import trajectory_to_data
    from tinker_cookbook.rl.types import Trajectory, Transition

    file = f"{eyes.folder}/tinker.jsonl"
    rows, made = list(read(file)), datums(file)
    advantages = advantages_of(rows)
    worst = 0.0
    for row, one in zip(rows, made):
        inputs = {name: tensor.to_torch() for name, tensor in one.loss_fn_inputs.items()}
        flat, mask = [], [0, *map(int, inputs["mask"].tolist())]
        for chunk in one.model_input.append_int(int(inputs["target_tokens"][-1])).chunks:
            flat.extend([[token] for token in chunk.tokens] if isinstance(chunk, EncodedTextChunk) else [chunk])
        transitions, position, ob = [], 0, ModelInput.empty()
        logprobs = [0.0, *inputs["logprobs"].tolist()]
        for each in flat:
            is_text = isinstance(each, list)
            if is_text and mask[position]:
                transitions.append(Transition(ob, TokensWithLogprobs(tokens=each, maybe_logprobs=[logprobs[position]], stop_reason="stop"), 0.0, False))
            ob = ob.append_int(each[0]) if is_text else ob.append(each)
            position += 1 if is_text else each.length
        [theirs] = trajectory_to_data(Trajectory(transitions=transitions, final_ob=ob), advantages[row["trajectory_id"]])
        assert theirs.model_input.chunks == one.model_input.chunks, "the cookbook has other chunks"
        for name, tensor in theirs.loss_fn_inputs.items():
            assert torch.equal(tensor.to_torch().float(), inputs[name].float()), f"the cookbook has other {name}"
        pad = eyes.processor.image_token_id
        ids = torch.tensor([[token for each in flat for token in (each if isinstance(each, list) else [pad] * each.length)]])
        shown = [Image.open(io.BytesIO(each.data)).convert("RGB") for each in flat if not isinstance(each, list)]
        tensors = eyes.processor.image_processor(images=shown, return_tensors="pt")
        new = eyes.logprobs(ids, torch.ones_like(ids), mm_token_type_ids=eyes.kinds(ids), **tensors)
        worst = max(worst, float((new[0][inputs["mask"].bool()] - eyes.said[row["rollout_id"]]).abs().max()))
    taught = f"{eyes.folder}/tinker-taught.jsonl"
    Path(taught).write_text("".join(json.dumps({**row, "teacher_logprobs": row["loss_fn_inputs"]["logprobs"]}) + "\n" for row in rows))
    for one, other in zip(distilled(taught, kl_penalty_coef=1.0), made):
        assert torch.equal(one.loss_fn_inputs["advantages"].to_torch(), other.loss_fn_inputs["advantages"].to_torch()), "a teacher that agrees moves nothing"
    return worst


def agent_lightning(eyes):
    from agentlightning.verl.rollout_adapter import RolloutAdapter
    from alidade.loaders.agent_lightning import completed_rollouts

    rollouts = completed_rollouts(f"{eyes.folder}/agent-lightning.jsonl", eyes.processor)
    assert [[len(turn.image_urls) for turn in one.triplets] for one in rollouts] == [[1, 2]] * 2, "other pictures"
    longest = max(len(turn.prompt["token_ids"]) + len(turn.response["token_ids"]) for one in rollouts for turn in one.triplets)
    sizes = {"max_prompt_length": longest, "max_response_length": longest, "device": torch.device("cpu"), "pad_token_id": 0}
    batch = RolloutAdapter(**sizes, trace_aggregator_level="transition", processor=eyes.processor).get_train_data_batch(rollouts)[0]
    tensors, others = batch.batch, batch.non_tensor_batch
    assert not tensors["is_drop_mask"].any(), "the adapter drops a row"
    found = {}
    for at, (rollout, inputs) in enumerate(zip(others["rollout_id_list"], others["multi_modal_inputs"])):
        row = {name: tensors[name][at : at + 1] for name in ("input_ids", "attention_mask", "position_ids")}
        given = {name: inputs[name] for name in ("pixel_values", "image_grid_thw")}
        new = eyes.logprobs(row["input_ids"], row["attention_mask"], position_ids=row["position_ids"].transpose(0, 1), **given)[0, longest - 1 :]
        found.setdefault(str(rollout), []).append(new[row["attention_mask"][0, longest:].bool()])
    assert sorted(found) == sorted(eyes.said), "other rollouts"
    return max(float((torch.cat(turns) - eyes.said[rollout]).abs().max()) for rollout, turns in found.items())


def base64_of(eyes, rows):
    """Returns the pictures of the rows, as a service gives them."""
    return {one["sha256"]: base64.b64encode(Path(eyes.pictures, one["sha256"]).read_bytes()).decode() for row in rows for one in row["media"]}


def slime(eyes):
    from alidade.loaders.slime import write_debug_dump

    worst = 0.0
    for name in ("slime", "miles"):
        dump = f"{eyes.folder}/{name}.pt"
        write_debug_dump(f"{eyes.folder}/{name}.jsonl", dump, 0, processor=eyes.processor)
        samples = torch.load(dump, weights_only=False)["samples"]
        assert all(len(one["multimodal_inputs"]["images"]) == 2 and "media" not in one for one in samples)
        for rollout, one in zip(rollouts_in_order(eyes), samples):
            ids = torch.tensor([one["tokens"]])
            new = eyes.logprobs(ids, torch.ones_like(ids), mm_token_type_ids=eyes.kinds(ids), **one["multimodal_train_inputs"])
            gap = (new[0, -one["response_length"] :][torch.tensor(one["loss_mask"]).bool()] - eyes.said[rollout]).abs().max()
            worst = max(worst, float(gap))
    return worst


def prime_rl(eyes):
    """Its types by their documented fields, in their order."""

    class EncodedTensor(msgspec.Struct, array_like=True):
        dtype: str
        shape: list[int]
        data: bytes

    class TrainingSample(msgspec.Struct, array_like=True, omit_defaults=True):
        token_ids: list[int]
        mask: list[bool]
        logprobs: list[float]
        temperatures: list[float]
        env_name: str
        mm_kwargs: dict[str, EncodedTensor] | None = None
        mm_token_type_ids: list[int] | None = None
        advantages: list[float] | None = None

    modules("prime_rl.transports.rollouts.types", EncodedTensor=EncodedTensor, TrainingSample=TrainingSample)
    from alidade.loaders.prime_rl import training_samples

    worst = 0.0
    samples = list(training_samples(f"{eyes.folder}/prime-rl.jsonl", eyes.processor))
    for rollout, one in zip(rollouts_in_order(eyes), samples):
        # Encoded for its wire, and decoded again.
        one = msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=TrainingSample)
        shown = {key: torch.from_numpy(np.frombuffer(bytearray(each.data), each.dtype).reshape(each.shape)) for key, each in one.mm_kwargs.items()}
        ids, kinds = torch.tensor([one.token_ids]), torch.tensor([one.mm_token_type_ids])
        new = eyes.logprobs(ids, torch.ones_like(ids), mm_token_type_ids=kinds, **shown)
        worst = max(worst, float((new[0][torch.tensor(one.mask[1:])] - eyes.said[rollout]).abs().max()))
    return worst


def nemo_rl(eyes):
    class PackedTensor:
        def __init__(self, tensors, dim_to_pack):
            self.tensor, self.dim_to_pack = tensors, dim_to_pack

    modules("nemo_rl.data.multimodal_utils", PackedTensor=PackedTensor)
    from alidade.loaders.nemo_rl import datum

    worst = 0.0
    for row in read(f"{eyes.folder}/nemo-rl.jsonl"):
        log = datum(row, eyes.processor, eyes.pictures)["message_log"]
        ids = torch.cat([message["token_ids"] for message in log])[None]
        shown = {key: torch.cat([message[key].tensor for message in log if key in message]) for key in ("pixel_values", "image_grid_thw")}
        trained = torch.cat([torch.full_like(message["token_ids"], message["role"] == "assistant") for message in log])
        new = eyes.logprobs(ids, torch.ones_like(ids), mm_token_type_ids=eyes.kinds(ids), **shown)
        worst = max(worst, float((new[0][trained[1:].bool()] - eyes.said[row["extra_env_info"]["rollout_id"]]).abs().max()))
    return worst


def refusals(eyes):
    """Each of these is a context that the policy did not see."""
    row, facts = eyes.rows[0], {"pad": eyes.processor.image_token_id, "video": eyes.processor.video_token_id}
    other = Processor(facts, eyes.processor.config, size={"shortest_edge": 3136, "longest_edge": 100 * 100})
    attempts = {
        "settings": lambda: media.tensors(row, eyes.pictures, other),
        "processor": lambda: media.tensors(row, eyes.pictures, Processor({**facts, "pad": 1}, eyes.processor.config)),
        "place": lambda: media.tensors({**row, "media": [{**row["media"][0], "start": 0}, row["media"][1]]}, eyes.pictures, eyes.processor),
        "missing": lambda: media.tensors({**row, "media": row["media"][:1]}, eyes.pictures, eyes.processor),
        "none": lambda: media.tensors(row, eyes.pictures, None),
        "verl": lambda: verl_output_of(next(read(f"{eyes.folder}/verl.jsonl")), base64_of(eyes, [row])),
        "areal": lambda: areal_hook.trajectory_of({"rows": [row], "pictures": base64_of(eyes, [row])}),
        "trainer": lambda: hand_over(types.SimpleNamespace(), [(row, eyes.pictures)]),
        "bytes": lambda: media.tensors(row, {one["sha256"]: "AAAA" for one in row["media"]}, eyes.processor),
    }
    return {name: message_of(attempt) for name, attempt in attempts.items()}


def message_of(attempt):
    try:
        attempt()
    except media.MediaError as error:
        return str(error)
    return "taken"


def swapped(eyes):
    """The largest change of a logprob when the pictures are swapped: the size of the error that the check must see."""
    row = eyes.rows[0]
    one, two = row["media"]
    other = {**row, "media": [{**one, "sha256": two["sha256"]}, {**two, "sha256": one["sha256"]}]}
    return float((eyes.of(other, eyes.processor) - eyes.said[row["rollout_id"]]).abs().max())


def rollouts_in_order(eyes):
    return [row["rollout_id"] for row in eyes.rows]


def modules(name, **members):
    parts = name.split(".")
    for at in range(len(parts)):
        sys.modules.setdefault(".".join(parts[: at + 1]), types.ModuleType(".".join(parts[: at + 1])))
    for parent, child in zip(parts, parts[1:]):
        path = ".".join(parts[: parts.index(child)])
        setattr(sys.modules[path], child, sys.modules[f"{path}.{child}"])
    vars(sys.modules[name]).update(members)


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    eyes = Eyes(sys.argv[1], json.loads(Path(sys.argv[2]).read_text()))
    worst = {one.__name__: one(eyes) for one in (trl, trl_sft, verl, skyrl, openrlhf, areal, tinker, agent_lightning, slime, prime_rl, nemo_rl)}
    print(json.dumps({"worst": worst, "swapped": swapped(eyes), "refused": refusals(eyes)}), file=answers, flush=True)
