"""A trainer: submits groups, takes each rollout as it ends, and saves what it took together with the cursor behind it.

python3 trainer.py <folder of the service> <checkpoint> <groups> <samples>
"""

import hashlib
import json
import os
import sys

from alidade import Service

folder, checkpoint, groups, samples = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
run = Service(folder=folder).set("kills", samples=samples, retries=3)
state = {"cursor": None, "taken": []}
if os.path.exists(checkpoint):
    with open(checkpoint) as file:
        state = json.load(file)
else:
    run.submit((f"g{number}", "make-it") for number in range(groups))
    run.drain()


def digest(trajectory):
    tokens = [node["token_ids"] for node in trajectory["nodes"]]
    return hashlib.sha256(json.dumps(tokens, separators=(",", ":")).encode()).hexdigest()


for line in run.groups(after=state["cursor"], whole=False, payload="trajectory", limit=3):
    (result,) = line.results
    taken = {"rollout_id": result["rollout_id"], "attempt": result["attempt"], "tokens": [digest(one) for one in line.trajectories]}
    state = {"cursor": line.cursor, "taken": state["taken"] + [taken]}
    with open(checkpoint + ".new", "w") as file:
        json.dump(state, file)
    os.replace(checkpoint + ".new", checkpoint)
