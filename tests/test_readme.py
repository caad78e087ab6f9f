"""The documents: their Python runs and prints what they say, their links and make targets exist."""

import ast
import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCUMENTS = [README, *sorted(ROOT.glob("docs/**/*.md"))]
MARKDOWN = [*DOCUMENTS, ROOT / "CONTRIBUTING.md", ROOT / "RULES.md", ROOT / "CHANGELOG.md"]
EXTRAS = ("torch", "stable_baselines3", "sb3_contrib", "pettingzoo", "scipy", "matplotlib", "tyro", "rich", "ray")
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


def snippets(path: Path) -> list[tuple[int, str, str | None]]:
    """Return (line, code, what it prints) of the Python in a document.

    A `text` block with nothing but empty lines before it is what the Python above prints; None without one.
    """
    text, found = path.read_text(), []
    blocks = list(FENCE.finditer(text))
    for number, block in enumerate(blocks):
        if block[2] != "python":
            continue
        following = blocks[number + 1] if number + 1 < len(blocks) else None
        printed = None
        if following and following[2] == "text" and not text[block.end() : following.start()].strip():
            printed = following[3]
        found.append((text[: block.start()].count("\n") + 2, block[3], printed))
    return found


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_snippets_run_and_print_what_is_written(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, each with the names of those before it, as a reader would type them in."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for line, code, printed in snippets(path):
        where = f"{path.name}, line {line}"
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                exec(compile("\n" * (line - 1) + code, where, "exec"), names)
            except ImportError as missing:  # the core is also tested without its extras
                if missing.name in EXTRAS or "pip install 'kismet-env[" in str(missing):
                    pytest.skip(f"{where}: {missing}")
                raise
        if printed is not None:
            assert out.getvalue().rstrip() == printed.rstrip(), f"{where} prints\n{out.getvalue()}"


def test_the_readme_has_snippets() -> None:
    assert snippets(README)


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.name)
def test_links_to_files_lead_somewhere(path: Path) -> None:
    missing = [link for link in LINK.findall(path.read_text()) if not (path.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.name)
def test_make_targets_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = path.read_text()
    in_line = " ".join(re.findall(r"`[^`]+`", FENCE.sub("", text)))
    commands = "".join(block[3] for block in FENCE.finditer(text))
    named = set(re.findall(r"\bmake ([a-z-]+)\b", in_line))
    named |= set(re.findall(r"^ *make ([a-z-]+)\b", commands, re.MULTILINE))
    assert named <= targets


API = re.compile(r"^::: kismet_env\.([\w.]+)\n(?: +options:\n +members:( .*\n|\n(?: +- \w+\n)+))?", re.MULTILINE)
IMPORT = re.compile(r"^ *from kismet_env\.(\S+) import (.+)$", re.MULTILINE)


def public() -> dict[str, set[str]]:
    """The names on the API page, by module."""
    found: dict[str, set[str]] = {}
    for module, members in API.findall((ROOT / "docs" / "api.md").read_text()):
        if members:
            found[module] = set(re.findall(r"\w+", members))
        else:
            module, _, name = module.rpartition(".")
            found[module] = {name}
    return found


def test_the_api_page_shows_what_modules_define_and_no_kernels() -> None:
    for module, names in public().items():
        path = ROOT / "kismet_env" / module.replace(".", "/")
        tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
        defined, kernels = set(), set()
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined.add(node.name)
                if any(ast.unparse(decorator) == "compiled" for decorator in node.decorator_list):
                    kernels.add(node.name)
            for target in getattr(node, "targets", [getattr(node, "target", None)]):
                defined |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)} if target else set()
        assert names <= defined - kernels, module
        assert names


def test_what_documents_and_examples_import_is_on_the_api_page() -> None:
    shown = public()
    for path in [*DOCUMENTS, *ROOT.glob("examples/*.py")]:
        for module, names in IMPORT.findall(path.read_text()):
            assert set(re.findall(r"\w+", names)) <= shown.get(module, set()), f"{path.name}: {module}"
