"""Tables. Documents are JSON text as written, so that numbers come back bit-equal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from advanced_alchemy.base import CommonTableAttributes
from advanced_alchemy.types import DateTimeUTC
from sqlalchemy import (
    JSON,
    BigInteger,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    Text,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from uuid_utils import uuid7

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


def new_id() -> str:
    """Return an id that sorts by time of creation."""
    return str(uuid7())


def now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


class Base(CommonTableAttributes, DeclarativeBase):
    """Base of all tables."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's own protocol
        datetime: DateTimeUTC(timezone=True),
        dict[str, Any]: JSON,
        list[Any]: JSON,
    }


class ScenarioRow(Base):
    """A scenario as it is now; `revision` is its newest."""

    __tablename__ = "scenarios"
    __table_args__ = (
        Index(None, "workspace", "id"),
        Index(None, "workspace", "model", "id"),
        Index(None, "workspace", "gpu", "id"),
        Index(None, "workspace", "name", "id"),
        Index(None, "workspace", "updated_at", "id"),
        Index(None, "workspace", "engine", "id"),
        Index(None, "workspace", "computed_with", "id"),
        Index(
            "ix_scenarios_deleted",
            "workspace",
            "id",
            sqlite_where=text("deleted_at IS NOT NULL"),
            postgresql_where=text("deleted_at IS NOT NULL"),
        ),
    )

    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=new_id)
    workspace: Mapped[str] = mapped_column(String(64))
    revision: Mapped[int]
    name: Mapped[str] = mapped_column(String(200))
    model: Mapped[str] = mapped_column(String(200))
    gpu: Mapped[str] = mapped_column(String(200))
    engine: Mapped[str | None] = mapped_column(String(200))
    computed_with: Mapped[str] = mapped_column(String(400), default="", server_default="")
    """Editions of its newest plan, see `api.scenarios.service.editions_text`."""
    words: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now)
    deleted_at: Mapped[datetime | None]


class RevisionRow(Base):
    """What a scenario was at one revision, and its answer then."""

    __tablename__ = "scenario_revisions"

    scenario_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("scenarios.id", ondelete="CASCADE"), primary_key=True
    )
    revision: Mapped[int] = mapped_column(primary_key=True)
    action: Mapped[str] = mapped_column(String(16))
    question: Mapped[dict[str, Any]]
    plan: Mapped[str] = mapped_column(Text)
    editions: Mapped[dict[str, Any]]
    own: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(default=now)


class TagRow(Base):
    """One tag of a scenario."""

    __tablename__ = "scenario_tags"
    __table_args__ = (Index(None, "tag", "scenario_id"),)

    scenario_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("scenarios.id", ondelete="CASCADE"), primary_key=True
    )
    tag: Mapped[str] = mapped_column(String(200), primary_key=True)


class IdempotencyRow(Base):
    """The first answer to a request that carried an Idempotency-Key."""

    __tablename__ = "idempotency_keys"

    workspace: Mapped[str] = mapped_column(String(64), primary_key=True)
    key: Mapped[str] = mapped_column(String(200), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    status: Mapped[int]
    headers: Mapped[dict[str, Any]]
    body: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(default=now, index=True)


class KeyRow(Base):
    """An API key: only its hash is kept."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=new_id)
    workspace: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(200))
    scope: Mapped[str] = mapped_column(String(8))
    hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime] = mapped_column(default=now)
    revoked_at: Mapped[datetime | None]


class OwnRow(Base):
    """A model or accelerator that a workspace brought itself; never changed, only deleted."""

    __tablename__ = "own_objects"

    workspace: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    document: Mapped[dict[str, Any]]
    digest: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(default=now)


class MeasurementRow(Base):
    """Results of benchmarks that a workspace added, as the rows read from them."""

    __tablename__ = "measurements"
    __table_args__ = (Index(None, "workspace", "id"),)

    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=new_id)
    workspace: Mapped[str] = mapped_column(String(64))
    format: Mapped[str] = mapped_column(String(40))
    runs: Mapped[list[Any]]
    notes: Mapped[list[Any]]
    created_at: Mapped[datetime] = mapped_column(default=now)


class CalibrationRow(Base):
    """What all measurements of a workspace give; `number` counts the changes."""

    __tablename__ = "calibrations"

    workspace: Mapped[str] = mapped_column(String(64), primary_key=True)
    number: Mapped[int]
    document: Mapped[str] = mapped_column(Text)


class ComparisonRow(Base):
    """A comparison as asked and as answered."""

    __tablename__ = "comparisons"
    __table_args__ = (Index(None, "workspace", "id"),)

    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=new_id)
    workspace: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(200))
    asked: Mapped[dict[str, Any]]
    answer: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(default=now)


class ChangeRow(Base):
    """Who changed what, see `api.store.changes`."""

    __tablename__ = "changes"
    __table_args__ = (Index(None, "workspace", "id"), Index(None, "workspace", "object", "id"))

    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=new_id)
    workspace: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(16))
    object: Mapped[str] = mapped_column(String(200))
    action: Mapped[str] = mapped_column(String(16))
    revision: Mapped[int | None]
    key_id: Mapped[str | None] = mapped_column(String(36))
    client: Mapped[str | None] = mapped_column(String(64))
    request_id: Mapped[str | None] = mapped_column(String(64))
    changed_at: Mapped[datetime] = mapped_column(default=now)


class JobRow(Base):
    """Long work that a workspace asked for, and how far it is.

    `holder` is the service that works on it: what another one took over it writes no more.
    """

    __tablename__ = "jobs"
    __table_args__ = (Index(None, "workspace", "id"), Index(None, "state", "id"))

    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=new_id)
    workspace: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(20))
    state: Mapped[str] = mapped_column(String(12))
    document: Mapped[str] = mapped_column(Text)
    media_type: Mapped[str] = mapped_column(String(60))
    done: Mapped[int]
    total: Mapped[int]
    attempts: Mapped[int]
    cancelled: Mapped[bool]
    holder: Mapped[str] = mapped_column(String(36))
    error: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    result_bytes: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(default=now)
    started_at: Mapped[datetime | None]
    heard_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]


class PieceRow(Base):
    """One piece of a job's result, in order."""

    __tablename__ = "job_pieces"

    job_id: Mapped[str] = mapped_column(
        String(36), ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[bytes] = mapped_column(LargeBinary)


class ImportedRow(Base):
    """What became of something that was imported by lines, so that the import can be resumed."""

    __tablename__ = "imported"

    workspace: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    exported_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    new_id: Mapped[str] = mapped_column(String(36))
    created_at: Mapped[datetime] = mapped_column(default=now, index=True)


TRANSIENT = frozenset({"jobs", "job_pieces", "imported"})
"""Tables whose rows expire by themselves; a backup leaves them out."""
