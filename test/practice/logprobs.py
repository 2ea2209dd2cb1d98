"""Logprobs by transformers. Reads lines `{"folder", "double", "prompts": [ids]}` from standard input. Writes for each line a list
of lists: a logprob for each token but the first. With `double`, a remaining difference is not caused by rounding."""

import json
import sys

import torch
from transformers import AutoModelForCausalLM

for line in sys.stdin:
    asked = json.loads(line)
    model = AutoModelForCausalLM.from_pretrained(asked["folder"], dtype=torch.float64 if asked["double"] else torch.float32).eval()
    found = []
    for prompt in asked["prompts"]:
        ids = torch.tensor([prompt])
        with torch.no_grad():
            logits = model(ids).logits[0, :-1]
        found.append(logits.log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0].tolist())
    print(json.dumps(found), flush=True)
