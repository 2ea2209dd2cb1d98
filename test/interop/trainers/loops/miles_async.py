"""The same for miles' fully asynchronous rollout. It samples on while weights are updated, and its buffer takes no group that older weights
had a part in: what is stale is asked for again."""

from loops import miles

VERSION = miles.VERSION


def run(rig):
    miles.run(
        rig,
        rollout_function_path="miles.rollout.fully_async_rollout.FullyAsyncRolloutFn",
        async_unused_samples_handler="retry", async_data_buffer_capacity_factor=1.0, max_weight_staleness=0,
    )
