"""Pictures of rows: the bytes beside them, and what the model's own processor makes of those.

    from transformers import AutoProcessor
    from alidade import media

    processor = AutoProcessor.from_pretrained(MODEL)
    for row in read("rows.jsonl"):                        # `alidade export --format flat --out rows.jsonl`, pictures in media/ beside it
        tensors = media.tensors(row, "media", processor)  # {} where the row has no picture
        fields = media.fields(row, "media", processor, "slime")

`row["media"]` is `[{sha256, start, length}]`: the ids start : start + length of the row are the pads of that picture, in the order of
the row. A picture whose bytes or whose number of pads differ from what the engine saw is refused: its row would train another
context. The loaders of trainers do this by themselves; they take `processor`, and `pictures`, which is the folder of the files or
what the service gives (base64 by hash).
"""

import base64
import contextlib
import io
import os

from .stored import read_stored


class MediaError(ValueError):
    """A picture differs from what the engine saw, or the trainer cannot take it."""


def beside(file):
    """The folder with the pictures of an exported file."""
    return os.path.join(os.path.dirname(os.path.abspath(file)), "media")


def token_ids(row):
    """All ids of a row of any format, from the first one. `media` counts in them."""
    for names in (("token_ids",), ("tokens",), ("input_ids",), ("observation_tokens",), ("prompts", "responses"), ("prompt_token_ids", "response_ids"), ("prompt_ids", "completion_ids")):
        if all(name in row for name in names):
            return [one for name in names for one in row[name]]
    raise MediaError(f"the row has none of the token ids that its pictures stand in; its fields are {', '.join(row)}")


def read_bytes(row, pictures):
    """The bytes of each picture, in the order of the row. `pictures`: the folder of the files, or the service's base64 by hash."""
    found = []
    for picture in row.get("media") or []:
        if pictures is None:
            raise MediaError(f"the row shows the picture {picture['sha256']}: say where its bytes are")
        found.append(read_stored(picture["sha256"], pictures, "picture", MediaError))
    return found


def image_type(data):
    """The media type of the bytes of a picture, by how they begin; None where it is another one."""
    begins = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}
    return next((name for start, name in begins.items() if data.startswith(start)), None)


def data_urls(row, pictures):
    """The same as `data:` URLs, for a trainer that makes pixels itself."""
    shown = map(plain, read_bytes(row, pictures))
    return [f"data:{image_type(data) or 'image/*'};base64,{base64.b64encode(data).decode()}" for data in shown]


def images(row, pictures):
    """The same as RGB images of PIL, with the pixels that the engine saw."""
    return [rgb(data) for data in read_bytes(row, pictures)]


def rgb(data):
    """What vLLM makes of the bytes of a picture: turned as its EXIF says, and on white where it is transparent."""
    from PIL import Image, ImageOps

    image = Image.open(io.BytesIO(data))
    with contextlib.suppress(Exception):
        image = ImageOps.exif_transpose(image)
    if image.mode == "RGB" or not (image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info):
        return image.convert("RGB")
    image = image.convert("RGBA")
    white = Image.new("RGB", image.size, (255, 255, 255))
    white.paste(image, mask=image.getchannel("A"))
    return white


def plain(data):
    """The bytes, or a PNG of what vLLM makes of them, if a reader that only converts to RGB sees something else."""
    from PIL import Image

    seen, read = rgb(data), Image.open(io.BytesIO(data)).convert("RGB")
    if seen.size == read.size and seen.tobytes() == read.tobytes():
        return data
    file = io.BytesIO()
    seen.save(file, "PNG")
    return file.getvalue()


def tensors(row, pictures, processor):
    """pixel_values, image_grid_thw and mm_token_type_ids of a model of Qwen's form; {} without pictures. Throws MediaError."""
    shown = images(row, pictures)
    return _tensors(token_ids(row), row["media"], shown, processor) if shown else {}


def _tensors(ids, media, shown, processor):
    import torch

    if processor is None:
        raise MediaError("the row shows pictures: give the model's own processor (transformers.AutoProcessor)")
    maker = getattr(processor, "image_processor", None)
    if maker is None:
        raise MediaError(f"{type(processor).__name__} has no image_processor: give that of a model that sees")
    made = maker(images=shown, return_tensors="pt")
    if "image_grid_thw" not in made:
        raise MediaError(f"{type(maker).__name__} makes no image_grid_thw: the pads of its pictures cannot be checked")
    grids, merge = made["image_grid_thw"], maker.merge_size
    kinds = torch.zeros(len(ids), dtype=torch.long)
    if len(grids) != len(media):
        raise MediaError(f"the processor made {len(grids)} pictures of {len(media)}")
    for at, (grid, picture) in enumerate(zip(grids, media)):
        start, length = picture["start"], picture["length"]
        pads = int(grid.prod()) // merge**2
        if pads != length:
            raise MediaError(f"picture {at} has {length} pads in the row and {pads} by the processor: give it the settings of the engine")
        kinds[start : start + length] = 1
    refuse_misplaced(ids, media, getattr(processor, "image_token_id", None))
    return {"pixel_values": made["pixel_values"], "image_grid_thw": grids, "mm_token_type_ids": kinds}


def refuse_misplaced(ids, media, own=None):
    """Refuses pictures that stand at no pads, and pads outside of pictures: trainers find pictures by their pads, so a stray pad would
    take the next picture's pixels. `own`: the model's pad, where it is known."""
    for picture in media:
        start, length = picture["start"], picture["length"]
        if len(set(ids[start : start + length])) != 1 or start + length > len(ids):
            raise MediaError(f"tokens {start} to {start + length} of the row are not the pads of one picture")
    pad = ids[media[0]["start"]]
    if own is not None and own != pad:
        raise MediaError(f"the pads of the row are the token {pad}, and the processor's is {own}: give the processor of the model")
    stray = sum(one == pad for one in ids) - sum(picture["length"] for picture in media)
    if stray:
        raise MediaError(f"{stray} pads of the row belong to no picture of it")


def _multimodal(shown, made):
    return {"multimodal_inputs": {"images": shown}, "multimodal_train_inputs": _values(made)}


def _prime_rl(shown, made):
    packed = {key: {"dtype": str(one.dtype).removeprefix("torch."), "shape": list(one.shape), "data": one.numpy().tobytes()} for key, one in _values(made).items()}
    return {"mm_kwargs": packed, "mm_token_type_ids": made["mm_token_type_ids"].tolist()}


def _values(made):
    return {key: made[key] for key in ("pixel_values", "image_grid_thw")}


_fields = {
    "verl": lambda shown, made: {"multi_modal_data": {"images": shown}},
    "trl": lambda shown, made: {"images": shown, "num_images": len(shown)},
    "slime": _multimodal,
    "miles": _multimodal,
    "openrlhf": lambda shown, made: {"images": shown, "mm_train_inputs": _values(made)},
    "skyrl": lambda shown, made: _values(made),
    "prime-rl": _prime_rl,
    "nemo-rl": lambda shown, made: _values(made),
}


def fields(row, pictures, processor, trainer):
    """The picture fields of the trainer's sample, under its own names; {} without pictures. The ids stay the row's. Throws MediaError."""
    if trainer not in _fields:
        raise MediaError(f"trainer is {trainer}: name one of {', '.join(_fields)}")
    shown = images(row, pictures)
    return _fields[trainer](shown, _tensors(token_ids(row), row["media"], shown, processor)) if shown else {}


def with_fields(row, pictures, processor, trainer):
    """The row with those fields in place of `media`."""
    made = fields(row, pictures, processor, trainer)
    return {**{name: value for name, value in row.items() if name != "media"}, **made}
