"""Puts a file of ours into verl's real TransferQueue by our loader and takes it out again.

    VENV/bin/python verl_queue.py FILE      prints one line of JSON: the tags by key, and the fields of each row
"""

import json
import os
import sys
from pathlib import Path

os.environ |= {"CUDA_VISIBLE_DEVICES": "", "RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "120"}
sys.path.insert(0, str(Path(__file__).parents[3] / "clients" / "python"))

import ray
import transfer_queue
from alidade import read
from alidade.loaders.verl import put


def start(tries=3):
    """Ray gives its own helper fifteen seconds to start, which a busy machine may not have."""
    for left in reversed(range(tries)):
        try:
            ray.init(num_cpus=4, include_dashboard=False, object_store_memory=100 * 2**20, logging_level="ERROR")
            return
        except Exception:
            ray.shutdown()
            if left == 0:
                raise


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    rows = list(read(sys.argv[1]))
    start()
    transfer_queue.init()
    try:
        put(transfer_queue, rows, global_steps=7)
        tags = transfer_queue.kv_list(partition_id="train")["train"]
        data = transfer_queue.kv_batch_get(keys=[row["key"] for row in rows], partition_id="train")
        names = ("prompts", "responses", "response_mask", "loss_mask", "input_ids", "position_ids", "rollout_log_probs", "rm_scores")
        fields = {name: [row.tolist() for row in data[name].unbind()] for name in names}
    finally:
        transfer_queue.close()
        ray.shutdown()
    print(json.dumps({"tags": tags, "fields": fields}), file=answers, flush=True)
