"""Teaches the tiny model to play by itself: it learns plays.json by heart and then calls tools with nothing forced.

    python teach.py TINY_MODEL PLAYS.json FOLDER [--steps N]

A play is a whole turn of an assistant. Which tool it calls and whether a step is left stands in the last messages, so
that any order of turns is a fine session, of any length; which of them it takes is the model's free choice. The
conversations that it learns from are made up here: sources of pinned packages in the place of a harness's prompts,
and results as the plays' own tools would give them. Prints the share of the model's probability that is on the plays,
in conversations of lengths that it has seen and has not.
"""

import argparse
import json
import os
import random
import re
import time
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from make_tiny_model import training_text
from transformers import AutoTokenizer, Qwen2ForCausalLM

CALL = '<tool_call>\n{"name": "$TOOL", "arguments": {"$ARGUMENT": %s}}\n</tool_call>'
# Lengths in tokens. Most steps are short conversations side by side, which is where the plays are learned; every
# LONG_EVERY-th is one behind a long prompt, so that far tokens do not come to matter.
SHORT, LONG, BATCH, LONG_EVERY = 1024, 8192, 4, 6
RATE = 4e-3


class Plays:
    """What the model shall say with each tool, as text and as tokens."""

    def __init__(self, file: Path, tokenizer):
        self.spec = json.loads(file.read_text("utf-8"))
        self.tools = self.spec["tools"]
        self.tokenizer = tokenizer
        self.turns = {tool: [self.fill(text, tool) for text in self.spec["turns"]] for tool in self.tools}
        self.answers = {tool: [self.fill(text, tool) for text in self.spec["answers"]] for tool in self.tools}

    def fill(self, text: str, tool: str, number: int = 0) -> str:
        text = re.sub(r"\[\[(.*?)\]\]", lambda match: CALL % json.dumps(match[1], ensure_ascii=False), text)
        spec = self.tools[tool]
        return text.replace("$TOOL", tool).replace("$ARGUMENT", spec["argument"]).replace("$KIND", spec["kind"]).replace("$N", str(number))

    def after(self, prompt: list[int]) -> list[str]:
        """The plays for this place, by what is said last."""
        text = self.tokenizer.decode(prompt)
        tool = max(self.tools, key=lambda name: text.rfind(" " + self.tools[name]["kind"]))
        return (self.answers if "biconnected" in text else self.turns)[tool]

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False)


class Conversations:
    """Makes up conversations: token ids with the mask of what the model shall learn to say."""

    def __init__(self, plays: Plays, seed: int):
        self.plays = plays
        self.random = random.Random(seed)
        self.filler = plays.encode("".join(training_text())[:2_000_000])
        # What tells the model whose turn it is and when to stop stands nowhere else.
        for mark in [spec["kind"] for spec in plays.tools.values()] + ["biconnected"]:
            (token,) = plays.encode(" " + mark)
            self.filler = [one for one in self.filler if one != token]
        self.open_user = plays.encode("<|im_start|>user\n")
        self.open_assistant = plays.encode("<|im_start|>assistant\n")
        self.close = plays.encode("<|im_end|>")
        self.line = plays.encode("\n")

    def make(self, length: int) -> tuple[list[int], list[bool]]:
        """One conversation, cut at `length` tokens."""
        pick = self.random
        tool = pick.choice(list(self.plays.tools))
        ids = self.head(tool, pick.randrange(length * 3 // 4))
        mask = [False] * len(ids)
        last = pick.randrange(2, 12)
        step = pick.randrange(40)
        altered = pick.random() < 0.3  # earlier turns come back as another serialiser would have written them
        for turn in range(last + 1):
            said = pick.choice(self.plays.answers[tool] if turn == last else self.plays.turns[tool])
            learned = self.plays.encode(said) + self.close
            if altered and turn < last and pick.random() < 0.7:
                shown = self.plays.encode(alter(said, pick)) + self.close
                ids += shown
                mask += [False] * len(shown)
            else:
                ids += learned
                mask += [True] * len(learned)
            if turn == last or len(ids) > length:
                break
            step += 1
            heard = self.line + self.results(said, tool, step, turn + 1 == last) + self.open_assistant
            ids += heard
            mask += [False] * len(heard)
        return ids[:length], mask[:length]

    def head(self, tool: str, length: int) -> list[int]:
        pick = self.random
        encode = self.plays.encode
        functions = [json.dumps(self.function(pick.choice(NAMES))) for _ in range(pick.randrange(6))]
        functions.insert(pick.randrange(len(functions) + 1), json.dumps(self.function(tool)))
        listed = encode("\n\n# Functions\n<tools>\n" + "\n".join(functions) + "\n</tools>\n")
        system = encode("<|im_start|>system\n") + self.words(length) + listed + self.words(pick.randrange(60)) + self.close
        asked = encode(self.plays.fill(self.plays.spec["instruction"], tool))
        before = self.words(pick.randrange(80)) if pick.random() < 0.3 else []
        after = self.words(pick.randrange(300)) if pick.random() < 0.3 else []
        ids = system + self.line + self.open_user + before + asked + after + self.close + self.line
        # As if something else had been said before it: a prompt may begin anywhere.
        cut = pick.randrange(len(system)) if pick.random() < 0.5 else 0
        return ids[cut:] + self.open_assistant

    def function(self, name: str) -> dict:
        argument = self.plays.tools[name]["argument"] if name in self.plays.tools else self.random.choice(NAMES)
        properties = {argument: {"type": "string", "description": self.text(20)}}
        parameters = {"type": "object", "properties": properties, "required": [argument]}
        return {"type": "function", "function": {"name": name, "description": self.text(40), "parameters": parameters}}

    def results(self, said: str, tool: str, step: int, last: bool) -> list[int]:
        pick = self.random
        parts = []
        for command in re.findall(r'"\s*:\s+"((?:[^"\\]|\\.)*)"\s*}}', said) or ["./next"]:
            if "./next" in command:
                spec = self.plays.spec["last" if last else "step"]
                result = self.plays.fill(spec, tool, step)
                if not last and pick.random() < 0.1:
                    result = pick.choice(["sh: 1: nxt: not found", "(no output)", "", self.text(30)])
            else:
                result = pick.choice(["/work", "next\nnotes.txt", 'a "naïve" note', "", self.text(20)])
            parts.append(f"<tool_response>\n{wrap(result, pick)}\n</tool_response>")
        ids = self.open_user + self.plays.encode("\n".join(parts))
        if pick.random() < 0.1:
            ids += self.words(pick.randrange(60))
        return ids + self.close + self.line

    def words(self, length: int) -> list[int]:
        start = self.random.randrange(len(self.filler) - length - 1)
        return self.filler[start : start + length]

    def text(self, length: int) -> str:
        return self.plays.tokenizer.decode(self.words(self.random.randrange(length)))


NAMES = ["read", "edit", "write", "Read", "Edit", "Write", "update_plan", "view_image", "write_stdin", "grep", "replace", "glob"]


def wrap(result: str, pick: random.Random) -> str:
    """A result as harnesses hand it on: bare, behind what they measured, or in marks."""
    code = pick.choice([0, 0, 0, 1, 127])
    return pick.choice(
        [
            result,
            result + "\n",
            f"Wall time: 0.{pick.randrange(1000)} seconds\nProcess exited with code {code}\nOutput:\n{result}\n",
            f"Chunk ID: {pick.randrange(16**6):x}\nWall time: 0.{pick.randrange(1000)} seconds\nOutput:\n{result}",
            f"<returncode>{code}</returncode>\n<output>\n{result}\n</output>",
            json.dumps({"returncode": code, "output": result, "exception_info": ""}, indent=2, ensure_ascii=False),
            f"Output: {result}\nProcess Group PGID: {pick.randrange(30000)}",
        ]
    )


def alter(said: str, pick: random.Random) -> str:
    """The turn without its thought, or with its arguments written as another serialiser does."""
    if pick.random() < 0.5:
        said = re.sub(r"<think>.*?</think>\n\n", "", said, flags=re.DOTALL)
    return re.sub(r'\{"name":"(\w+)","arguments":\{ "(\w+)" :  ("[^"]*") \}\}', r'{"name": "\1", "arguments": {"\2": \3}}', said)


def teach(model, conversations: Conversations, steps: int) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=RATE, total_steps=steps, pct_start=0.1)
    started = time.time()
    for step in range(steps):
        long = step % LONG_EVERY == LONG_EVERY - 1
        loss = loss_of(model, [conversations.make(LONG if long else SHORT) for _ in range(1 if long else BATCH)])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.4f}, {time.time() - started:.0f} s", flush=True)


def loss_of(model, batch) -> torch.Tensor:
    """Mean cross-entropy of the learned tokens; only they reach the output layer."""
    length = max(len(ids) for ids, _ in batch)
    ids = torch.tensor([ids + [0] * (length - len(ids)) for ids, _ in batch])
    mask = torch.tensor([mask + [False] * (length - len(mask)) for _, mask in batch])
    # Padding is on the right, where causal attention does not look: no attention mask is needed.
    hidden = model.model(ids).last_hidden_state[:, :-1][mask[:, 1:]]
    return torch.nn.functional.cross_entropy(model.lm_head(hidden), ids[:, 1:][mask[:, 1:]])


@torch.no_grad()
def share_on_plays(model, plays: Plays, prompt: list[int], texts: list[str], close: list[int]) -> float:
    """The probability that a free sample after `prompt` is one of `texts`, exactly and with its end."""
    past = model.model(torch.tensor([prompt[:-1]]), use_cache=True).past_key_values
    total = 0.0
    for text in texts:
        target = plays.encode(text) + close
        hidden = model.model(torch.tensor([prompt[-1:] + target[:-1]]), past_key_values=past, use_cache=True).last_hidden_state[0]
        past.crop(len(prompt) - 1)
        logprobs = torch.log_softmax(model.lm_head(hidden), -1)
        total += logprobs[range(len(target)), target].sum().exp().item()
    return total


def examine(model, plays: Plays) -> None:
    conversations = Conversations(plays, seed=1)
    for length in [300, 1000, 3000, 10000]:
        found = []
        while len(found) < 24:
            ids, mask = conversations.make(length)
            starts = [at for at in range(1, len(ids)) if mask[at] and not mask[at - 1]]
            if starts:
                prompt = ids[: starts[-1]]
                found.append(share_on_plays(model, plays, prompt, plays.after(prompt), conversations.close))
        print(f"{length} tokens: {sum(found) / len(found):.3f} on the plays, {min(found):.3f} at the least", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("plays", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=1000)
    given = parser.parse_args()
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(given.model)
    model = Qwen2ForCausalLM.from_pretrained(given.model, dtype=torch.float32).train()
    plays = Plays(given.plays, tokenizer)
    teach(model, Conversations(plays, seed=0), given.steps)
    examine(model.eval(), plays)
    model.save_pretrained(given.folder)
    tokenizer.save_pretrained(given.folder)


if __name__ == "__main__":
    main()
