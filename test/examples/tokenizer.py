"""What transformers makes of the tokenizer files of a folder. Reads `{"folder", "texts", "ids", "chats"}` from standard input, writes
`{"encoded", "decoded", "shown", "rendered", "end"}`: ids of the texts, texts of the ids with and without the special tokens, prompts of the
conversations, and the id that ends a turn."""

import json
import sys

from transformers import AutoTokenizer

asked = json.load(sys.stdin)
tokenizer = AutoTokenizer.from_pretrained(asked["folder"])
found = {
    "encoded": [tokenizer.encode(text, add_special_tokens=False) for text in asked["texts"]],
    "decoded": [tokenizer.decode(ids) for ids in asked["ids"]],
    "shown": [tokenizer.decode(ids, skip_special_tokens=True) for ids in asked["ids"]],
    "rendered": [
        tokenizer.apply_chat_template(
            chat["messages"], tools=chat["tools"] or None, add_generation_prompt=chat["generate"], tokenize=False
        )
        for chat in asked["chats"]
    ],
    "end": tokenizer.eos_token_id,
}
json.dump(found, sys.stdout)
