"""A teacher's logprobs of our files as verl and tinker-cookbook read them, by their own code.

    VENV/bin/python teachers.py VERL.jsonl TINKER.jsonl

Prints one JSON object: what verl's response slice gives, its distillation loss against the same numbers and against numbers one token
late, whether its own padding gives our batch; and what tinker-cookbook adds to each advantage.
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


print(json.dumps({"verl": by_verl(sys.argv[1]), "tinker": by_tinker(sys.argv[2])}), file=answers)
