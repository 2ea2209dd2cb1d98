"""prime-rl's own samples of rows that Alidade exported (alidade export --format prime-rl).

prime-rl reads no such file: its orchestrator makes samples in its own process and sends what it packs of them. So this
packs them, and an orchestrator of your own sends them:

    grid = micro_batches("prime.jsonl", seq_len=32768, num_train_workers=8)
    await setup_micro_batch_sender(output_dir, data_world_size, step, transport).send(grid)

After `alidade score` each sample has `ref_logprobs`, which the `ref_kl` loss reads. With `replay=True` each has `routed_experts`, for
`trainer.enable_router_replay`.
"""

import itertools

from ..media import MediaError, beside, with_fields
from ..routing import each_array, for_each_token
from ..rows import read
from ..teachers import checked


def training_samples(file, processor=None, pictures=None, replay=False):
    """`TrainingSample` of prime-rl's transport, fields by name. `processor`: the model's own, for rows with pictures."""
    from prime_rl.transports.rollouts import types

    rows = list(checked(read(file), "ref_logprobs"))
    routed = each_array(rows, pictures or beside(file)) if replay else itertools.repeat(None)
    for row, experts in zip(rows, routed):
        row.pop("routing", None)
        made = with_fields(row, pictures or beside(file), processor, "prime-rl")
        if "mm_kwargs" in made:
            if "mm_kwargs" not in types.TrainingSample.__struct_fields__:
                raise MediaError("this prime-rl has no mm_kwargs in TrainingSample, so its samples hold no pixels: take one of August 2026")
            made["mm_kwargs"] = {key: types.EncodedTensor(**one) for key, one in made["mm_kwargs"].items()}
        if replay:
            array = for_each_token(experts, len(row["token_ids"]))
            made["routed_experts"] = types.RoutedExperts(data=array.tobytes(), shape=list(array.shape), dtype=str(array.dtype))
        yield types.TrainingSample(**made)


def micro_batches(file, seq_len, num_train_workers, pad_to_multiple_of=1, model_config=None, processor=None, pictures=None, replay=False):
    """One list of `MicroBatch` for each worker. Without `model_config` bins are weighed by their tokens."""
    from prime_rl.trainer.batch import build_bin_cost, prepare_batch

    return prepare_batch(
        rollouts=list(training_samples(file, processor, pictures, replay)),
        seq_len=seq_len,
        num_train_workers=num_train_workers,
        bin_cost=build_bin_cost(model_config),
        pad_to_multiple_of=pad_to_multiple_of,
    )
