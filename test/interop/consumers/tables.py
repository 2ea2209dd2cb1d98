"""TRL's SFT and DPO trainers and pyarrow on files of ours, one optimizer step each: what they train is what we wrote.

    VENV/bin/python tables.py FOLDER      with sft.jsonl, dpo.jsonl, flat.jsonl and flat.parquet; prints one line of JSON
"""

import json
import os
import sys
from pathlib import Path

os.environ |= {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1", "WANDB_MODE": "disabled"}
sys.path.insert(0, str(Path(__file__).parents[3] / "clients" / "python"))

import pyarrow.parquet
import torch
from alidade import read
from alidade.loaders.trl import dpo_trainer, preferences
from datasets import load_dataset
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import DPOConfig, SFTConfig, SFTTrainer

vocabulary = 64


def model():
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, max_position_embeddings=128, pad_token_id=61, eos_token_id=2, **sizes))


def tokenizer():
    words = {f"w{at}": at for at in range(vocabulary)}
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w63")), pad_token="w61", eos_token="w2")


def settings(config, rows, folder, **more):
    common = {"max_steps": 1, "learning_rate": 1e-2, "use_cpu": True, "bf16": False, "report_to": [], "save_strategy": "no"}
    return config(output_dir=folder, per_device_train_batch_size=rows, gradient_checkpointing=False, **common, **more)


def trained(trainer):
    """The first batch, after a step that moved the weights."""
    batch = next(iter(trainer.get_train_dataloader()))
    before = trainer.model.lm_head.weight.detach().clone()
    trainer.train()
    assert not torch.equal(before, trainer.model.lm_head.weight), "the optimizer step moved no weight"
    return batch


def sft(folder):
    dataset = load_dataset("json", data_files=f"{folder}/sft.jsonl", split="train", cache_dir=f"{folder}/cache")
    args = settings(SFTConfig, len(dataset), f"{folder}/out")
    batch = trained(SFTTrainer(model=model(), args=args, train_dataset=dataset, processing_class=tokenizer()))
    return sorted([id for id in row if id != -100] for row in batch["labels"].tolist())


def dpo(folder):
    dataset = preferences(f"{folder}/dpo.jsonl")
    args = settings(DPOConfig, len(dataset), f"{folder}/out")
    batch = trained(dpo_trainer()(model=model(), ref_model=model(), args=args, train_dataset=dataset, processing_class=tokenizer()))
    mask = batch["completion_mask"].tolist()
    return [[id for id, kept in zip(row, keep) if kept] for row, keep in zip(batch["input_ids"].tolist(), mask)]


def parquet(folder):
    """Whether both files say the same. What a row of JSON lacks is null in a table, which has each column for all rows."""
    rows = pyarrow.parquet.read_table(f"{folder}/flat.parquet").to_pylist(maps_as_pydicts="strict")
    flat = [dict(row) for row in read(f"{folder}/flat.jsonl")]
    return rows == [{**dict.fromkeys(row), **own} for row, own in zip(rows, flat, strict=True)]


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    (folder,) = sys.argv[1:]
    print(json.dumps({"sft": sft(folder), "dpo": dpo(folder), "parquet": parquet(folder)}), file=answers, flush=True)
