"""Settings of the service: environment variables `PLANNER_…` or a `.env` file."""

from __future__ import annotations

import ipaddress
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from planner.calibration.own import data_directory

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Settings(BaseSettings):
    """Every setting, with its default; in the environment its name is `PLANNER_…` in capitals."""

    model_config = SettingsConfigDict(
        env_prefix="PLANNER_", env_file=".env", extra="ignore", frozen=True
    )

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=1, le=65535, description="port to listen on")
    workers: int = Field(1, ge=1, le=64, description="server processes")
    database_url: SecretStr | None = Field(
        None, description="sqlite:///FILE or postgresql://…; empty is a file in the user's data"
    )
    auto_migrate: bool | None = Field(
        None, description="migrate at start; empty is yes on SQLite, no on Postgres"
    )
    auth: Literal["auto", "required"] = Field(
        "auto", description="auto asks for API keys as soon as `host` is not loopback"
    )
    allowed_hosts: Annotated[list[str], NoDecode] = Field(
        default_factory=list,
        description="names accepted in Host, comma separated; empty is loopback names on loopback, "
        "any beyond",
    )
    max_body_bytes: int = Field(1_000_000, ge=1_000, description="largest request body [byte]")
    max_import_bytes: int = Field(
        32_000_000, ge=1_000, description="largest workspace import [byte]"
    )
    max_plan_points: int = Field(20_000, ge=1, description="points one plan may ask for")
    max_stored_points: int = Field(2_000, ge=1, description="points a stored scenario may ask for")
    max_sweep_points: int = Field(100_000, ge=1, description="rows one sweep may ask for")
    max_measured_runs: int = Field(
        500, ge=1, description="runs of its own a workspace may refit to"
    )
    header_timeout_s: float = Field(
        15.0, ge=0.1, le=3600, description="time a request has to send its headers [s]"
    )
    body_timeout_s: float = Field(
        30.0, ge=0.1, le=3600, description="time a request has to send its body [s]"
    )
    behind_proxy: bool = Field(
        False, description="whether the last address of X-Forwarded-For is the client's"
    )
    changes_days: int = Field(365, ge=1, description="how long the audit trail is kept [d]")
    busy_timeout_ms: int = Field(
        5_000, ge=0, le=60_000, description="wait for a locked SQLite file [ms]"
    )
    statement_timeout_ms: int = Field(
        15_000, ge=0, description="longest statement on Postgres, 0 for no limit [ms]"
    )
    lock_timeout_ms: int = Field(
        5_000, ge=0, description="longest wait for a lock on Postgres, 0 for no limit [ms]"
    )
    idle_transaction_timeout_ms: int = Field(
        60_000, ge=0, description="longest idle transaction on Postgres, 0 for no limit [ms]"
    )
    lane_compute: int = Field(
        4, ge=1, le=64, description="requests that only compute, at once per process"
    )
    lane_store: int = Field(
        8, ge=1, le=64, description="requests that use the store, at once per process"
    )
    lane_long: int = Field(
        2, ge=1, le=64, description="worker processes for sweeps and refits, per process"
    )
    lane_waiting: int = Field(
        8, ge=0, le=100, description="requests that wait for each place of a lane before 503"
    )
    answer_cache_bytes: int = Field(
        16_000_000, ge=0, description="answers kept for the same question, per process [byte]"
    )
    key_cache_s: float = Field(
        1.0, ge=0, le=60, description="time a valid API key is not looked up again [s]"
    )
    lane_jobs: int = Field(
        1,
        ge=0,
        le=64,
        description="worker processes for jobs, per process; 0 leaves them to others",
    )
    max_jobs_unfinished: int = Field(
        20, ge=1, description="jobs of a workspace that wait or run at once"
    )
    max_jobs_kept: int = Field(
        200, ge=1, description="jobs of a workspace that are kept; the oldest finished go first"
    )
    max_job_result_bytes: int = Field(
        4_000_000_000, ge=1_000, description="largest result of a job [byte]"
    )
    job_hours: int = Field(24, ge=1, description="how long a finished job is kept [h]")
    pool_size: int = Field(10, ge=1, le=100, description="database connections kept per process")
    idempotency_hours: int = Field(48, ge=1, description="how long an Idempotency-Key counts [h]")
    otlp_endpoint: str = Field(
        "", description="where traces go: an OTLP address over HTTP (extra otel); empty is nowhere"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="least severe log line written"
    )

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return [part.strip() for part in value.split(",") if part.strip()]
        return value

    @cached_property
    def url(self) -> str:
        """The database as SQLAlchemy names it."""
        given = self.database_url.get_secret_value() if self.database_url else ""
        if not given:
            return f"sqlite:///{data_directory() / 'planner.db'}"
        for prefix in ("postgresql://", "postgres://"):
            if given.startswith(prefix):
                return f"postgresql+psycopg://{given.removeprefix(prefix)}"
        if not given.startswith(("sqlite:///", "postgresql+psycopg://")):
            raise ValueError(
                "PLANNER_DATABASE_URL: not a database; accepted: sqlite:///FILE, postgresql://…"
            )
        return given

    @property
    def sqlite_file(self) -> Path | None:
        """The SQLite file, None on Postgres."""
        return Path(self.url.removeprefix("sqlite:///")) if self.url.startswith("sqlite") else None

    @property
    def migrates(self) -> bool:
        """Whether the service migrates its database when it starts."""
        return self.sqlite_file is not None if self.auto_migrate is None else self.auto_migrate

    @cached_property
    def loopback(self) -> bool:
        """Whether the service can only be reached from its own machine."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @cached_property
    def keys_required(self) -> bool:
        """Whether a request without an API key is refused."""
        return self.auth == "required" or not self.loopback

    @cached_property
    def hosts(self) -> frozenset[str]:
        """Accepted host names, lower case; empty accepts any."""
        if self.allowed_hosts:
            return frozenset(name.lower() for name in self.allowed_hosts)
        return frozenset(LOOPBACK_NAMES) if self.loopback else frozenset()


def table(settings: Settings) -> list[tuple[str, str, str, str]]:
    """Rows of environment name, value in use, default and meaning; secrets are masked."""
    rows = []
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        value = getattr(settings, name)
        shown = "" if value is None else str(value)
        rows.append(
            (
                f"PLANNER_{name.upper()}",
                shown,
                "" if default is None else str(default),
                field.description or "",
            )
        )
    return rows
