"""Modules of a checkout's GPU side, which its own loop imports and that is not called here."""

import importlib.abc
import importlib.machinery
import sys
from unittest.mock import MagicMock


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__, module.__name__ = [], spec, spec.name
        return module

    def exec_module(self, module):
        pass


def stand_in_for(*names):
    sys.meta_path.insert(0, StandIns(names))
