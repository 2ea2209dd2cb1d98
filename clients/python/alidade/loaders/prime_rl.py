"""prime-rl's own samples of rows that Alidade exported (alidade export --format prime-rl).

prime-rl reads no such file: its orchestrator makes samples in its own process and sends what it packs of them. So this
packs them, and an orchestrator of your own sends them:

    grid = micro_batches("prime.jsonl", seq_len=32768, num_train_workers=8)
    await setup_micro_batch_sender(output_dir, data_world_size, step, transport).send(grid)
"""

from ..rows import read


def training_samples(file):
    """`TrainingSample` of prime-rl's transport, fields by name."""
    from prime_rl.transports.rollouts.types import TrainingSample

    for row in read(file):
        yield TrainingSample(**row)


def micro_batches(file, seq_len, num_train_workers, pad_to_multiple_of=1, model_config=None):
    """One list of `MicroBatch` for each worker. Without `model_config` bins are weighed by their tokens."""
    from prime_rl.trainer.batch import build_bin_cost, prepare_batch

    return prepare_batch(
        rollouts=list(training_samples(file)),
        seq_len=seq_len,
        num_train_workers=num_train_workers,
        bin_cost=build_bin_cost(model_config),
        pad_to_multiple_of=pad_to_multiple_of,
    )
