"""Logprobs of texts by transformers: reads `{"folder", "double", "prompts": [ids]}` a line from standard input, and writes for each
line a list of lists, for each token but the first. In double precision what is left of a difference is not rounding."""

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
