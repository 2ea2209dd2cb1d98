"""Read what Alidade exports; standard library only.

    from alidade.rows import path, read

    for row in read("rows.jsonl"):         # `alidade export --format flat`: one token sequence a row
        row["token_ids"], row["loss_mask"], row["logprobs"]   # one entry for each token, unshifted
    for trajectory in read("trajectories.jsonl"):             # canonical: calls, token tree, traces, reward
        tokens = path(trajectory, trajectory["traces"][0]["leaf_node_id"])

A logprob is None where the token was not sampled or the engine gave none; it is never 0 in place of a missing one. A sampled token
keeps its logprob also where its mask is 0. One that a grammar forced has 0 there, for nothing else could be sampled.
"""

import json


def read(file):
    with open(file, encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def path(trajectory, node_id):
    """All token ids from the root to the end of a node: what the engine saw, then what it sampled."""
    nodes, tokens = {node["node_id"]: node for node in trajectory["nodes"]}, []
    while node_id is not None:
        tokens, node_id = nodes[node_id]["token_ids"] + tokens, nodes[node_id]["parent_id"]
    return tokens


def as_floats(logprobs):
    """For trainers that make a tensor of numbers as they come. JSON has 0 for 0.0, and a batch whose first row has only zeros would be
    one of whole numbers."""
    return [float(one) for one in logprobs]
