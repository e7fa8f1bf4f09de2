"""What the README and the pages of docs/ say is run, looked up and compared with the code.

An HTML comment on the line before a block of Python says how it is taken:

    <!-- no-run: REASON -->   left out
    <!-- sandbox -->          skipped where no sandbox works

A block that names ``sandbox="docker"`` needs an engine. Every other one runs anywhere: where not
even the ``local`` sandbox works, it gets canned results.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec
import pytest
import typer.main

from toolenvs import formats, sources
from toolenvs.cli import app
from toolenvs.cli.sandboxes import try_sandbox
from toolenvs.episode import OWN_END_REASONS
from toolenvs.grading.policy import MathPolicy
from toolenvs.types import ErrorKind, Step, ToolResult, Trajectory

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]

GIVEN = """\
import gymnasium as gym
import toolenvs

text = r"So the answer is \\boxed{18}."


def generate(prompts):
    return [text] * len(prompts)


def sampler(messages, tools, stop):
    return text, "stop"


def training(rounds=iter([True, True])):
    return next(rounds, False)


"""
"""What pages leave to the reader: the imports, a model and its words, how long it trains."""

FEIGNED = """\
import toolenvs.runtimes.local
from toolenvs.runtimes.scripted import Scripted

toolenvs.runtimes.local.Local = lambda: Scripted(default="1024")
"""

_FENCE = re.compile(
    r"^(?:<!--[ ](?P<how>[^\n]*?)[ ]-->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_HOW = re.compile(r"sandbox|no-run: \S.*")
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """A fenced block: its page, its first line's number, how it is taken, its language and text."""

    page: str
    line: int
    how: str
    language: str
    text: str


def blocks(page: Path, language: str) -> Iterator[Block]:
    """The fenced blocks of a page in one language."""
    whole = page.read_text()
    for found in _FENCE.finditer(whole):
        if found["language"] == language:
            line = whole.count("\n", 0, found.start("text")) + 1
            name = str(page.relative_to(ROOT))
            yield Block(name, line, found["how"] or "", language, found["text"])


def _to_run() -> Iterator[Any]:
    """Each block of Python, as a parameter of a test."""
    for page in PAGES:
        for block in blocks(page, "python"):
            marks = [pytest.mark.docker] if 'sandbox="docker"' in block.text else []
            yield pytest.param(block, marks=marks, id=f"{block.page}:{block.line}")


@functools.cache
def local_works() -> bool:
    """Whether the ``local`` sandbox starts here; where it was promised it must."""
    trial = try_sandbox("local")
    if not trial.works and os.environ.get("TOOLENVS_REQUIRE_LOCAL") == "1":
        pytest.fail(f"TOOLENVS_REQUIRE_LOCAL=1, but: {trial.detail}", pytrace=False)
    return trial.works


def run_block(block: Block, folder: Path, *, feign: bool = False) -> None:
    """Run a block in a fresh interpreter, in a folder with a small file of tasks.

    Args:
        block: the block.
        folder: an empty folder.
        feign: canned results instead of the ``local`` sandbox.
    """
    row = {"question": "What is 9 + 9?", "answer": "9 + 9 = <<9+9=18>>18\n#### 18"}
    (folder / "data").mkdir()
    (folder / "data" / "test.jsonl").write_text(json.dumps(row) + "\n")
    (folder / "block.py").write_text(GIVEN + (FEIGNED if feign else "") + block.text)
    around = dict(os.environ)
    if 'sandbox="docker"' not in block.text:
        around["DOCKER_HOST"] = f"unix://{folder}/no-engine.sock"  # so that auto is local
    done = subprocess.run(
        [sys.executable, "-W", "error", "block.py"],
        cwd=folder,
        env=around,
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, f"{block.page}:{block.line}\n{done.stderr}"


@pytest.mark.parametrize("block", [*_to_run()])
def test_every_block_of_python_runs(block: Block, tmp_path: Path) -> None:
    """What a page shows as Python works as it stands, or the page says why it cannot be run."""
    assert not block.how or _HOW.fullmatch(block.how), f"{block.how!r} is no way to take a block"
    if block.how.startswith("no-run"):
        compile(block.text, block.page, "exec")
        pytest.skip(block.how)
    real = 'sandbox="docker"' in block.text or local_works()
    if block.how == "sandbox" and not real:
        pytest.skip("no sandbox works here")
    run_block(block, tmp_path, feign=not real)


def test_the_first_block_runs_without_any_sandbox(tmp_path: Path) -> None:
    """Where no sandbox works the blocks still run, on canned results."""
    run_block(next(blocks(ROOT / "README.md", "python")), tmp_path, feign=True)


def shell_lines(page: Path) -> Iterator[str]:
    """What a page shows to be typed: lines of consoles, indented lines, code within lines."""
    for block in blocks(page, "console"):
        yield from re.findall(r"^\$ (.*)", block.text, re.MULTILINE)
    text = _FENCE.sub("", page.read_text())
    yield from re.findall(r"^ {4,}((?:toolenvs|make) .*)", text, re.MULTILINE)
    yield from _INLINE.findall(text)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_command_and_option_exists(page: Path) -> None:
    """``toolenvs ...`` in a page names commands and options that there are."""
    for line in shell_lines(page):
        words = re.sub(r"\s#\s.*", "", line).split()
        if words[:1] != ["toolenvs"] or len(words) < 2:
            continue
        command: Any = typer.main.get_command(app)
        for word in words[1:]:
            known = {name for parameter in command.params for name in parameter.opts}
            if hasattr(command, "commands"):
                assert word in {*command.commands, "--help"}, f"{line!r}: no command {word!r}"
                command = command.commands[word]
            elif word.startswith("-"):
                option = word.partition("=")[0]
                assert option in {*known, "--help"}, f"{line!r}: no option {option!r}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_target_of_make_exists(page: Path) -> None:
    """``make ...`` in a page names targets of the Makefile."""
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for line in shell_lines(page):
        words = re.sub(r"\s#\s.*", "", line).split()
        if words[:1] == ["make"]:
            assert [word for word in words[1:] if "=" not in word and word not in targets] == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_leads_somewhere(page: Path) -> None:
    """Links to files and to headings of pages have their ends."""
    for link in _LINK.findall(_FENCE.sub("", page.read_text())):
        if re.match(r"\w+:", link):
            continue
        file, _, heading = link.partition("#")
        target = (page.parent / file) if file else page
        assert target.exists(), link
        if heading:
            titles = re.findall(r"^#+ (.*)", target.read_text(), re.MULTILINE)
            assert heading in [_anchor(title) for title in titles], link


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_dotted_name_exists(page: Path) -> None:
    """``toolenvs.a.b`` in a page can be imported; ``toolenvs/a/b.py`` is a file."""
    text = page.read_text()
    for code in _INLINE.findall(_FENCE.sub("", text)):
        for dotted in re.findall(r"(?<![\w./-])toolenvs(?:\.[A-Za-z_]\w*)+", code):
            assert _found(dotted), dotted
    for path in re.findall(r"`((?:toolenvs|tests|sandboxes|tasks)/[\w/.-]+\.\w+)`", text):
        if Path(path).name not in ("few_calls.py", "word_count.py"):  # the reader's own
            assert (ROOT / path).exists(), path


def test_the_pages_name_every_kind_of_error_and_failure() -> None:
    """docs/records.md lists each kind that the package can give, and no error kind besides."""
    assert _listed("records.md", "Error kinds") == set(get_args(ErrorKind))
    raised = {"internal"} | {
        call.args[0].value
        for file in (ROOT / "toolenvs").rglob("*.py")
        if "bench" not in file.parts  # no episode of a user's can meet those
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "RuntimeFailure"
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }
    assert _listed("records.md", "Failure kinds") == raised


def test_the_pages_name_every_field_of_a_record() -> None:
    """docs/records.md names the fields of trajectories, steps and results, and the end reasons."""
    page = (ROOT / "docs" / "records.md").read_text()
    assert _listed("records.md", "A trajectory") == {
        *Trajectory.__struct_fields__,
        "ended",
        "score",
    }
    assert _listed("records.md", "A step") == set(Step.__struct_fields__)
    for name in (*ToolResult.__struct_fields__, *OWN_END_REASONS):
        assert f"`{name}`" in page, name


def test_the_pages_name_every_option() -> None:
    """Formats, grading and sources: each option and each name with its default."""
    for name in formats.names():
        if name in ("hermes", "fenced", "openai", "tags"):
            options = set(inspect.signature(formats.get(name)).parameters)
            assert _listed("formats.md", name) == options, name
    assert _listed("tasks.md", "Grading") == set(MathPolicy.__struct_fields__)
    for policy in msgspec.structs.fields(MathPolicy):
        shown = json.dumps(policy.default).strip('"')
        assert re.search(rf"^\| `{policy.name}` \| `?{shown}`? \|", _page("tasks.md"), re.MULTILINE)
    for name in sources.names():
        assert re.search(rf"`{name}[`:]", _page("tasks.md")), name


def _page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def _listed(page: str, title: str) -> set[str]:
    """The names in the first columns of the tables under one heading."""
    section = re.search(rf"^#+ {re.escape(title)}$(.*?)(?=^#|\Z)", _page(page), re.M | re.DOTALL)
    assert section is not None, title
    cells = re.findall(r"^\| (`[^|]*`) \|", section[1], re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _found(dotted: str) -> bool:
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        return _has(thing, parts[end:])
    return False


def _has(thing: Any, names: list[str]) -> bool:
    for name in names:
        if not hasattr(thing, name):
            return False
        thing = getattr(thing, name)
    return True
