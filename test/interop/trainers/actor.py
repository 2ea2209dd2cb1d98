"""What stands in for the GPUs of every trainer: one small model on the CPU, its optimizer, and its way into the engine."""

import json
import os
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from alidade import Service
from alidade.vllm import reload_weights

SAMPLES = 4
TASKS = ("sea", "desert")
STEPS = 3


class Rig:
    """The running service and the engine of `start-rig.ts`, and the set of one trainer."""

    def __init__(self, folder, trainer):
        self.folder, self.key = Path(folder), f"live-{trainer}"
        with open(self.folder / "rig.json") as file:
            found = json.load(file)
        self.engine, self.policy = found["engine"], found["policy"]
        self.tasks, self.samples, self.steps = (found.get(name, usual) for name, usual in (("tasks", TASKS), ("samples", SAMPLES), ("steps", STEPS)))
        #: What the trainer is configured with besides, when its rewards are to rise; None: it only takes its steps.
        self.learning = found.get("learning")
        with open(self.folder / "runs/service/service.json") as file:
            address = json.load(file)
        self.address = {"url": address["url"], "token": address["token"]}
        self.service = Service(**self.address)

    def set(self):
        return self.service.set(self.key, samples=self.samples)


class Actor:
    def __init__(self, rig):
        self.rig = rig
        self.model = AutoModelForCausalLM.from_pretrained(rig.policy, dtype=torch.float32).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(rig.policy)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.02)

    def load(self, version):
        """Into the engine; the body of the fence."""
        assert self.rig.service.request("GET", "/health")["fences"], "the weights move while the gate is open"
        self.model.save_pretrained(self.rig.policy)
        reload_weights(self.rig.engine, version)

    def logprobs(self, ids, last=None):
        """[T] -> [T - 1]: entry i is log p(token i + 1 | tokens up to i). `last`: computes only this many tokens at the end; the others are 0."""
        last = len(ids) - 1 if last is None else last
        begin = max(0, len(ids) - last - self.reach)
        at = torch.arange(begin, len(ids))[None]
        logits = self.model(ids[None, begin:], position_ids=at, logits_to_keep=last + 1).logits[0, :-1].float()
        found = logits.gather(-1, ids[len(ids) - last :, None])[:, 0] - logits.logsumexp(-1)
        return torch.cat([torch.zeros(len(ids) - 1 - last), found])

    @property
    def reach(self):
        """How many earlier tokens influence one: a window for each layer. Tokens before these need not be computed."""
        config = self.model.config
        window = getattr(config, "sliding_window", None)
        return window * config.num_hidden_layers if window else config.max_position_embeddings

    def compared(self, live, exported):
        """The trainer's loss of both, and how far apart their gradients are: a loss of centred rewards is near 0 by itself."""
        weight = self.model.lm_head.weight
        gradients = [torch.autograd.grad(loss, weight, retain_graph=True)[0] for loss in (live, exported)]
        apart = (gradients[0] - gradients[1]).abs().max() / gradients[0].abs().max()
        return {"loss": live.item(), "exported": exported.item(), "apart": apart.item()}

    def step(self, loss):
        assert torch.isfinite(loss), f"the loss is {loss}"
        before = self.model.lm_head.weight.detach().clone()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        assert not torch.equal(before, self.model.lm_head.weight), "the loss moves no weight"


def worst(new, old, mask):
    """The largest |ratio - 1| of a trained token, and how many tokens are trained."""
    found = torch.exp(new.detach().float() - old.float())[mask.bool()]
    return {"worst": (found - 1).abs().max().item(), "tokens": len(found)}


def exported(rig, keys, format):
    """The rows of these groups as a whole, as an export writes them; groups in the order of the keys."""
    return [row for group in groups(rig, keys, format) for row in group["rows"]]


def groups(rig, keys, format):
    """What the service has of these groups, in the order of the keys."""
    run, found = rig.set(), {}
    after = None
    while set(keys) - found.keys():
        for line in rig.service.stream(f"/sets/{run.id}/results", {"whole_groups": "true", "format": format, "payload": "rows", "after": after, "wait": 5}, 5):
            after = line["cursor"]
            found[line["results"][0]["group_key"]] = line
    return [found[key] for key in keys]


answers = os.fdopen(os.dup(1), "w")


def say(**line):
    print(json.dumps(line), file=answers, flush=True)


def quiet():
    """What trainers print goes to stderr."""
    sys.stdout.flush()
    os.dup2(2, 1)
