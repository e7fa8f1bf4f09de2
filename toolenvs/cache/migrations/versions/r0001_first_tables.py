"""The tables that caches had before they had revisions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make them."""
    op.create_table("toolenvs_entries", *_entry_columns(), sa.PrimaryKeyConstraint("key"))
    op.create_index("ix_toolenvs_entries_call", "toolenvs_entries", ["call"])
    op.create_index("ix_toolenvs_entries_state", "toolenvs_entries", ["state"])
    op.create_table(
        "toolenvs_damaged",
        *_entry_columns(nullable=True),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_table(
        "toolenvs_runtimes",
        sa.Column("asked", sa.LargeBinary(32), nullable=False),
        sa.Column("facts", sa.LargeBinary, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("seen", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("asked", "digest"),
    )


def _entry_columns(*, nullable: bool = False) -> list[sa.Column[object]]:
    types = {
        "key": sa.LargeBinary(32),
        "request": sa.LargeBinary(),
        "result": sa.LargeBinary(),
        "digest": sa.LargeBinary(32),
        "tool": sa.Text(),
        "call": sa.LargeBinary(16),
        "state": sa.LargeBinary(16),
        "servable": sa.Boolean(),
        "differing": sa.Boolean(),
        "created": sa.Double(),
        "size": sa.Integer(),
    }
    return [sa.Column(name, kind, nullable=nullable) for name, kind in types.items()]  # type: ignore[arg-type]
