"""From docker-py's many exceptions to ours."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from toolenvs.errors import RuntimeFailure


@contextlib.contextmanager
def failures(what: str, *, ended_is_fine: bool = False) -> Iterator[None]:
    """Turn whatever docker-py lets out into a ``RuntimeFailure`` that begins with ``what``."""
    from docker.errors import APIError, DockerException, ImageNotFound
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ImageNotFound as error:
        message = f"{what}: the engine does not hold the image. Make it with `toolenvs build`."
        raise RuntimeFailure("image_missing", message) from error
    except (DockerException, RequestException, HTTPError, OSError) as error:
        # 404: gone; 409: ended, or its removal is under way.
        if ended_is_fine and isinstance(error, APIError) and error.status_code in (404, 409):
            return
        reason = getattr(error, "explanation", None) or error
        message = f"{what}: {reason}. Look at it with `toolenvs doctor`."
        raise RuntimeFailure("engine", message) from error
