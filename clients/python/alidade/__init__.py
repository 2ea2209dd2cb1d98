"""Rollouts from an Alidade service, for trainers: the standard library alone.

    from alidade import Service

    service = Service()                                    # runs/service/service.json, or Service(url, token)
    run = service.set("grpo-17", samples=8)
    run.submit((row["id"], row["task"]) for row in dataset)
    for group in run.groups(after=checkpoint.get("cursor")):
        train(group.rows)
        save(checkpoint, cursor=group.cursor)
"""

from .logprobs import trainer_logprobs, write_trainer_logprobs
from .service import Group, RolloutSet, Service, ServiceError

__all__ = ["Group", "RolloutSet", "Service", "ServiceError", "trainer_logprobs", "write_trainer_logprobs"]
