"""OpenRLHF: `alidade export --format openrlhf` as the responses of an agent executor.

    for response in responses("rows.jsonl", max_len=32768):      # with pictures: processor=AutoProcessor.from_pretrained(MODEL)
        experience = generator._process_response_into_experience(response, max_len=32768)

Groups stand one after the other, `n_samples_per_prompt` rows each, as OpenRLHF expects them.
"""

from ..media import beside, with_fields
from ..rows import read


def responses(file, max_len, processor=None, pictures=None):
    """Refuses a row that OpenRLHF would cut in the middle of a turn: export with --max-tokens instead."""
    for number, row in enumerate(read(file), 1):
        if len(row["observation_tokens"]) > max_len:
            raise ValueError(f"line {number} of {file} has {len(row['observation_tokens'])} tokens, more than max_len={max_len}")
        # A whole number would make a tensor of whole numbers, which has no mean.
        rewards = {name: float(row[name]) for name in ("reward", "scores")}
        made = with_fields(row, pictures or beside(file), processor, "openrlhf")
        yield {**made, **rewards, "action_ranges": [tuple(action) for action in row["action_ranges"]]}
