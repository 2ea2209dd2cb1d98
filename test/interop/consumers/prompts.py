"""Loads files of `alidade tasks export` by the trainers' own data set code, and prints of each what it makes of the first row.

    VENV/bin/python prompts.py FOLDER     # FOLDER has verl.jsonl, skyrl.jsonl, trl.jsonl, nemo-gym.jsonl, prime-rl.jsonl, slime.jsonl
"""

import json
import os
import sys
from pathlib import Path

os.environ |= {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"}
folder = Path(sys.argv[1])
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import datasets  # noqa: E402
import pandas  # noqa: E402

datasets.disable_caching()


class Tokenizer:
    """Enough for a filter by length."""

    def apply_chat_template(self, messages, **_options):
        return [0] * sum(len(message["content"]) for message in messages)


def verl():
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset

    config = OmegaConf.create({"filter_overlong_prompts_workers": 1, "cache_dir": str(folder / "cache")})
    data = RLHFDataset(str(folder / "verl.jsonl"), Tokenizer(), config)
    row = data[0]
    return len(data), row["raw_prompt"], row["extra_info"]["task_id"], row["data_source"]


def skyrl():
    from skyrl.train.dataset.dataset import PromptDataset

    data = PromptDataset(str(folder / "skyrl.jsonl"), Tokenizer(), 10_000, num_workers=1)
    prompt, _env_class, extras, _uid = data[0]
    return len(data), prompt, extras["task_id"], extras["data_source"]


def trl():
    from trl.data_utils import is_conversational

    data = datasets.load_dataset("json", data_files=str(folder / "trl.jsonl"))["train"]
    row = data[0]
    assert is_conversational({"prompt": row["prompt"]})
    return len(data), row["prompt"], row["task_id"], row["data_source"]


def nemo_gym():
    from nemo_gym.base_resources_server import BaseRunRequest

    rows = [json.loads(line) for line in (folder / "nemo-gym.jsonl").read_text().splitlines()]
    params = BaseRunRequest.model_validate(rows[0]).responses_create_params
    prompt = [{"role": item.role, "content": item.content} for item in params.input]
    return len(rows), prompt, params.metadata["task_id"], params.metadata["data_source"]


def prime_rl():
    from verifiers.v1 import TaskData

    rows = [json.loads(line) for line in (folder / "prime-rl.jsonl").read_text().splitlines()]
    data = TaskData.model_validate({key: value for key, value in rows[0].items() if key in TaskData.model_fields})
    return len(rows), [{"role": "user", "content": data.prompt}], data.id, rows[0]["info"]["data_source"]


def slime():
    # slime is on no index: this is how its Dataset reads a file (slime/utils/data.py).
    table = pandas.read_json(folder / "slime.jsonl", lines=True, dtype={"label": str})
    row = table.iloc[0].to_dict()
    return len(table), row["prompt"], row["metadata"]["task_id"], row["metadata"]["data_source"]


for trainer in (verl, skyrl, trl, nemo_gym, prime_rl, slime):
    print(json.dumps({trainer.__name__.replace("_", "-"): trainer()}), file=answers, flush=True)
