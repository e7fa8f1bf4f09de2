"""Images: named by their content, built once, also without a network."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from toolenvs import debian, engine, images, wheelhouse
from toolenvs.data import data_folder
from toolenvs.engine import HUB_PYTHON
from toolenvs.errors import RuntimeFailure, UnknownNameError, UsageError
from toolenvs.wheelhouse import PythonTarget

DEBIAN = {"ID": "debian", "VERSION_CODENAME": "bookworm"}
HERE = PythonTarget("3.11", "x86_64", 36)
BASE_LABELS = {
    "toolenvs.recipe": debian.RECIPE,
    "toolenvs.image": "base",
    "toolenvs.content": "c0",
}


@pytest.fixture
def sandboxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of ``sandboxes/`` that a test may change."""
    copy = tmp_path / "sandboxes"
    shutil.copytree(data_folder("sandboxes"), copy)
    monkeypatch.setattr(images, "data_folder", lambda _: copy)
    return copy


@pytest.fixture(scope="module")
def built() -> images.SandboxImage:
    """The Python sandbox's image."""
    return images.ensure_image("python")


def wheel(path: Path, files: dict[str, str]) -> Path:
    """Write a wheel that holds these files."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_the_hash_names_the_content(sandboxes: Path) -> None:
    """Equal files give an equal hash; another lock, Dockerfile or file gives another."""
    first = images.context_hash("python")
    assert images.context_hash("python") == first
    (sandboxes / "python" / "__pycache__").mkdir()
    (sandboxes / "python" / "__pycache__" / "x.pyc").write_bytes(b"1")
    assert images.context_hash("python") == first
    lock = sandboxes / "python" / "requirements.lock"
    lock.write_text(lock.read_text() + "\n# one more\n")
    second = images.context_hash("python")
    assert second != first
    (sandboxes / "python" / "more.txt").write_text("x")
    assert images.context_hash("python") != second


def test_the_context_tells_nothing_of_the_machine(tmp_path: Path) -> None:
    """Owner, dates and modes are fixed; the supervisor and unpacked packages are inside."""
    package = wheel(tmp_path / "a-1-py3-none-any.whl", {"a/__init__.py": "x = 1"})
    first, second = io.BytesIO(), io.BytesIO()
    for file in (first, second):
        images._write_context(file, "python", [package])
    assert first.getvalue() == second.getvalue()
    first.seek(0)
    with tarfile.open(fileobj=first) as tar:
        entries = {entry.name: entry for entry in tar}
    assert {
        "sandboxes/python/Dockerfile",
        "toolenvs/supervisor/__init__.py",
        "site/a/__init__.py",
    } <= set(entries)
    assert {(e.uid, e.gid, e.mtime, e.mode) for e in entries.values()} == {(0, 0, 0, 0o644)}


def test_an_unknown_image_is_named_with_the_nearest() -> None:
    """The message lists what can be built."""
    with pytest.raises(UnknownNameError, match="'python'"):
        images.ensure_image("pyhton")


def test_what_is_no_sandbox_is_no_image(sandboxes: Path) -> None:
    """A folder is an image when it locks packages and says how it is built."""
    assert {"python", "sql"} <= set(images.names())
    (sandboxes / "server").mkdir()
    (sandboxes / "server" / "Dockerfile").write_text("FROM debian")
    assert "server" not in images.names()


def test_each_image_holds_the_packages_that_it_copies(sandboxes: Path) -> None:
    """What a Dockerfile copies of toolenvs is in the context and in the hash, and nothing else."""
    places = {name: {path for path, _ in images._context_files(name)} for name in ("python", "sql")}
    assert "toolenvs/database/values.py" in places["sql"]
    assert not any(path.startswith("toolenvs/database") for path in places["python"])
    assert "toolenvs/supervisor/boot.py" in places["python"] & places["sql"]
    before = images.context_hash("python")
    dockerfile = sandboxes / "python" / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text() + "COPY toolenvs/database /x\n")
    assert "toolenvs/database/values.py" in dict(images._context_files("python"))
    assert images.context_hash("python") != before


def test_a_wheels_files_go_where_python_finds_them(tmp_path: Path) -> None:
    """Platform files move to the top, scripts and the package's own tests stay out."""
    package = wheel(
        tmp_path / "a.whl",
        {
            "a/__init__.py": "1",
            "a/tests/test_a.py": "2",
            "tests/__init__.py": "3",
            "tests.py": "4",
            "a-1.data/platlib/a/fast.so": "5",
            "a-1.data/scripts/a": "6",
            "a-1.data/data/share/man/a.1": "7",
        },
    )
    found = {str(path): content.decode() for path, content in wheelhouse.unpacked(package)}
    assert found == {"a/__init__.py": "1", "tests.py": "4", "a/fast.so": "5"}


@pytest.mark.parametrize("name", ["../evil.py", "/etc/evil.py", "a-1.data/purelib/../../x.py"])
def test_a_wheel_cannot_write_outside(tmp_path: Path, name: str) -> None:
    """A path that leads out of the folder is refused."""
    with pytest.raises(UsageError, match="leads out"):
        list(wheelhouse.unpacked(wheel(tmp_path / "a.whl", {name: ""})))


def test_the_base_images_python_is_read() -> None:
    """CPython with glibc is accepted; anything else is refused with what it said."""
    assert PythonTarget.parse("CPython 3.12 aarch64 2.31\n") == PythonTarget("3.12", "aarch64", 31)
    for said in ("CPython 3.11 x86_64 -", "PyPy 3.11 x86_64 2.36", ""):
        with pytest.raises(UsageError, match="glibc"):
            PythonTarget.parse(said)


def test_packages_come_from_a_folder_without_any_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder serves a lock alone; a second time nothing is fetched; a wrong hash is refused."""
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("PIP_REQUIRE_VIRTUALENV", "1")
    house = tmp_path / "house"
    house.mkdir()
    metadata = "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
    tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {
        "tiny/__init__.py": "",
        "tiny-1.0.dist-info/METADATA": metadata,
        "tiny-1.0.dist-info/WHEEL": tag,
        "tiny-1.0.dist-info/RECORD": "",
    }
    package = wheel(house / "tiny-1.0-py3-none-any.whl", files)
    lock = tmp_path / "lock"
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    lock.write_text(f"tiny==1.0 --hash=sha256:{digest}\n")
    told: list[str] = []

    def fetch() -> list[Path]:
        return wheelhouse.fetch(
            lock, HERE, cache=tmp_path / "cache", source=house, progress=told.append
        )

    assert [path.name for path in fetch()] == [package.name]
    assert fetch()
    assert len(told) == 1
    lock.write_text(f"tiny==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(RuntimeFailure, match="TOOLENVS_WHEELHOUSE") as caught:
        fetch()
    assert caught.value.kind == "image_missing"
    assert len(list((tmp_path / "cache" / "wheels").iterdir())) == 1  # no half-filled folder


ONE_LINE = """
# deb http://commented.example/debian bookworm main
deb-src http://source.example/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg] https://other.example/apt stable-x main
deb http://security.example/debian-security bookworm-security main
deb [arch=amd64] http://mine.example/debian/ bookworm main contrib # here
"""
DEB822 = """
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
Enabled: no

# a comment
Types: deb deb-src
URIs: http://first.example/debian http://second.example/debian
Suites: bookworm
 bookworm-updates
Components: main
"""


def test_the_machines_own_mirror_is_found() -> None:
    """Both of apt's layouts are read; other archives, sources and comments are not taken."""
    assert list(debian.own_mirrors([(".list", ONE_LINE)], DEBIAN)) == ["http://mine.example/debian"]
    assert list(debian.own_mirrors([(".sources", DEB822)], DEBIAN)) == [
        "http://first.example/debian",
        "http://second.example/debian",
    ]
    ubuntu = {"ID": "ubuntu", "VERSION_CODENAME": "noble"}
    assert list(debian.own_mirrors([(".list", ONE_LINE)], ubuntu)) == []


def test_a_list_of_mirrors_is_followed(tmp_path: Path) -> None:
    """Cloud images name a file of mirrors; its first is taken, and a missing file is none."""
    listed = tmp_path / "debian.list"
    listed.write_text("https://cloud.example/debian\nhttps://deb.debian.org/debian\n")
    text = f"deb mirror+file:{listed} bookworm main\ndeb mirror+file:/nowhere bookworm main\n"
    found = debian.own_mirrors([(".list", text)], DEBIAN)
    assert list(found) == ["https://cloud.example/debian"]


def test_a_chosen_mirror_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """TOOLENVS_DEBIAN_MIRROR comes before the machine's own."""
    monkeypatch.setenv("TOOLENVS_DEBIAN_MIRROR", "http://chosen.example/debian")
    assert debian.mirror() == "http://chosen.example/debian"


def test_what_is_missing_for_a_debian_base_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ordinary user without debootstrap reads both, and how to get it."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(RuntimeFailure, match="apt install debootstrap") as caught:
        debian.make_root(tmp_path, progress=lambda _: None)
    assert "sudo" in str(caught.value)


class HublessEngine(engine.Engine):
    """An engine that holds nothing and reaches nothing; remembers what it was asked to pull."""

    def __init__(self, *, reached: bool = False) -> None:
        self.reached = reached
        self.pulled: list[str] = []

    def can_pull(self, reference: str, *, timeout_s: float = 5.0) -> bool:
        return self.reached

    def pull(self, reference: str, *, progress: engine.Progress) -> None:
        self.pulled.append(reference)

    def image(self, reference: str) -> engine.ImageFacts | None:
        return None

    def images(self, labels: object) -> list[engine.ImageFacts]:
        return []


class Rebuilt(HublessEngine):
    """An engine with a Debian base and, newer, an image that was built on it and has its labels."""

    def image(self, reference: str) -> engine.ImageFacts | None:
        return engine.ImageFacts("base", BASE_LABELS) if reference == "toolenvs/base:c0" else None

    def images(self, labels: object) -> list[engine.ImageFacts]:
        return [engine.ImageFacts(name, BASE_LABELS) for name in ("server", "base")]


def test_what_was_built_on_the_debian_base_is_not_taken_for_it() -> None:
    """Labels are inherited, so the base is known by its name."""
    assert images._base(Rebuilt(), "debian", lambda _: None) == ("debian", "base")


def test_docker_hub_is_taken_where_it_answers() -> None:
    """``auto`` pulls Docker Hub's Python; a reference of one's own is pulled when absent."""
    hub = HublessEngine(reached=True)
    assert images._base(hub, "auto", lambda _: None) == (HUB_PYTHON, HUB_PYTHON)
    assert images._base(hub, "mine:1", lambda _: None) == ("mine:1", "mine:1")
    assert hub.pulled == [HUB_PYTHON, "mine:1"]


class OneImage:
    """An engine that holds a base under a name of its own and the sandbox image made of it."""

    def __init__(self, *, holds_base: bool) -> None:
        self.holds_base = holds_base
        content = images._content(self, "python", "mine:1")  # type: ignore[arg-type]
        self.labels = {
            "toolenvs.image": "python",
            "toolenvs.context": images.context_hash("python"),
            "toolenvs.base": "debian",
            "toolenvs.content": content,
        }

    def image(self, reference: str) -> engine.ImageFacts | None:
        known = {"mine:1": "sha256:1", "other:1": "sha256:2"}
        return engine.ImageFacts(known[reference], {}) if self.holds_base else None

    def images(self, labels: Mapping[str, str]) -> list[engine.ImageFacts]:
        fits = all(self.labels.get(key) == value for key, value in labels.items())
        return [engine.ImageFacts("sha256:3", self.labels)] if fits else []


@pytest.mark.parametrize(
    ("base", "holds_base", "found"),
    [
        ("auto", True, True),
        ("debian", True, True),
        ("mine:1", True, True),  # the same base by another of its names
        ("other:1", True, False),
        ("mine:1", False, False),
    ],
)
def test_an_image_of_that_base_is_not_built_again(base: str, holds_base: bool, found: bool) -> None:
    """Its content decides, not the word that the base went by when it was built."""
    docker: Any = OneImage(holds_base=holds_base)
    assert (images._existing(docker, "python", base) is not None) is found


def test_without_hub_and_debian_the_way_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names what is missing and the option that needs neither."""
    monkeypatch.setattr(debian, "missing", lambda: ["it takes root: run the command with sudo."])
    told: list[str] = []
    with pytest.raises(RuntimeFailure, match="--base IMAGE") as caught:
        images._base(HublessEngine(), "auto", told.append)
    assert "takes root" in str(caught.value)
    assert told
    assert told[0].startswith("Docker Hub does not answer")


@pytest.mark.docker
def test_an_image_is_built_once(built: images.SandboxImage) -> None:
    """The same content is found again, whatever the base is called by."""
    again = images.ensure_image("python")
    assert not again.built
    assert again.id == built.id
    assert images.find_image("python", built.base) == again
    assert built.reference == f"toolenvs/python:{built.content[:12]}"


@pytest.mark.docker
def test_the_image_holds_what_it_promises(built: images.SandboxImage) -> None:
    """Packages import at their locked versions, compiled, as any user, in a read-only root."""
    program = (
        "import numpy, scipy, sympy, mpmath, networkx, numpy.testing, json, os, sqlite3, decimal\n"
        "import importlib.util as u\n"
        "cached = [os.path.exists(u.cache_from_source(m.__file__)) for m in (numpy, sympy, json)]\n"
        "mode = os.stat('/opt/supervisor/__init__.py').st_mode & 0o444\n"
        "print(numpy.__version__, scipy.__version__, sympy.__version__, all(cached), oct(mode))"
    )
    with engine.connect() as docker:
        said = docker.output(built.reference, ("python3", "-c", program)).split()
    lock = (data_folder("sandboxes") / "python" / "requirements.lock").read_text()
    for name, version in zip(("numpy", "scipy", "sympy"), said[:3], strict=True):
        assert f"{name}=={version} " in lock
    assert said[3:] == ["True", "0o444"]


def test_a_build_from_a_checkout_sees_what_it_copies() -> None:
    """What a Dockerfile copies is not ignored by the engine's own builder."""
    ignored = (data_folder("sandboxes").parent / ".dockerignore").read_text().splitlines()
    for name in images.names():
        for path, _ in images._context_files(name):
            assert f"!{path.split('/')[0]}" in ignored


@pytest.mark.docker
def test_the_sql_image_holds_what_it_promises() -> None:
    """SQLAlchemy at its locked version, an SQLite library that is shared, our package, no more."""
    program = (
        "import sqlite3, sqlalchemy, toolenvs_database, importlib.util as u\n"
        "print(sqlalchemy.__version__, 'libsqlite3.so' in open('/proc/self/maps').read(),\n"
        "      u.find_spec('numpy'), u.find_spec('toolenvs'), toolenvs_database.__name__)"
    )
    image = images.ensure_image("sql")
    with engine.connect() as docker:
        said = docker.output(image.reference, ("python3", "-c", program)).split()
    lock = (data_folder("sandboxes") / "sql" / "requirements.lock").read_text()
    assert f"sqlalchemy=={said[0]} " in lock
    assert said[1:] == ["True", "None", "None", "toolenvs_database"]
    assert image.reference == f"toolenvs/sql:{image.content[:12]}"


@pytest.fixture
def other_image(built: images.SandboxImage, sandboxes: Path) -> Iterator[images.SandboxImage]:
    """An image of a changed folder, built on the first image as its base, with no index."""
    dockerfile = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nCOPY sandboxes/python/note /note\n"
    (sandboxes / "python" / "Dockerfile").write_text(dockerfile)
    (sandboxes / "python" / "note").write_text("hello")
    (sandboxes / "python" / "requirements.lock").write_text("# nothing\n")
    image = images.ensure_image("python", built.reference, wheels=sandboxes)
    yield image
    with engine.connect() as docker:
        docker.remove_image(image.reference)


@pytest.mark.docker
def test_an_image_on_a_base_of_ones_own(
    built: images.SandboxImage, other_image: images.SandboxImage
) -> None:
    """Any base with python3 will do; it is part of the content's hash, and found again."""
    assert other_image.built
    assert other_image.base == built.reference
    assert other_image.content != built.content
    again = images.ensure_image("python", built.reference)
    assert (again.id, again.built) == (other_image.id, False)
    with engine.connect() as docker:
        assert docker.output(other_image.id, ("cat", "/note")) == "hello"


@pytest.mark.docker
@pytest.mark.slow
def test_the_debian_base_is_made_of_packages(tmp_path: Path) -> None:
    """A root with a whole Python, and nothing that tells of the machine that made it."""
    if debian.missing():
        pytest.skip(" ".join(debian.missing()))
    root = debian.make_root(tmp_path, progress=lambda _: None)
    with tarfile.open(root.tar) as tar:
        names = set(tar.getnames())
    assert "./usr/bin/python3" in names
    assert "./usr/lib/python3.11/json/__init__.py" in names
    assert not {"./etc/resolv.conf", "./etc/hostname", "./etc/apt/sources.list"} & names
    assert len(root.content) == 64
