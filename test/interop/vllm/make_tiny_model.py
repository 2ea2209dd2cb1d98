"""Makes a model that any real engine can serve, with nothing downloaded: Qwen2's shape, 0.6 M random weights.

    python make_tiny_model.py FOLDER

It talks nonsense, so tests force its turns with `structured_outputs`; ids and logprobs are as real as any model's.
The tokenizer is a byte-level BPE trained on the sources of packages that requirements.txt pins, the weights come from
one seed: the same pins make the same model on every machine.
"""

import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

VOCABULARY = 4096
CONTEXT = 32768
HIDDEN = 64
INITIAL = 0.2  # ten times the usual: a distribution with peaks, not a uniform one
# Added behind the BPE vocabulary in this order. Control tokens vanish with skip_special_tokens, marks stay visible.
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MARKS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
# Pinned pure-Python packages: code and prose in English, about what a coding agent reads.
TRAINING_PACKAGES = ["click", "jinja2", "networkx", "pydantic", "requests"]
TRAINING_BYTES = 4 << 20

# ChatML, tool calls as hermes writes them, reasoning kept in past turns, with the line breaks of Qwen3's template around
# it whatever the parser left there. Rendering more messages only appends, so that a conversation that a harness hands
# back unchanged continues token for token, where its turns were written as the template writes them.
TEMPLATE = r"""
{%- macro plain(content) -%}
  {%- if content is string -%}{{ content }}
  {%- else -%}{%- for part in content or [] -%}{{ part.text or '' }}{%- endfor -%}
  {%- endif -%}
{%- endmacro -%}
{%- macro open(role) -%}{{ '<|im_start|>' ~ role ~ '\n' }}{%- endmacro -%}
{%- macro close() -%}{{ '<|im_end|>\n' }}{%- endmacro -%}
{%- set leads = messages | length > 0 and messages[0].role in ['system', 'developer'] -%}
{%- if leads or tools -%}
  {{- open('system') -}}
  {%- if leads -%}{{ plain(messages[0].content) }}{%- endif -%}
  {%- if tools -%}
    {{- '\n\n# Functions\nOne JSON signature a line:\n<tools>\n' -}}
    {%- for tool in tools -%}{{ tool | tojson ~ '\n' }}{%- endfor -%}
    {{- '</tools>\nA call looks like this:\n<tool_call>\n{"name": "…", "arguments": {…}}\n</tool_call>' -}}
  {%- endif -%}
  {{- close() -}}
{%- endif -%}
{%- for message in (messages[1:] if leads else messages) -%}
  {%- if message.role == 'assistant' -%}
    {{- open('assistant') -}}
    {%- set thought = (message.reasoning or message.reasoning_content or '').strip('\n') -%}
    {%- if thought -%}{{ '<think>\n' ~ thought ~ '\n</think>\n\n' }}{%- endif -%}
    {%- set said = plain(message.content).lstrip('\n') -%}
    {{- said -}}
    {%- for call in message.tool_calls or [] -%}
      {%- set target = call.function or call -%}
      {%- if said or not loop.first -%}{{ '\n' }}{%- endif -%}
      {{- '<tool_call>\n{"name": "' ~ target.name ~ '", "arguments": ' -}}
      {{- target.arguments if target.arguments is string else target.arguments | tojson -}}
      {{- '}\n</tool_call>' -}}
    {%- endfor -%}
    {{- close() -}}
  {%- elif message.role == 'tool' -%}
    {#- Results in a row share one user turn, as Qwen's own template has it. -#}
    {%- if loop.first or loop.previtem.role != 'tool' -%}{{ open('user') }}{%- else -%}{{ '\n' }}{%- endif -%}
    {{- '<tool_response>\n' ~ plain(message.content) ~ '\n</tool_response>' -}}
    {%- if loop.last or loop.nextitem.role != 'tool' -%}{{ close() }}{%- endif -%}
  {%- else -%}
    {{- open(message.role) ~ plain(message.content) ~ close() -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- open('assistant') -}}
  {%- if enable_thinking is defined and not enable_thinking -%}{{ '<think>\n\n</think>\n\n' }}{%- endif -%}
{%- endif -%}
"""

# Qwen2's own rule of splitting, so that servers that build their own tokenizer agree id for id.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def training_text():
    """Yields the packages' sources in sorted order, TRAINING_BYTES in all."""
    site_packages = Path(torch.__file__).parents[1]
    left = TRAINING_BYTES
    for package in TRAINING_PACKAGES:
        for file in sorted((site_packages / package).rglob("*.py")):
            text = file.read_text("utf-8")[:left]
            left -= len(text)
            yield text


def make_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(CONTROL) - len(MARKS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(training_text(), trainer)
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in CONTROL])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in MARKS])
    assert tokenizer.get_vocab_size() == VOCABULARY, tokenizer.get_vocab_size()
    return tokenizer


def make_model(tokenizer, hidden: int = HIDDEN, initial: float = INITIAL) -> Qwen2ForCausalLM:
    end_of_text, end_of_turn = tokenizer.convert_tokens_to_ids(["<|endoftext|>", "<|im_end|>"])
    heads = hidden // 32  # 32 is the smallest head that vLLM's attention on the CPU takes
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=2,
        num_attention_heads=heads,
        num_key_value_heads=heads // 2,
        max_position_embeddings=CONTEXT,
        rope_theta=1e6,
        tie_word_embeddings=False,
        initializer_range=initial,
        bos_token_id=None,
        eos_token_id=end_of_turn,
        pad_token_id=end_of_text,
    )
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(config)
    model.generation_config.update(do_sample=True, temperature=1.0, top_p=1.0, eos_token_id=[end_of_turn, end_of_text])
    return model


def main(folder: Path) -> None:
    tokenizer = make_tokenizer()
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        unk_token=None,
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )
    wrapped.chat_template = TEMPLATE.strip()
    wrapped.save_pretrained(folder)
    make_model(wrapped).to(torch.bfloat16).save_pretrained(folder)
    print(f"a tiny model in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
