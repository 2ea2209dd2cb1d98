"""One trainer's own loop on a running service: a line of JSON for each optimizer step.

    VENV/bin/python run.py TRAINER FOLDER_OF_THE_RIG

It says `ready` when the trainer is imported, and begins with the next line on stdin.
"""

import importlib
import importlib.metadata
import os
import sys
from pathlib import Path

os.environ |= {
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "TORCH_COMPILE_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "120",
    # Its workers yield to everything else by default, and this trainer waits for them.
    "RAY_worker_niceness": "0",
    "WANDB_MODE": "disabled",
}
here = Path(__file__).parent
sys.path[:0] = [str(here), str(here.parents[2] / "clients" / "python")]

if __name__ == "__main__":
    trainer, folder = sys.argv[1:]
    from actor import Rig, quiet, say

    quiet()
    if "ALIDADE_DUMP" in os.environ:
        import faulthandler

        faulthandler.dump_traceback_later(int(os.environ["ALIDADE_DUMP"]), repeat=True)
    module = importlib.import_module(f"loops.{trainer}")
    say(ready=trainer)
    sys.stdin.readline()
    rig = Rig(folder, trainer)
    module.run(rig)
    say(version=module.VERSION if hasattr(module, "VERSION") else importlib.metadata.version(module.PACKAGE))
