"""Reads kept tokens of our traces as verifiers does, by its own branches:

    python support.py FOLDER            # with the exported file traces.jsonl
    python support.py URL TASK          # of a service: one episode of the hook, of this task as a value

Prints the sets of each trained token, by trace, branch and place of the branch's tokens; places without a set have [].
"""

import asyncio
import json
import os
import sys

from alidade.loaders.verifiers import traces


def live(url, task):
    import verifiers.v1 as vf
    from alidade import Service
    from alidade.verifiers import AlidadeEnv
    from verifiers.v1.clients import ModelContext
    from verifiers.v1.configs.client import EvalClientConfig
    from verifiers.v1.envs.single_agent import SingleAgentEnvConfig

    class Env(AlidadeEnv):
        run_set = Service(url, "all").set("s", samples=1)
        kept_sets = "train"

        def __init__(self):  # no task set: the episode is asked for as it is
            self.config = SingleAgentEnvConfig.model_construct(env_id="cut")

        def task_of(self, _):
            return json.loads(task)

        async def finalize(self, *_):
            pass

    context = ModelContext(model="tiny", client=EvalClientConfig(base_url="http://127.0.0.1:1"))
    episode = asyncio.run(Env().run_episode(vf.Task(vf.TaskData(id="t", prompt="go")), context))
    return episode.traces


def main(made):
    told = []
    for trace in made:
        for branch in trace.branches:
            mask, sets, at = branch.sampling_mask, [], 0
            for count in mask.counts.tolist() if mask is not None else [0] * len(branch.token_ids):
                sets.append(mask.ids[at : at + count].tolist() if count else [])
                at += count
            told.append({"token_ids": list(branch.token_ids), "trained": list(branch.sampled_mask), "sets": sets})
    print(json.dumps(told))


main(live(*sys.argv[1:]) if len(sys.argv) > 2 else traces(f"{sys.argv[1]}/traces.jsonl"))
# The hook's reader waits for more results of the set.
sys.stdout.flush()
os._exit(0)
