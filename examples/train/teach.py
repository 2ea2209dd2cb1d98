"""The Python half of teach.ts: python teach.py LESSONS.json FOLDER STEPS"""

import json
import random
import sys
import time

import torch
from llama import Llama, save
from torch.nn import functional as F

CONFIG = {
    "architectures": ["MistralForCausalLM"],    # a Llama with a window
    "model_type": "mistral",
    "vocab_size": 1024,
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,  # the smallest that vLLM's attention takes on the CPU
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "max_position_embeddings": 32768,
    "bos_token_id": None,
    "eos_token_id": 1017,  # <|im_end|>
}
RATE = 6e-3
BATCH = 16
# Half of the steps begin at a random place in the prompt. The others begin so early that earlier tokens have no influence.
LEAST = 20


def main():
    asked, folder, steps = json.load(open(sys.argv[1])), sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(1)  # sums of several threads have another rounding: the same lesson makes the same model
    torch.manual_seed(0)
    pick = random.Random(0)
    model = Llama(CONFIG | {"sliding_window": asked["window"]})
    torch.nn.init.normal_(model.model.embed_tokens.weight, std=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=RATE, total_steps=steps, pct_start=0.1)
    started = time.monotonic()
    for step in range(steps):
        lesson = pick.choice(asked["lessons"])
        prompt = lesson["prompt"]
        if step % 2 == 0:
            prompt = prompt[-pick.randrange(LEAST, len(prompt)) :]
        loss = loss_of(model, prompt, pick.sample(lesson["conversations"], BATCH))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 20 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.4f}, {time.monotonic() - started:.0f} s", flush=True)
    save(model, folder, torch.bfloat16)


def loss_of(model, prompt, conversations):
    """Mean cross-entropy of the tokens that the model learns to say. The shared prompt is computed once."""
    length = max(len(one["ids"]) for one in conversations)
    ids = torch.tensor([one["ids"] + [0] * (length - len(one["ids"])) for one in conversations])
    mask = torch.tensor([one["mask"] + [0] * (length - len(one["mask"])) for one in conversations]).bool()[:, 1:]
    hidden, _ = model(ids, model.read(torch.tensor([prompt])))
    return F.cross_entropy(model.logits(hidden[:, :-1][mask]), ids[:, 1:][mask])


if __name__ == "__main__":
    main()
