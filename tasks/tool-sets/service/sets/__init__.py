"""The sets that are served. A set has `list_tasks(domain)`, and `open_task(domain, task)` with `tools` and `graded`."""

from importlib import import_module

NAMES = ("tau2", "agentdojo")


def set_named(name):
    if name not in NAMES:
        raise SystemExit(f"there is no set {name}: there are {', '.join(NAMES)}")
    return import_module(f"sets.{name}")


def open_task(name, domain, task):
    return set_named(name).open_task(domain, task)
