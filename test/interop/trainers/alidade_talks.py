"""A package as verifiers and prime-rl load it by its id: a task set, and its environment on the service."""

import verifiers.v1 as vf
from actor import TASKS
from alidade.verifiers import AlidadeEnv


class Talks(vf.Taskset):
    def load(self):
        for name in TASKS:
            yield vf.Task(vf.TaskData(id=name, prompt=name))


class TalksEnv(AlidadeEnv):
    pass


__all__ = ["Talks", "TalksEnv"]
