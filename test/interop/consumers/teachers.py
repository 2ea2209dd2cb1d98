"""A teacher's logprobs of our files as verl and tinker-cookbook read them, by their own code.

    VENV/bin/python teachers.py VERL.jsonl TINKER.jsonl TRL.jsonl VERL_TOP.jsonl

Prints one JSON object: what verl's response slice gives, its distillation loss against the same numbers and against numbers one token
late, whether its own padding gives our batch; what tinker-cookbook adds to each advantage; which candidates TRL's collator and support
of its divergence leave at each trained token; and the loss of verl's forward KL over the likeliest tokens, beside our own sum.
"""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[3] / "clients" / "python"))
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import torch
from alidade import read
from alidade.loaders import tinker, verl
from verl.experimental.teacher_loop.teacher_manager import _pad_teacher_outputs
from verl.trainer.distillation.losses import compute_distillation_loss_reverse_kl_estimator
from verl.utils.tensordict_utils import list_of_dict_to_tensordict
from verl.workers.utils.padding import no_padding_2_padding


def by_verl(file):
    rows = list(read(file))
    _, fields, _ = verl.transfer_queue(rows, global_steps=7)
    batch = list_of_dict_to_tensordict(fields)
    teacher = batch["teacher_logprobs"]
    sliced = no_padding_2_padding(teacher, batch).squeeze(-1)
    settings = SimpleNamespace(distillation_loss=SimpleNamespace(loss_mode="k1"))

    def loss(student):
        nested = torch.nested.as_nested_tensor(student, layout=torch.jagged)
        losses, _ = compute_distillation_loss_reverse_kl_estimator(None, settings, {"log_probs": nested}, batch)
        return losses[batch["response_mask"].bool().to_padded_tensor(False)].abs().max().item()

    whole = [one.squeeze(-1) for one in teacher.unbind()]
    prompt, response = (max(len(row[name]) for row in rows) for name in ("prompts", "responses"))
    ours = verl.data_proto(rows, prompt_length=prompt, response_length=response, pad_token_id=0).batch
    for at, row in enumerate(rows):
        sizes = (prompt, response, len(row["prompts"]), len(row["responses"]))
        ids, logprobs = _pad_teacher_outputs(fields[at]["teacher_ids"], fields[at]["teacher_logprobs"], *sizes, 0)
        assert torch.equal(ids[0], ours["teacher_ids"][at]) and torch.equal(logprobs[0], ours["teacher_logprobs"][at])
    return {"response": sliced.tolist(), "same": loss(whole), "late": loss([one.roll(1) for one in whole])}


def by_tinker(file):
    plain, taught = tinker.datums(file), tinker.distilled(file, kl_penalty_coef=1.0)
    numbers = lambda datum, name: datum.loss_fn_inputs[name].to_torch()
    return [(numbers(after, "advantages") - numbers(before, "advantages")).tolist() for before, after in zip(plain, taught)]


def by_trl(file):
    import numpy as np
    from alidade.loaders.trl import distillation_samples
    from trl.experimental.async_distillation import async_distillation_trainer as trainer

    samples = list(distillation_samples(file))
    examples = [{name: getattr(sample, name) for name in sample.__slots__} for sample in samples]
    batch = trainer.DataCollatorForRollout(pad_token_id=0)([[examples]])
    # The trainer's own shift and its own choice of candidates.
    ids, logprobs = batch["teacher_topk_ids"][:, 1:], batch["teacher_topk_logprobs"][:, 1:]
    actual, mask = batch["input_ids"][:, 1:], batch["completion_mask"][:, 1:].bool()
    narrow, support, valid = trainer._narrow_top1_actual_support(ids, logprobs, actual, ids != -1, 0.5)
    return {"narrow": narrow[mask].tolist(), "support": support[mask].tolist(), "valid": bool(valid[mask].all()), "none": not bool((ids != -1)[~mask].any())}


def by_verl_top(file):
    from verl.trainer.distillation.fsdp.losses import compute_forward_kl_topk

    _, fields, _ = verl.transfer_queue(list(read(file)), global_steps=7)
    torch.manual_seed(1)
    worst = 0
    for field in fields:
        ids, logprobs = field["teacher_ids"][None].long(), field["teacher_logprobs"][None]
        logits = torch.randn(1, ids.shape[1], int(ids.max()) + 1)
        settings = SimpleNamespace(distillation_loss=SimpleNamespace(log_prob_min_clamp=None, chunk_size=None))
        one = lambda tensor: torch.nested.as_nested_tensor([tensor[0]], layout=torch.jagged)
        given = compute_forward_kl_topk(logits, one(logprobs), one(ids), settings, "bshd")["distillation_losses"]
        student = logits.log_softmax(-1).gather(-1, ids)
        wanted = (logprobs.exp() * (logprobs - student)).sum(-1)
        # Entry i is about token i + 1, which is the first of the response behind the last of the prompt.
        start = len(field["prompts"]) - 1
        mask = field["response_mask"].bool()
        worst = max(worst, (given - wanted)[0, start:-1][mask].abs().max().item())
    return worst


print(json.dumps({"trl": by_trl(sys.argv[3]), "verl_top": by_verl_top(sys.argv[4]), "verl": by_verl(sys.argv[1]), "tinker": by_tinker(sys.argv[2])}), file=answers)
