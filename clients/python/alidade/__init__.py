"""Rollouts from an Alidade service, and rows that `alidade export` wrote, for trainers: the standard library alone.

    from alidade import Service

    service = Service()                                    # runs/service/service.json, or Service(url, token)
    run = service.set("grpo-17", samples=8)
    run.submit((row["id"], row["task"]) for row in dataset)
    for group in run.groups(after=checkpoint.get("cursor")):
        train(group.rows)
        save(checkpoint, cursor=group.cursor)

    from alidade import read

    for row in read("rows.jsonl"): ...                     # of `alidade export --format flat`

`alidade.loaders` has a module for each trainer's own objects.
"""

from .logprobs import trainer_logprobs, write_trainer_logprobs
from .rows import read
from .service import Group, RolloutSet, Service, ServiceError

__all__ = ["Group", "RolloutSet", "Service", "ServiceError", "read", "trainer_logprobs", "write_trainer_logprobs"]
