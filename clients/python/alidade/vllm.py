"""New weights for a vLLM that runs: the body of `with service.weights(...)`."""

import json
import urllib.error
import urllib.request


def reload_weights(url, version, seconds=600):
    """vLLM reads the files of the folder that it serves again, and from then on calls them `version`, which the service compares.

    The server needs VLLM_SERVER_DEV_MODE=1 for it. The service resets vLLM's prefix cache when the gate opens again.
    """
    _post(url, "/collective_rpc", {"method": "reload_weights"}, seconds)
    _post(url, "/update_weight_version", {"new_version": version}, seconds)


def _post(url, path, body, seconds):
    data = json.dumps(body).encode()
    request = urllib.request.Request(url.rstrip("/") + path, data=data, headers={"content-type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=seconds).close()
    except urllib.error.HTTPError as error:
        said = error.read(500).decode(errors="replace")
        hint = "; start vLLM with VLLM_SERVER_DEV_MODE=1" if error.code == 404 else ""
        raise RuntimeError(f"vLLM answers POST {path} with {error.code}{hint}: {said}") from None
