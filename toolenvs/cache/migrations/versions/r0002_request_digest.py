"""A digest of each request, and an index by age.

Requests were compared as they were packed, so two versions of zlib would have taken one request for
two. Pruning and looking for the nearest recording read by age.
"""

from __future__ import annotations

import hashlib

import sqlalchemy as sa
from alembic import op

from toolenvs.cache.entry import unpack
from toolenvs.errors import DataError

revision = "0002"
down_revision = "0001"

_PAGE = 500  # entries at once

_entries = sa.table(
    "toolenvs_entries",
    sa.column("key", sa.LargeBinary),
    sa.column("request", sa.LargeBinary),
    sa.column("request_digest", sa.LargeBinary),
)


def upgrade() -> None:
    """Add both, and fill the digests in."""
    digest = sa.Column("request_digest", sa.LargeBinary(16), nullable=False, server_default="")
    op.add_column("toolenvs_entries", digest)  # the default lets an older program write on
    op.add_column("toolenvs_damaged", sa.Column("request_digest", sa.LargeBinary(16)))
    op.create_index("ix_toolenvs_entries_created", "toolenvs_entries", ["created"])
    connection = op.get_bind()
    last = b""
    page = sa.select(_entries.c.key, _entries.c.request).order_by(_entries.c.key).limit(_PAGE)
    fill = _entries.update().where(_entries.c.key == sa.bindparam("this_key"))
    fill = fill.values(request_digest=sa.bindparam("new"))
    while rows := connection.execute(page.where(_entries.c.key > last)).all():
        last = rows[-1].key
        new = [{"this_key": row.key, "new": _digest(row.request)} for row in rows]
        connection.execute(fill, new)


def _digest(packed: bytes) -> bytes:
    try:
        return hashlib.blake2b(unpack(packed), digest_size=16).digest()
    except DataError:
        return b""  # it will be set aside when somebody asks for it
