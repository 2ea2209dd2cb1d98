"""Copies the taught model for a vLLM: python untie.py FOLDER

The copy has the embedding a second time, as its output head. vLLM 0.32 on the CPU keeps the old output head of a model with
`tie_word_embeddings` when it reloads the weights. Then it samples with other weights than the trainer has.
"""

import shutil
import sys
from pathlib import Path

import torch
from llama import load, save

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    shutil.copytree(Path(__file__).parent / "model", folder)
    model = load(folder)
    model.config["tie_word_embeddings"] = False
    save(model, folder, torch.bfloat16)
