"""Warm workers, bounded in number, from which episodes lease sandboxes.

A lease gets a free place in a running worker; where there is none it starts a worker, and where the
bound forbids that it waits its turn. Places are handed on in the order of asking. Dead workers are
replaced when someone needs them.

``shared_pool`` gives all environments of a process one pool for equal settings; it closes with the
last handle. After ``os.fork`` the child has the same pools, empty, and leaves the parent's workers
alone.
"""

from __future__ import annotations

from toolenvs.pool.bounded import SandboxPool
from toolenvs.pool.shared import PoolHandle, own_pool, sandbox_kind, shared_pool

__all__ = ["PoolHandle", "SandboxPool", "own_pool", "sandbox_kind", "shared_pool"]
