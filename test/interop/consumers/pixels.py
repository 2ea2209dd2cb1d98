"""Checks that our loaders read pictures as vLLM does: turned as EXIF says, and on white where they are transparent.

    VENV/bin/python pixels.py FOLDER      prints one line of JSON: what is wrong, by the kind of picture
"""

import base64
import hashlib
import io
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "clients" / "python"))

from alidade import media
from PIL import Image

WHITE = (255, 255, 255)


def file(image, kind="PNG", **settings):
    out = io.BytesIO()
    image.save(out, kind, **settings)
    return out.getvalue()


def turned():
    """Stored on its side: a dark row above a bright one, to be turned by a quarter."""
    image = Image.new("RGB", (16, 8), (0, 0, 0))
    image.paste((250, 250, 250), (0, 4, 16, 8))
    exif = Image.Exif()
    exif[0x0112] = 6
    return file(image, exif=exif)


def palette():
    image = Image.new("P", (8, 8), 1)
    image.putpalette([9, 9, 9, 60, 70, 80] + [0] * 762)
    return image


# Bytes, size, and the pixel in the upper left corner.
kinds = {
    "opaque": (file(Image.new("RGB", (8, 4), (1, 2, 3))), (8, 4), (1, 2, 3)),
    "grey": (file(Image.new("L", (8, 4), 7)), (8, 4), (7, 7, 7)),
    "clear": (file(Image.new("RGBA", (8, 4), (200, 0, 0, 0))), (8, 4), WHITE),
    "half clear": (file(Image.new("LA", (8, 4), (10, 128))), (8, 4), (132, 132, 132)),
    "palette": (file(palette()), (8, 8), (60, 70, 80)),
    "clear palette": (file(palette(), transparency=1), (8, 8), WHITE),
    "turned": (turned(), (8, 16), (250, 250, 250)),
    "webp": (file(Image.new("RGBA", (8, 4), (200, 0, 0, 0)), "WEBP", lossless=True), (8, 4), WHITE),
}

folder, wrong = Path(sys.argv[1]), {}
for name, (data, size, pixel) in kinds.items():
    sha256 = hashlib.sha256(data).hexdigest()
    (folder / sha256).write_bytes(data)
    row = {"media": [{"sha256": sha256, "start": 0, "length": 1}]}
    (image,), (url,) = media.images(row, folder), media.data_urls(row, folder)
    if (image.mode, image.size, image.getpixel((0, 0))) != ("RGB", size, pixel):
        wrong[name] = f"{image.mode} {image.size} {image.getpixel((0, 0))}"
    # A trainer that makes pixels itself.
    sent = base64.b64decode(url.split(",")[1])
    if Image.open(io.BytesIO(sent)).convert("RGB").tobytes() != image.tobytes():
        wrong[f"{name}, as URL"] = "other pixels"
    if name in ("opaque", "grey", "palette") and sent != data:
        wrong[f"{name}, as URL"] = "other bytes"
print(json.dumps(wrong))
