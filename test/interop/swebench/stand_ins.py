"""Lets swebench and swesmith be imported without what they download, start containers and reach clouds with.

Their parsers, tables and counting call none of it. `import stand_ins` comes before the first import of either.
"""

import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from unittest.mock import MagicMock

roots = {"bs4", "datasets", "docker", "dotenv", "fastcore", "ghapi", "modal", "requests", "tenacity", "tqdm", "unidiff"}


class StandIn(MagicMock):
    __path__: list = []


class StandIns(MetaPathFinder, Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name.split(".")[0] in roots else None

    def create_module(self, spec):
        return StandIn(name=spec.name)

    def exec_module(self, module):
        pass


# Behind the others: an installed package is taken as it is.
sys.meta_path.append(StandIns())
