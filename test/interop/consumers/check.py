"""Loads files of our exporters by the trainers' own code and prints one line of JSON for each.

    VENV/bin/python check.py MODEL_FOLDER REQUEST.json

REQUEST: a list of {"trainer": "verl", "file": …, "shifted": …}. The shifted file has every logprob one token late: the
trainer's numbers must show it. A line says the trainer's version, how many tokens it trains, the worst |ratio - 1| of
both files, and the seconds; or the error.
"""

import importlib
import importlib.metadata
import json
import os
import sys
import time
import traceback
from pathlib import Path

os.environ |= {
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "TORCH_COMPILE_DISABLE": "1",  # AReaL compiles its gathering of logprobs: half a minute for nothing
    "TRL_EXPERIMENTAL_SILENCE": "1",
    "WANDB_MODE": "disabled",
}
here = Path(__file__).parent
sys.path[:0] = [str(here), str(here.parents[2] / "clients" / "python")]


def worst(ratios):
    return (ratios - 1).abs().max().item() if len(ratios) else None


def check(trainer, file, shifted, policy):
    started = time.time()
    module = importlib.import_module(f"trainers.{trainer}")
    imported = time.time() - started
    policy.trains = True
    good = module.ratios_of(file, policy)
    policy.trains = False
    bad = module.ratios_of(shifted, policy)
    version = importlib.metadata.version(module.PACKAGE)
    seconds = {"import_seconds": round(imported, 1), "seconds": round(time.time() - started, 1)}
    return {"version": version, "trained": len(good), "worst": worst(good), "shifted": worst(bad), **seconds}


def main(folder, request):
    # What trainers print must not mix with what this prints.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from policy import Policy

    policy = Policy(folder)
    for entry in json.loads(Path(request).read_text()):
        try:
            answer = check(entry["trainer"], entry["file"], entry["shifted"], policy)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"trainer": entry["trainer"], **answer}), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
