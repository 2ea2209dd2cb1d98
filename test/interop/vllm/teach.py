"""Teaches the tiny model to play by itself: it learns plays.json by heart and then calls tools with nothing forced.

    python teach.py TINY_MODEL PLAYS.json FOLDER

A play is a whole turn of an assistant. Which tool it calls and whether a step is left stands in the last messages, so
that any order of turns is a fine session, of any length; thought, words and calls are the model's free choice. The
conversations that it learns from are made up here: sources of pinned packages in the place of a harness's prompts,
and results as the plays' own tools would give them. Prints the share of free samples that are plays, in conversations
of lengths that it has seen and has not.
"""

import argparse
import itertools
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
# In another spacing and with escapes, as no serialiser writes it.
ODD_CALL = '<tool_call>\n{"name":"$TOOL","arguments":{ "$ARGUMENT" :  "%s" }}\n</tool_call>'
# The places of a turn that decide whether it can be used at all: the tool's name, and whether it thinks of an end.
DECISIONS = re.compile(r'"name":\s*"(\w+)|^<think>\n(\S*)|</think>\n\n(\S+)')
# First all tokens alike, then with this weight on the decisions: they are few, and a wrong one costs the mean loss little.
# In the second phase the instruction may stand further up, too: some harnesses say much behind it.
PHASES = [{"steps": 1200, "weight": 1.0, "after": 300, "rate": 4e-3}, {"steps": 400, "weight": 10.0, "after": 1500, "rate": 1.5e-3}]
# Lengths in tokens. Most steps are short conversations side by side, which is where the plays are learned; every
# LONG_EVERY-th is one behind a long prompt, so that far tokens do not come to matter.
SHORT, LONG, BATCH, LONG_EVERY = 1024, 8192, 4, 6


class Plays:
    """What the model shall say: any thought before any words before any calls, or a thought and an answer."""

    def __init__(self, file: Path, tokenizer):
        self.spec = json.loads(file.read_text("utf-8"))
        self.tools = self.spec["tools"]
        self.tokenizer = tokenizer

    def turn(self, tool: str, thought: str, words: str, commands: list[str]) -> str:
        calls = [ODD_CALL % one[1:] if one[0] == "~" else CALL % json.dumps(one, ensure_ascii=False) for one in commands]
        return self.fill(f"<think>\n{thought}\n</think>\n\n{words}" + "\n".join(calls), tool)

    def all(self, tool: str, last: bool) -> set[str]:
        spec = self.spec
        if last:
            return {self.turn(tool, thought, answer, []) for thought in spec["last_thoughts"] for answer in spec["answers"]}
        parts = itertools.product(spec["thoughts"], spec["words"], spec["calls"])
        return {self.turn(tool, *each) for each in parts}

    def fill(self, text: str, tool: str, number: int = 0) -> str:
        spec = self.tools[tool]
        return text.replace("$TOOL", tool).replace("$ARGUMENT", spec["argument"]).replace("$KIND", spec["kind"]).replace("$N", str(number))

    def fitting(self, prompt: list[int]) -> set[str]:
        """The plays for this place, by what is said last."""
        text = self.tokenizer.decode(prompt)
        tool = max(self.tools, key=lambda name: text.rfind(" " + self.tools[name]["kind"]))
        return self.all(tool, last="biconnected" in text)

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False)


class Conversations:
    """Makes up conversations: token ids, each with its weight in what the model shall learn to say."""

    def __init__(self, plays: Plays, seed: int, weight: float = 1.0, after: int = 300):
        self.plays = plays
        self.weight = weight
        self.after = after
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

    def make(self, length: int) -> tuple[list[int], list[float]]:
        """One conversation, cut at `length` tokens."""
        pick = self.random
        tool = pick.choice(list(self.plays.tools))
        ids = self.head(tool, pick.randrange(length * 3 // 4))
        mask = [0.0] * len(ids)
        last = pick.randrange(2, 12)
        step = pick.randrange(40)
        altered = pick.random() < 0.3  # earlier turns come back as another serialiser would have written them
        for turn in range(last + 1):
            said, commands = self.say(tool, turn == last)
            learned, weights = self.weigh(said)
            if altered and turn < last and pick.random() < 0.7:
                shown = self.plays.encode(alter(said, pick)) + self.close
                ids += shown
                mask += [0.0] * len(shown)
            else:
                ids += learned
                mask += weights
            if turn == last or len(ids) > length:
                break
            step += 1
            heard = self.line + self.results(commands, tool, step, turn + 1 == last) + self.open_assistant
            ids += heard
            mask += [0.0] * len(heard)
        return ids[:length], mask[:length]

    def weigh(self, said: str) -> tuple[list[int], list[float]]:
        spans = [match.span(match.lastindex) for match in DECISIONS.finditer(said)]
        encoded = self.plays.tokenizer(said, add_special_tokens=False, return_offsets_mapping=True)
        weights = [
            self.weight if any(start < end_of and begin < end for begin, end_of in spans) else 1.0
            for start, end in encoded["offset_mapping"]
        ]
        return encoded["input_ids"] + self.close, [*weights, 1.0]

    def say(self, tool: str, last: bool) -> tuple[str, list[str]]:
        pick, spec = self.random, self.plays.spec
        if last:
            return self.plays.turn(tool, pick.choice(spec["last_thoughts"]), pick.choice(spec["answers"]), []), []
        commands = pick.choice(spec["calls"])
        return self.plays.turn(tool, pick.choice(spec["thoughts"]), pick.choice(spec["words"]), commands), commands

    def head(self, tool: str, length: int) -> list[int]:
        pick = self.random
        encode = self.plays.encode
        functions = [json.dumps(self.function(pick.choice(NAMES))) for _ in range(pick.randrange(6))]
        functions.insert(pick.randrange(len(functions) + 1), json.dumps(self.function(tool)))
        listed = encode("\n\n# Functions\n<tools>\n" + "\n".join(functions) + "\n</tools>\n")
        system = encode("<|im_start|>system\n") + self.words(length) + listed + self.words(pick.randrange(60)) + self.close
        asked = encode(self.plays.fill(self.plays.spec["instruction"], tool))
        before = self.words(pick.randrange(80)) if pick.random() < 0.3 else []
        after = self.words(pick.randrange(self.after)) if pick.random() < 0.3 else []
        ids = system + self.line + self.open_user + before + asked + after + self.close + self.line
        # As if something else had been said before it: a prompt may begin anywhere.
        cut = pick.randrange(len(system)) if pick.random() < 0.5 else 0
        return ids[cut:] + self.open_assistant

    def function(self, name: str) -> dict:
        argument = self.plays.tools[name]["argument"] if name in self.plays.tools else self.random.choice(NAMES)
        properties = {argument: {"type": "string", "description": self.text(20)}}
        parameters = {"type": "object", "properties": properties, "required": [argument]}
        return {"type": "function", "function": {"name": name, "description": self.text(40), "parameters": parameters}}

    def results(self, commands: list[str], tool: str, step: int, last: bool) -> list[int]:
        pick = self.random
        parts = []
        for command in commands:
            if "./next" in command or "./walk" in command:
                spec = self.plays.spec["last" if last else "step"]
                result = self.plays.fill(spec, tool, step)
                if not last and pick.random() < 0.1:
                    result = pick.choice(["sh: 1: nxt: not found", "(no output)", "", self.text(30)])
            else:
                result = pick.choice(["/work", "next\nnotes.txt\nwalk", 'a "naïve" note', "", self.text(20)])
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


def teach(model, conversations: Conversations, steps: int, rate: float) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate, total_steps=steps, pct_start=0.1)
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
    """Weighted mean of the cross-entropy of the learned tokens; only they reach the output layer."""
    length = max(len(ids) for ids, _ in batch)
    ids = torch.tensor([ids + [0] * (length - len(ids)) for ids, _ in batch])
    weights = torch.tensor([mask + [0.0] * (length - len(mask)) for _, mask in batch])[:, 1:]
    # Padding is on the right, where causal attention does not look: no attention mask is needed.
    hidden = model.model(ids).last_hidden_state[:, :-1][weights > 0]
    each = torch.nn.functional.cross_entropy(model.lm_head(hidden), ids[:, 1:][weights > 0], reduction="none")
    return (each * weights[weights > 0]).sum() / weights.sum()


FREELY = {"max_new_tokens": 200, "do_sample": True, "temperature": 1.0, "top_p": 1.0, "top_k": 0}


@torch.no_grad()
def examine(model, plays: Plays) -> None:
    """Prints the share of free samples that are plays, word for word and with their end."""
    conversations = Conversations(plays, seed=99)
    (end,) = conversations.close
    for length in [500, 10000]:
        good = told = 0
        while told < 40:
            ids, mask = conversations.make(length)
            starts = [at for at in range(1, len(ids)) if mask[at] and not mask[at - 1]]
            if not starts:
                continue
            prompt = ids[: starts[-1]]
            drawn = model.generate(torch.tensor([prompt]), **FREELY, eos_token_id=end, pad_token_id=end)[0, len(prompt) :].tolist()
            said = plays.tokenizer.decode(drawn[:-1]) if drawn[-1] == end else ""
            told += 1
            good += said in plays.fitting(prompt)
        print(f"{length} tokens: {good} of {told} free samples are plays", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("plays", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(given.model)
    model = Qwen2ForCausalLM.from_pretrained(given.model, dtype=torch.float32).train()
    plays = Plays(given.plays, tokenizer)
    for seed, phase in enumerate(PHASES):
        teach(model, Conversations(plays, seed, phase["weight"], phase["after"]), phase["steps"], phase["rate"])
    examine(model.eval(), plays)
    model.save_pretrained(given.folder)
    tokenizer.save_pretrained(given.folder)


if __name__ == "__main__":
    main()
