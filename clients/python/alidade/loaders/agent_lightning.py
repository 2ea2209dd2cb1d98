"""agent-lightning: `alidade export --format agent-lightning` as the rollouts that its adapter takes.

    batch, metrics = RolloutAdapter(...).get_train_data_batch(completed_rollouts("rows.jsonl"))

    processor = hf_processor(MODEL)                                  # rows that show pictures (verl.utils)
    RolloutAdapter(..., processor=processor).get_train_data_batch(completed_rollouts("rows.jsonl", processor))

Read the file again for another batch: at its `trajectory` level the adapter changes the triplets that it is given. Pictures want its
level `transition`.
"""

from ..media import beside, data_urls, tensors
from ..rows import read


def completed_rollouts(file, processor=None, pictures=None):
    """`pictures`: the folder of the pictures, by default `media/` beside the file. The adapter makes pixels itself, and skips pictures
    that it cannot read. So pass a `processor`, which compares the pictures with the row."""
    from agentlightning.verl.agl_rollout_manager import CompletedRollout

    place = pictures or beside(file)
    rows = ({**row, "triplets": [_shown(triplet, place, processor) for triplet in row["triplets"]]} for row in read(file))
    return [CompletedRollout.model_validate(row) for row in rows]


def _shown(triplet, pictures, processor):
    if "media" not in triplet:
        return triplet
    prompt = {"token_ids": triplet["prompt"]["token_ids"], "media": triplet["media"]}
    tensors(prompt, pictures, processor)
    return {**{name: value for name, value in triplet.items() if name != "media"}, "image_urls": data_urls(prompt, pictures)}
