"""The scripts of examples/ as modules, for tests that look inside."""

import importlib.util
from pathlib import Path
from types import ModuleType


def example(name: str) -> ModuleType:
    path = Path(__file__).parent.parent / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
