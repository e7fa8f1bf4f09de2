"""The images that sandboxes run in: what goes in, the hash that names it, and the build.

An image is made again only when its content is new: the files of ``sandboxes/<name>``, the
packages of toolenvs that its Dockerfile copies (the supervisor ...), or the base image.
``docs/sandbox-images.md`` tells how to do it without a network.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import logging
import os
import re
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from toolenvs import debian, engine, wheelhouse
from toolenvs.data import data_folder
from toolenvs.engine import HUB_PYTHON, Engine, ImageFacts
from toolenvs.errors import RuntimeFailure, UnknownNameError

_log = logging.getLogger(__name__)
_PACKAGE = Path(__file__).parent
_COPIED = re.compile(r"^COPY toolenvs/(\w+) ", re.MULTILINE)
_NAME, _CONTEXT, _BASE, _CONTENT = (
    f"toolenvs.{word}" for word in ("image", "context", "base", "content")
)
_DEBIAN_RECIPE = "toolenvs.recipe"

Progress = Callable[[str], None]


class SandboxImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image that is ready to run.

    Attributes:
        name: folder of ``sandboxes/``: ``"python"``, ``"sql"``.
        reference: its tag, which ends in the hash of its content.
        id: the engine's id.
        content: hash of all that went in; equal on two machines that put the same in.
        base: what it was built on: a reference, or ``"debian"``.
        built: True when this call built it, False when it was there.
    """

    name: str
    reference: str
    id: str
    content: str
    base: str
    built: bool


def names() -> list[str]:
    """The sandbox images that can be built: folders that lock the packages of a Python."""
    locks = data_folder("sandboxes").glob("*/requirements.lock")
    return sorted(lock.parent.name for lock in locks if lock.with_name("Dockerfile").exists())


def ensure_image(
    name: str = "python",
    base: str = "auto",
    *,
    progress: Progress = _log.info,
    wheels: Path | None = None,
) -> SandboxImage:
    """Return the image of that name, building it when there is none of the present content.

    Args:
        name: folder of ``sandboxes/``.
        base: a reference of an image that holds ``python3``; ``"debian"``: made here of Debian's
            packages; ``"auto"``: whatever an image of the present content was built on, else
            Docker Hub's Python where it answers, else Debian.
        progress: told in a few sentences what goes on, and which base was taken and why.
        wheels: a folder of wheels to use instead of a package index; TOOLENVS_WHEELHOUSE is the
            same as a variable.

    Raises:
        UnknownNameError: No such folder.
        RuntimeFailure: No engine answers, or the image cannot be made; the message says why.
    """
    if name not in names():
        raise UnknownNameError("a sandbox image", name, names())
    given = os.environ.get("TOOLENVS_WHEELHOUSE")
    source = wheels or (Path(given) if given else None)
    with engine.connect() as docker:
        if found := _existing(docker, name, base):
            return found
        with _one_builder():  # another process may have built it meanwhile
            found = _existing(docker, name, base)
            return found or _build(docker, name, base=base, source=source, progress=progress)


def find_image(name: str = "python", base: str = "auto") -> SandboxImage | None:
    """Return the image of that name and its present content, or None when it is not built."""
    with engine.connect() as docker:
        return _existing(docker, name, base)


def outdated_images(name: str = "python") -> list[ImageFacts]:
    """Images of that name whose content is no longer the present one, newest first."""
    with engine.connect() as docker:
        present = context_hash(name)
        return [f for f in docker.images({_NAME: name}) if f.labels.get(_CONTEXT) != present]


def context_hash(name: str) -> str:
    """Hash of the files that go into an image: its folder and packages of ours, not the base."""
    digest = hashlib.sha256()
    for path, content in _context_files(name):
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def cache_folder() -> Path:
    """The folder for what can be made again: ``toolenvs`` below XDG_CACHE_HOME or ``~/.cache``."""
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    folder = Path(home) / "toolenvs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _existing(docker: Engine, name: str, base: str) -> SandboxImage | None:
    images = docker.images({_NAME: name, _CONTEXT: context_hash(name)})
    if base == "auto":
        found = images
    elif base == "debian" or docker.image(base) is None:  # then only its word is known
        found = [facts for facts in images if facts.labels[_BASE] == base]
    else:  # one base may have several names: the content decides
        content = _content(docker, name, base)
        found = [facts for facts in images if facts.labels[_CONTENT] == content]
    return _image(found[0], built=False) if found else None


def _build(
    docker: Engine, name: str, *, base: str, source: Path | None, progress: Progress
) -> SandboxImage:
    base, reference = _base(docker, base, progress)
    content = _content(docker, name, reference)
    printed = docker.output(reference, ("python3", "-c", wheelhouse.PROBE))
    target = wheelhouse.PythonTarget.parse(printed)
    lock = data_folder("sandboxes") / name / "requirements.lock"
    cache = cache_folder()
    packages = wheelhouse.fetch(lock, target, cache=cache, source=source, progress=progress)
    progress(f"building the image {name} (base: {base})")
    with tempfile.TemporaryFile(dir=cache) as file:
        _write_context(file, name, packages)
        file.seek(0)
        image_id = docker.build(
            file,
            dockerfile=f"sandboxes/{name}/Dockerfile",
            arguments={"BASE_IMAGE": reference},
            labels={
                _NAME: name,
                _CONTEXT: context_hash(name),
                _BASE: base,
                _CONTENT: content,
            },
            progress=progress,
        )
    facts = docker.image(image_id)
    assert facts is not None
    image = _image(facts, built=True)
    docker.tag(image.id, image.reference)
    return image


def _image(facts: ImageFacts, *, built: bool) -> SandboxImage:
    name, content = facts.labels[_NAME], facts.labels[_CONTENT]
    return SandboxImage(
        name=name,
        reference=f"toolenvs/{name}:{content[:12]}",
        id=facts.id,
        content=content,
        base=facts.labels[_BASE],
        built=built,
    )


def _content(docker: Engine, name: str, reference: str) -> str:
    """Hash of the context and the base: its own content hash if it has one, else its id."""
    facts = docker.image(reference)
    base = facts.labels.get(_CONTENT, facts.id) if facts else ""
    return hashlib.sha256(f"{context_hash(name)}\n{base}".encode()).hexdigest()


def _base(docker: Engine, base: str, progress: Progress) -> tuple[str, str]:
    """Have the base image at hand: the word that stands for it, and its reference."""
    if base == "debian":
        return base, _debian_base(docker, progress)
    if base != "auto":
        if docker.image(base) is None:
            docker.pull(base, progress=progress)
        return base, base
    if docker.image(HUB_PYTHON) is not None or _pulled(docker, progress):
        return HUB_PYTHON, HUB_PYTHON
    progress("Docker Hub does not answer: taking a base image made of Debian's packages")
    try:
        return "debian", _debian_base(docker, progress)
    except RuntimeFailure as failure:
        raise RuntimeFailure(
            failure.kind,
            f"Docker Hub does not answer, and: {failure} Or name a base image that holds python3: "
            "toolenvs build --base IMAGE.",
        ) from failure


def _pulled(docker: Engine, progress: Progress) -> bool:
    if not docker.can_pull(HUB_PYTHON):
        return False
    try:
        docker.pull(HUB_PYTHON, progress=progress)
    except RuntimeFailure as failure:
        progress(str(failure))
        return False
    return True


def _debian_base(docker: Engine, progress: Progress) -> str:
    recipe = {_DEBIAN_RECIPE: debian.RECIPE}
    for facts in docker.images(recipe):  # also those that were built on it, by whatever means
        base = docker.image(_base_reference(facts.labels.get(_CONTENT, "none")))
        if base is not None and base.labels.get(_DEBIAN_RECIPE) == debian.RECIPE:
            return base.id
    with tempfile.TemporaryDirectory(dir=cache_folder(), prefix="base-") as folder:
        root = debian.make_root(Path(folder), progress=progress)
        progress("importing the base image")
        reference = _base_reference(root.content)
        docker.import_image(
            root.tar,
            reference=reference,
            environment={"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"},
            labels={**recipe, _NAME: "base", _CONTENT: root.content},
        )
    return reference


def _base_reference(content: str) -> str:
    return f"toolenvs/base:{content[:12]}"


def _context_files(name: str) -> Iterator[tuple[str, bytes]]:
    """Path in the context and content of each file, in a fixed order."""
    own = data_folder("sandboxes") / name
    copied = _COPIED.findall((own / "Dockerfile").read_text("utf-8"))
    folders = {f"toolenvs/{package}": _PACKAGE / package for package in sorted(copied)}
    for place, folder in {f"sandboxes/{name}": own, **folders}.items():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"{place}/{path.relative_to(folder).as_posix()}", path.read_bytes()


def _write_context(file: BinaryIO, name: str, packages: list[Path]) -> None:
    """Write the build context as a tar whose every byte follows from its files."""
    with tarfile.open(fileobj=file, mode="w") as tar:
        for path, content in _context_files(name):
            _add(tar, path, content)
        for wheel in packages:
            for inside, content in wheelhouse.unpacked(wheel):
                _add(tar, f"site/{inside}", content)


def _add(tar: tarfile.TarFile, path: str, content: bytes) -> None:
    # No owner, date or mode of this machine: children of other users must be able to read it.
    entry = tarfile.TarInfo(path)
    entry.size = len(content)
    entry.mode = 0o644
    tar.addfile(entry, io.BytesIO(content))


@contextmanager
def _one_builder() -> Iterator[None]:
    """Let one process of this user build at a time."""
    with (cache_folder() / "build.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
