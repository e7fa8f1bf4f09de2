"""A base image from Debian's own packages, for machines that do not reach Docker Hub.

``debootstrap`` installs a minimal Debian with Python into a folder; trimmed, it becomes a tar file
that any engine can import. It needs root, and a Debian or Ubuntu machine.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from toolenvs.errors import RuntimeFailure

SUITE = "bookworm"
"""Debian 12, whose Python is 3.11 as in the image from Docker Hub."""

_PACKAGES = "python3,ca-certificates"  # python3-minimal lacks json, ctypes, decimal, sqlite3 ...
_PUBLIC_MIRROR = "http://deb.debian.org/debian"
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_ALIASES = {"stable", "oldstable", "testing", "unstable", "sid"}

# What a sandbox never reads, and what names the machine that made the image.
_LEFT_OUT = (
    "dev/*",
    "proc/*",
    "sys/*",
    "run/*",
    "tmp/*",
    "etc/hostname",
    "etc/resolv.conf",
    "etc/machine-id",
    "etc/apt/sources.list",
    "usr/share/doc/*",
    "usr/share/info/*",
    "usr/share/locale/*",
    "usr/share/man/*",
    "var/cache/apt/*",
    "var/cache/debconf/*",
    "var/lib/apt/lists/*",
    "var/log/*",
)

RECIPE = hashlib.sha256(repr((SUITE, _PACKAGES, _LEFT_OUT)).encode()).hexdigest()[:16]
"""Changes when the way the base image is made does."""


class DebianRoot(msgspec.Struct, frozen=True):
    """A root folder as a tar file; ``content`` is a hash of its packages and their versions."""

    tar: Path
    content: str


def missing() -> list[str]:
    """Say, one sentence each, what keeps this machine from making the base image."""
    problems = []
    if not shutil.which("apt-get"):
        problems.append("this is neither Debian nor Ubuntu.")
    if os.geteuid() != 0:
        problems.append("it takes root: run the command with sudo.")
    if not _debootstrap():
        problems.append("debootstrap is missing: apt install debootstrap.")
    if not _KEYRING.exists():
        problems.append("Debian's keys are missing: apt install debian-archive-keyring.")
    return problems


def make_root(folder: Path, *, progress: Callable[[str], None]) -> DebianRoot:
    """Install a Debian with Python and pack it, in about a minute.

    Args:
        folder: where to put the tar file, on a disk that allows device files and programs.
        progress: told what goes on.

    Raises:
        RuntimeFailure: ``image_missing``: something is missing here, or debootstrap failed.
    """
    if problems := missing():
        raise RuntimeFailure(
            "image_missing", f"No base image can be made of Debian's packages: {' '.join(problems)}"
        )
    source = mirror()
    progress(f"debootstrap {SUITE} from {source} (about a minute)")
    with tempfile.TemporaryDirectory(dir=folder, prefix="debian-") as name:
        root = Path(name)
        _install(root, source, progress)
        packages = _run("dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W")
        tar = folder / "debian-root.tar"
        left_out = [f"--exclude=./{pattern}" for pattern in _LEFT_OUT]
        _run("tar", "-C", name, "--numeric-owner", *left_out, "-cf", str(tar), ".")
    content = hashlib.sha256(f"{RECIPE}\n{platform.machine()}\n{packages}".encode()).hexdigest()
    return DebianRoot(tar, content)


def mirror() -> str:
    """The mirror to install from: TOOLENVS_DEBIAN_MIRROR, else this machine's own, else Debian's.

    On Ubuntu the machine's own mirror is not Debian's, so there it is the public one.
    """
    if chosen := os.environ.get("TOOLENVS_DEBIAN_MIRROR"):
        return chosen
    folder = Path("/etc/apt")
    texts = []
    for path in [folder / "sources.list", *sorted(folder.glob("sources.list.d/*"))]:
        if path.suffix in (".list", ".sources"):
            try:
                texts.append((path.suffix, path.read_text("utf-8", "replace")))
            except OSError:
                continue
    return next(own_mirrors(texts, _os_release()), _PUBLIC_MIRROR)


def own_mirrors(sources: Iterable[tuple[str, str]], release: dict[str, str]) -> Iterator[str]:
    """The mirrors of Debian's main archive in apt's configuration.

    Args:
        sources: suffix (``.list`` or ``.sources``) and text of apt's files, in apt's order.
        release: fields of ``os-release``.
    """
    if release.get("ID") != "debian":
        return
    suites = {release.get("VERSION_CODENAME", SUITE), SUITE, *_ALIASES}
    for suffix, text in sources:
        for uris, named, components in _deb822(text) if suffix == ".sources" else _one_line(text):
            if suites & set(named) and "main" in components:
                yield from (found for uri in uris if (found := _plain(uri)))


def _one_line(text: str) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Entries like ``deb [signed-by=/key] http://mirror/debian bookworm main``."""
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[[^\]]*\]\s*)?(\S+)\s+(\S+)\s+([^#]+)", line)
        if match:
            yield [match[1]], [match[2]], match[3].split()


def _deb822(text: str) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Stanzas of ``Field: values`` lines, ended by an empty line."""
    kept = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", kept):
        fields: dict[str, str] = {}
        name = ""
        for line in stanza.splitlines():
            if line[:1].isspace():
                fields[name] = fields.get(name, "") + line
            else:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value
        if "deb" in fields.get("types", "").split() and fields.get("enabled", "").strip() != "no":
            uris, suites = fields.get("uris", "").split(), fields.get("suites", "").split()
            yield uris, suites, fields.get("components", "").split()


def _plain(uri: str) -> str:
    """What debootstrap understands of an apt URI, or ``""``."""
    if uri.startswith("mirror+file:"):  # a list of mirrors, as cloud images have it
        try:
            lines = Path("/" + uri.partition(":")[2].lstrip("/")).read_text().splitlines()
        except OSError:
            return ""
        return next((_plain(line.split()[0]) for line in lines if line.strip()), "")
    return uri.rstrip("/") if uri.startswith(("http://", "https://", "file:")) else ""


def _os_release() -> dict[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def _debootstrap() -> str | None:
    return shutil.which("debootstrap", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _install(root: Path, source: str, progress: Callable[[str], None]) -> None:
    command = [
        str(_debootstrap()),
        "--variant=minbase",
        f"--include={_PACKAGES}",
        f"--keyring={_KEYRING}",
        "--force-check-gpg",
        SUITE,
        str(root),
        source,
    ]
    last: deque[str] = deque(maxlen=5)
    started = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, **_proxy(), "LC_ALL": "C"},
    )
    with started as process:
        assert process.stdout is not None
        for line in process.stdout:
            last.append(line.strip())
            if "Base system installed" in line or "Extracting dpkg" in line:
                progress(line.strip())
    if process.returncode:
        raise RuntimeFailure(
            "image_missing",
            f"debootstrap failed with {source}: {' | '.join(last)}. Set TOOLENVS_DEBIAN_MIRROR to "
            "another mirror, or give a base image that holds python3.",
        )


def _proxy() -> dict[str, str]:
    """Apt's proxy, as a variable that debootstrap's downloader reads."""
    if "http_proxy" in os.environ:
        return {}
    match = re.search(
        r"proxy='([^']+)'", _run("apt-config", "shell", "proxy", "Acquire::http::Proxy")
    )
    return {"http_proxy": match[1]} if match else {}


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise RuntimeFailure("image_missing", f"{command[0]} failed: {said[0]}")
    return done.stdout
