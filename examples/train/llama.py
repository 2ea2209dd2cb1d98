"""A Llama whose tokens see a window of the tokens before them (a Mistral), in plain PyTorch, and its files.

With it `npm run train` needs neither transformers nor safetensors. The names of its parameters are those of the files, which
transformers, vLLM and the embedded engine read too.
"""

import json
import os
import struct
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F


class Norm(nn.Module):
    def __init__(self, width, epsilon):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon) * self.weight


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, self.size, self.window = config["hidden_size"], config["head_dim"], config["sliding_window"]
        self.heads, self.shared = config["num_attention_heads"], config["num_key_value_heads"]
        self.q_proj, self.o_proj = linear(width, self.heads * self.size), linear(self.heads * self.size, width)
        self.k_proj, self.v_proj = linear(width, self.shared * self.size), linear(width, self.shared * self.size)

    def forward(self, x, angles, past):
        """x: [batch, tokens, width]. `past`: keys and values of the tokens before. Returns its own keys and values, too."""
        batch, tokens, _ = x.shape
        q = turned(self.by_head(self.q_proj(x)), angles)
        own = self.keys_and_values(x, angles)
        k, v = own
        if past is not None:
            # The first new token sees a window of tokens, itself included.
            k, v = (torch.cat([before[:, :, 1 - self.window :].expand(batch, -1, -1, -1), mine], dim=2) for before, mine in zip(past, own))
        mixed = torch.cat([self.attend(q, k, v, k.shape[2] - tokens, at) for at in range(0, tokens, self.window)], dim=2)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, tokens, -1)), own

    def attend(self, q, k, v, before, at):
        """Attention of one window of tokens, from `at` on. They see the tokens of two windows at most. `before`: number of past keys."""
        q = q[:, :, at : at + self.window]
        start, end = max(0, before + at + 1 - self.window), before + at + q.shape[2]
        seen = torch.ones(q.shape[2], end - start, dtype=torch.bool).tril(end - start - q.shape[2])
        seen = seen.triu(end - start - q.shape[2] + 1 - self.window)
        return F.scaled_dot_product_attention(q, k[:, :, start:end], v[:, :, start:end], attn_mask=seen, enable_gqa=True)

    def keys_and_values(self, x, angles):
        return turned(self.by_head(self.k_proj(x)), angles), self.by_head(self.v_proj(x))

    def by_head(self, x):
        batch, tokens, _ = x.shape
        return x.view(batch, tokens, -1, self.size).transpose(1, 2)


def turned(x, angles):
    cosine, sine = angles
    one, other = x.chunk(2, dim=-1)
    return torch.cat([one * cosine - other * sine, other * cosine + one * sine], dim=-1)


class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, hidden = config["hidden_size"], config["intermediate_size"]
        self.gate_proj, self.up_proj, self.down_proj = linear(width, hidden), linear(width, hidden), linear(hidden, width)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.input_layernorm = Norm(config["hidden_size"], config["rms_norm_eps"])
        self.self_attn = Attention(config)
        self.post_attention_layernorm = Norm(config["hidden_size"], config["rms_norm_eps"])
        self.mlp = Mlp(config)

    def forward(self, x, angles, past):
        mixed, own = self.self_attn(self.input_layernorm(x), angles, past)
        x = x + mixed
        return x + self.mlp(self.post_attention_layernorm(x)), own


class Body(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = Norm(config["hidden_size"], config["rms_norm_eps"])


class Llama(nn.Module):
    """The output head is the embedding. If `tie_word_embeddings` is off, files also store it as `lm_head`."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.model = Body(config)
        half = config["head_dim"] // 2
        self.frequency = 1.0 / config["rope_theta"] ** (torch.arange(half, dtype=torch.float32) / half)

    def forward(self, ids, past=None):
        """[batch, tokens] -> hidden states, and their keys and values."""
        angles = self.angles(0 if past is None else past[0][0].shape[2], ids.shape[1])
        x, kept = self.model.embed_tokens(ids), []
        for index, layer in enumerate(self.model.layers):
            x, own = layer(x, angles, None if past is None else past[index])
            kept.append(own)
        return self.model.norm(x), kept

    def read(self, ids):
        """The `past` for later tokens. The last layer attends to nothing, because nobody asks what follows these tokens."""
        angles, x, kept = self.angles(0, ids.shape[1]), self.model.embed_tokens(ids), []
        *layers, last = self.model.layers
        for layer in layers:
            x, own = layer(x, angles, None)
            kept.append(own)
        return [*kept, last.self_attn.keys_and_values(last.input_layernorm(x), angles)]

    def angles(self, start, tokens):
        angle = torch.arange(start, start + tokens, dtype=torch.float32)[:, None] * self.frequency
        return angle.cos(), angle.sin()

    def logits(self, hidden):
        return F.linear(hidden, self.model.embed_tokens.weight)


EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
NAMES = {torch.float32: "F32", torch.bfloat16: "BF16"}


def load(folder):
    folder = Path(folder)
    model = Llama(json.loads((folder / "config.json").read_text()))
    data = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    kinds = {name: dtype for dtype, name in NAMES.items()}
    state = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        start, end = (8 + length + at for at in entry["data_offsets"])
        state[name] = torch.frombuffer(bytearray(data[start:end]), dtype=kinds[entry["dtype"]]).view(entry["shape"]).float()
    head = state.pop(HEAD, None)
    assert head is None or head.equal(state[EMBEDDING]), f"{folder}: the output head is not the embedding"
    model.load_state_dict(state)
    return model


def save(model, folder, dtype=torch.float32):
    """Replaces the files of the folder: a reader sees a whole old file or a whole new one."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    header, parts, at = {"__metadata__": {"format": "pt"}}, [], 0
    state = model.state_dict()
    if not model.config["tie_word_embeddings"]:
        state[HEAD] = state[EMBEDDING]
    for name, tensor in state.items():
        part = bytes_of(tensor.detach().to(dtype))
        header[name] = {"dtype": NAMES[dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(part)]}
        parts.append(part)
        at += len(part)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    replace(folder / "model.safetensors", struct.pack("<Q", len(text)) + text + b"".join(parts))
    replace(folder / "config.json", (json.dumps(model.config | {"torch_dtype": str(dtype).removeprefix("torch.")}, indent=2) + "\n").encode())


def bytes_of(tensor):
    """Needs no numpy, because PyTorch does not install it."""
    return bytes(tensor.contiguous().flatten().view(torch.uint8).tolist())


def replace(path, data):
    new = path.with_name(path.name + ".new")
    new.write_bytes(data)
    os.replace(new, path)
