"""Pages of the documentation site that are made from what the repository says elsewhere; see mkdocs.yml.

Nothing is written twice: README, rules and version history are the files themselves, an environment's page is its
docstring, the page of examples their sources, and how to cite comes from CITATION.cff.
"""

from __future__ import annotations

import ast
import inspect
import posixpath
import re
from pathlib import Path
from typing import Any

import yaml
from gymnasium import Env
from mkdocs.structure.files import File, Files

from kismet_env import kismet_v0
from kismet_env.env import KismetEnv
from kismet_env.versus_env import KismetVersusEnv

ROOT = Path(__file__).parent.parent
PAGE_OF = {
    "README.md": "index.md",
    "RULES.md": "rules.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "CITATION.cff": "citing.md",
    "LICENSE": "citing.md#license",
    "kismet_env/env.py": "kismet.md",
    "kismet_env/versus_env.py": "kismet_versus.md",
    "kismet_env/kismet_v0.py": "kismet_v0.md",
}
PAGE_OF |= {f"kismet_env/policies/{card.name}": card.name for card in ROOT.glob("kismet_env/policies/*.md")}
LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:|#)([^)#\s]+)([^)]*)\)")
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    """Let the pages of docs/ that the navigation does not name stand at the end of its results."""
    results = next(section["Results"] for section in config.nav if "Results" in section)
    named = str(config.nav)
    results += [path.name for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in named]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that no file of docs/ holds."""
    pages = {page: (ROOT / name).read_text() for name, page in PAGE_OF.items() if name.endswith(".md")}
    pages |= {
        "kismet.md": environment("kismet_env/Kismet-v0", KismetEnv(), KismetEnv),
        "kismet_versus.md": environment("kismet_env/KismetVersus-v0", KismetVersusEnv(), KismetVersusEnv),
        "kismet_v0.md": several_players(),
        "examples.md": examples(),
        "citing.md": citing(),
    }
    for page, markdown in pages.items():
        files.append(File.generated(config, page, content=markdown))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links between files of the repository into links between pages of the site, but not in code blocks."""
    sources = {there: here for here, there in PAGE_OF.items()}
    folder = posixpath.dirname(sources.get(page.file.src_uri, f"docs/{page.file.src_uri}"))

    def on_the_site(link: re.Match[str]) -> str:
        text, address, place = link.groups()
        target = posixpath.normpath(posixpath.join(folder, address))
        if target.startswith("examples/") and target.endswith(".py"):
            page = f"examples.md#{posixpath.basename(target).removesuffix('.py')}"
        elif target in PAGE_OF:
            page = PAGE_OF[target]
        elif target.startswith("docs/"):
            page = target.removeprefix("docs/")
        elif (ROOT / target).exists():
            return text  # a source file: named, but no page of the site
        else:
            page = address  # mkdocs will say that it leads nowhere
        return f"[{text}]({page}{place})"

    pieces, end = [], 0
    for code in FENCED.finditer(markdown):
        pieces += [LINK.sub(on_the_site, markdown[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*pieces, LINK.sub(on_the_site, markdown[end:])])


def environment(env_id: str, env: Env[Any, Any], kind: type[Any]) -> str:
    """Return the page of an environment in Gymnasium's form: what it is at a glance, then its docstring."""
    rows = {
        "Action space": f"`{env.action_space}`",
        "Observation space": f"`{env.observation_space}`",
        "Make one": f'`gymnasium.make("{env_id}")` after `import kismet_env`',
        "Make a batch": f'`gymnasium.make_vec("{env_id}", num_envs=N)`',
        "Render modes": ", ".join(f"`{mode}`" for mode in env.metadata["render_modes"]),
    }
    return _page(env_id.split("/")[1], rows, kind)


def several_players() -> str:
    """Return the page of the PettingZoo environment, for two players at a glance."""
    env = kismet_v0.raw_env()
    rows = {
        "Agents": ", ".join(f"`{agent}`" for agent in env.possible_agents),
        "Action space": f"`{env.action_space('player_0')}`",
        "Observation space": f"`{env.observation_space('player_0')}`",
        "Make one": "`from kismet_env import kismet_v0; kismet_v0.env(num_players=2)`",
        "Render modes": ", ".join(f"`{mode}`" for mode in env.metadata["render_modes"]),
    }
    layout = (
        "The table of `observation` for two players is that of [KismetVersus-v0](kismet_versus.md#observation-space)."
    )
    return f"{_page('kismet_v0', rows, kismet_v0.KismetAECEnv)}\n{layout}\n"


def _page(title: str, rows: dict[str, str], kind: type[Any]) -> str:
    summary, _, rest = inspect.cleandoc(kind.__doc__ or "").partition("\n")
    table = "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])
    return f"# {title}\n\n{summary}\n\n![A table](images/table.png)\n\n{table}\n{rest}\n"


def examples() -> str:
    """Return the page of examples: what each says of itself, and its source."""
    parts = ["# Examples\n\nEach is one short file that a test runs.\n"]
    for path in sorted((ROOT / "examples").glob("*.py")):
        source = path.read_text()
        tree = ast.parse(source)
        said, code = ast.get_docstring(tree), "".join(source.splitlines(keepends=True)[tree.body[0].end_lineno :])
        parts.append(f"## {path.name} {{#{path.stem}}}\n\n{said}\n\n```python\n{code.lstrip()}```\n")
    return "\n".join(parts)


def citing() -> str:
    """Return the page on how to cite, as BibTeX, and the licence."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    authors = " and ".join(f"{{{author['name']}}}" for author in citation["authors"])
    bibtex = "\n".join(
        [
            "@software{kismet_env,",
            f"  title = {{{{{citation['title']}}}}},",
            f"  author = {{{authors}}},",
            f"  version = {{{citation['version']}}},",
            f"  license = {{{citation['license']}}},",
            "}",
        ]
    )
    licence = (ROOT / "LICENSE").read_text()
    return (
        f"# How to cite\n\n{citation['message']}\n\n```bibtex\n{bibtex}\n```\n\n## License\n\n```text\n{licence}```\n"
    )
