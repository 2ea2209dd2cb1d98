"""prime-rl's own samples of rows that Alidade exported (alidade export --format prime-rl).

    samples = [sample for sample in training_samples("prime.jsonl")]
"""
from alidade_read import read


def training_samples(file):
    """`TrainingSample` of prime-rl's transport, fields by name."""
    from prime_rl.transports.rollouts.types import TrainingSample

    for row in read(file):
        yield TrainingSample(**row)
