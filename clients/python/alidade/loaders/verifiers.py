"""verifiers' own traces of rollouts that Alidade exported (alidade export --format verifiers).

    for trace in traces("traces.jsonl"): ...      # verifiers.v1.trace.WireTrace

With `--kept-sets train`, calls that were sampled with `top_p`, `top_k` or `min_p` are trained where the tokens that these kept are on
record. Their nodes have `sampling_mask`, over which prime-rl renormalises since its pull request 3431. An older prime-rl ignores the
field and computes another ratio: export without `--kept-sets` for it.
"""

from ..media import beside
from ..rows import read
from ..support import sets


def traces(file, files=None):
    """`files`: the folder with the bytes that traces name, by default media/ beside the file."""
    return (trace_of(row, files or beside(file)) for row in read(file))


def trace_of(row, files):
    """`row`: a line of the format. `files`: the folder, or the service's base64 by hash."""
    from verifiers.v1.trace import WireTrace

    nodes = [_without_support(node) for node in row["nodes"]]
    trace = WireTrace.model_validate({**row, "nodes": nodes})
    for node, told in zip(trace.nodes, row["nodes"]):
        if told.get("support"):
            node.sampling_mask = _mask(told, files)
    return trace


def _without_support(node):
    return {key: value for key, value in node.items() if key != "support"}


def _mask(node, files):
    """verifiers has a row for each place whose mask is true. A row without ids means that nothing was cut there."""
    from verifiers.v1.types import SamplingMask

    kept = sets(node, files)
    return SamplingMask.from_sampling_mask([ids or [] for ids, trained in zip(kept, node["mask"]) if trained])
