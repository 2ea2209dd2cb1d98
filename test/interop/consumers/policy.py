"""The model that sampled what the files say, loaded by transformers: what the trainers' numbers are compared with."""

import copy

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


class Policy:
    #: Whether trainers take an optimizer step; not on the files that are wrong on purpose.
    trains = True

    def __init__(self, folder):
        self.folder = folder
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)

    @property
    def pad(self):
        return self.tokenizer.pad_token_id

    def copy(self):
        """A model of one's own to train."""
        return copy.deepcopy(self.model)

    def step(self, model, loss):
        """One optimizer step on what the trainer's own loss says; the loss must be finite and reach the weights."""
        if not self.trains:
            return
        before = model.lm_head.weight.detach().clone()
        loss.backward()
        torch.optim.SGD(model.parameters(), 0.1).step()
        assert torch.isfinite(loss), f"the loss is {loss}"
        assert not torch.equal(before, model.lm_head.weight), "the loss moves no weight"

    @torch.no_grad()
    def logprobs(self, input_ids, attention_mask=None):
        """Like `next_logprobs`, of the model as it was served."""
        return next_logprobs(self.model, input_ids, torch.ones_like(input_ids) if attention_mask is None else attention_mask)


def next_logprobs(model, input_ids, attention_mask):
    """[B, T] -> [B, T - 1]: entry i is log p(token i + 1 | tokens up to i). Row by row without its padding, which would
    be most of the work; 0 where there is padding."""
    out = torch.zeros(input_ids[:, 1:].shape)
    for row, real in enumerate(attention_mask.bool()):
        ids = input_ids[row, real]
        logits = model(ids[None]).logits[0, :-1].float()
        # Padding is at the ends, so that two neighbours of the row are neighbours here.
        at = torch.nonzero(real)[1:, 0] - 1
        out[row, at] = logits.gather(-1, ids[1:, None])[:, 0] - logits.logsumexp(-1)
    return out


def ratios(new, old, mask):
    """exp(new - old) of the tokens that the mask says are trained; flat."""
    return torch.exp(new.detach().float() - old.float())[mask.bool()]


def refused(what, attempt):
    """Our loader says no where the trainer would go on with something else than what was sampled."""
    try:
        attempt()
    except ValueError:
        return
    raise AssertionError(f"the loader takes {what}")
