"""Bytes that rows name by their SHA-256: in a folder beside the exported file, or in the service's answer."""

import base64
import hashlib
import os


def read_stored(sha256, files, what, error):
    """`files`: the folder, or the service's base64 by hash. Raises `error`, which calls the bytes `what`, if they are others or absent."""
    if isinstance(files, dict):
        if sha256 not in files:
            raise error(f"the service gave no {what} {sha256}")
        data = base64.b64decode(files[sha256])
    elif files is None:
        raise error(f"the row names the {what} {sha256}: say in which folder its bytes lie (pictures)")
    else:
        try:
            with open(os.path.join(files, sha256), "rb") as file:
                data = file.read()
        except (FileNotFoundError, NotADirectoryError):
            raise error(f"{files} has no {what} {sha256}: name the folder media/ that lies beside the exported file (pictures)") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        place = "the service" if isinstance(files, dict) else files
        raise error(f"the {what} {sha256} of {place} holds other bytes: copy it again from the run")
    return data
