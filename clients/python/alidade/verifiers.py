"""verifiers, and prime-rl over it, on an Alidade service (docs/trainers-live.md): an environment whose episodes are ours.

    class Env(AlidadeEnv):                                       # the package that `env.id` names
        run_set = Service(...).set("grpo-17", samples=1)         # prime-rl makes the groups, of episodes
        kept_sets = "train"                                      # only if sampling has a cut and prime-rl renormalises

Its interception server and its harnesses stay out of the way: the service's harness asks the service's proxy, and that the engine.
"""

import uuid

from verifiers.v1.envs.single_agent import SingleAgentEnv
from verifiers.v1.episode import EnvInfo, Episode
from verifiers.v1.trace import Error, TraceTask

from .live import Live, refuse_other_temperature
from .loaders.verifiers import trace_of

_live = {}


class AlidadeEnv(SingleAgentEnv):
    """`run_set`: the service's set. `task_of(task)`: the service's task, by default the `id` of the task's data. `kept_sets`: with
    "train", traces also have calls that were sampled with `top_p`, `top_k` or `min_p`, with `sampling_mask` in their nodes. prime-rl
    renormalises over it since its pull request 3431. An older one ignores it and computes another ratio (docs/kept-tokens.md)."""

    run_set = None
    kept_sets = None

    def task_of(self, task):
        return task.data.id

    async def run_episode(self, task, ctx, *, on_trace=None, on_discard=None):
        # prime-rl divides the logits of each token by it.
        refuse_other_temperature(ctx.sampling.temperature)
        episode = Episode(
            env=EnvInfo(id=self.config.env_id),
            task=TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash),
        )
        # prime-rl says neither the step nor the place in the group, so an episode is a group of its own, and one that
        # was lost with its trainer is sampled anew, as prime-rl does it.
        name = self.task_of(task)
        line = await self._live().rollout(f"{name}/{uuid.uuid4().hex}", 0, name)
        for row in line["rows"]:
            trace = trace_of(row, line.get("pictures"))
            if on_trace is not None:
                on_trace(trace)
            episode.traces.append(trace)
        if not episode.traces:
            error = line["result"]["error"] or {"code": "no_rows", "message": "nothing of the rollout can be trained"}
            episode.errors.append(Error(type=error["code"], message=error["message"]))
            return episode
        await self.finalize(task, episode)
        episode.ok = all(trace.ok for trace in episode.traces)
        return episode

    def _live(self):
        if self.run_set.spec["samples"] != 1:
            raise ValueError(f"the set {self.run_set.key} has samples={self.run_set.spec['samples']}: make it with samples=1")
        key = self.run_set.id, self.kept_sets
        return _live.setdefault(key, Live(self.run_set, format="verifiers", kept_sets=self.kept_sets))
