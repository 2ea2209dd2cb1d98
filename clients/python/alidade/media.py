"""Pictures of rows: the bytes beside them, and what the model's own processor makes of those.

    from transformers import AutoProcessor
    from alidade import media

    processor = AutoProcessor.from_pretrained(MODEL)
    for row in read("rows.jsonl"):                        # `alidade export --format flat --out rows.jsonl`, pictures in media/ beside it
        tensors = media.tensors(row, "media", processor)  # {} where the row has no picture
        fields = media.fields(row, "media", processor, "slime")

`row["media"]` is `[{sha256, start, length}]`: token_ids[start : start + length] are the pads of that picture, in the order of the
row. A picture whose bytes or whose number of pads differ from what the engine saw is refused: its row would train another context.
"""

import hashlib
import io
import os


class MediaError(ValueError):
    """A picture is not the one that the engine saw."""


def read_bytes(row, folder):
    """The bytes of each picture, in the order of the row. `folder`: the files, named by SHA-256."""
    found = []
    for picture in row.get("media") or []:
        with open(os.path.join(folder, picture["sha256"]), "rb") as file:
            data = file.read()
        if hashlib.sha256(data).hexdigest() != picture["sha256"]:
            raise MediaError(f"the picture {picture['sha256']} in {folder} holds other bytes: copy it again from the run")
        found.append(data)
    return found


def images(row, folder):
    """The same as RGB images of PIL."""
    from PIL import Image

    return [Image.open(io.BytesIO(data)).convert("RGB") for data in read_bytes(row, folder)]


def tensors(row, folder, processor):
    """pixel_values, image_grid_thw and mm_token_type_ids of a model of Qwen's form; {} without pictures. Throws MediaError."""
    shown = images(row, folder)
    if not shown:
        return {}
    import torch

    maker = processor.image_processor
    made = maker(images=shown, return_tensors="pt")
    if "image_grid_thw" not in made:
        raise MediaError(f"{type(maker).__name__} makes no image_grid_thw: the pads of its pictures cannot be checked")
    grids, merge = made["image_grid_thw"], maker.merge_size
    kinds = torch.zeros(len(row["token_ids"]), dtype=torch.long)
    if len(grids) != len(row["media"]):
        raise MediaError(f"the processor made {len(grids)} pictures of {len(row['media'])}")
    for at, (grid, picture) in enumerate(zip(grids, row["media"])):
        start, length = picture["start"], picture["length"]
        pads = int(grid.prod()) // merge**2
        if pads != length:
            raise MediaError(f"picture {at} has {length} pads in the row and {pads} by the processor: give it the settings of the engine")
        if len(set(row["token_ids"][start : start + length])) != 1:
            raise MediaError(f"tokens {start} to {start + length} of the row are not the pads of one picture")
        kinds[start : start + length] = 1
    return {"pixel_values": made["pixel_values"], "image_grid_thw": grids, "mm_token_type_ids": kinds}


def _slime(shown, made):
    return {"multimodal_inputs": {"images": shown}, "multimodal_train_inputs": _values(made)}


def _prime_rl(shown, made):
    packed = {key: {"dtype": str(one.dtype).removeprefix("torch."), "shape": list(one.shape), "data": one.numpy().tobytes()} for key, one in _values(made).items()}
    return {"mm_kwargs": packed, "mm_token_type_ids": made["mm_token_type_ids"].tolist()}


def _values(made):
    return {key: made[key] for key in ("pixel_values", "image_grid_thw")}


_fields = {
    "verl": lambda shown, made: {"multi_modal_data": {"images": shown}},
    "trl": lambda shown, made: {"images": shown, "num_images": len(shown)},
    "slime": _slime,
    "miles": _slime,
    "openrlhf": lambda shown, made: {"images": shown, "mm_train_inputs": _values(made)},
    "skyrl": lambda shown, made: _values(made),
    "prime-rl": _prime_rl,
}


def fields(row, folder, processor, trainer):
    """What the trainer's sample holds of the pictures, under its own names; {} without pictures. Its ids stay the row's. Throws MediaError."""
    if trainer not in _fields:
        raise MediaError(f"trainer is {trainer}: name one of {', '.join(_fields)}")
    made = tensors(row, folder, processor)
    return _fields[trainer](images(row, folder), made) if made else {}
