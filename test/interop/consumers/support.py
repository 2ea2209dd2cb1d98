"""Reads kept tokens of our traces as verifiers does, by its own branches:  python support.py FOLDER

Prints the sets of each trained token, by trace, branch and place of the branch's tokens; places without a set have [].
"""

import json
import sys

from alidade.loaders.verifiers import traces


def main(folder):
    told = []
    for trace in traces(f"{folder}/traces.jsonl"):
        for branch in trace.branches:
            mask, sets, at = branch.sampling_mask, [], 0
            for count in mask.counts.tolist() if mask is not None else [0] * len(branch.token_ids):
                sets.append(mask.ids[at : at + count].tolist() if count else [])
                at += count
            told.append({"token_ids": list(branch.token_ids), "trained": list(branch.sampled_mask), "sets": sets})
    print(json.dumps(told))


main(sys.argv[1])
