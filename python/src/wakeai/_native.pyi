"""The native module. The package's other modules have the documentation for users."""

import os
from typing import final

__all__ = [
    "Report",
    "Scenario",
    "Table",
    "__version__",
    "interval",
    "read_parquet",
    "run",
    "solo",
    "solos",
    "tables_of",
    "wall_times_of",
]

__version__: str

@final
class Scenario:
    @staticmethod
    def parse(text: str, has_lines: bool = True) -> Scenario: ...
    @staticmethod
    def load(path: str | os.PathLike[str]) -> Scenario: ...
    def with_overrides(self, overrides: list[tuple[str, str]]) -> Scenario: ...
    def to_toml(self) -> str: ...
    def meaning(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def conditions(self) -> list[str]: ...

@final
class Report:
    """The result of runs."""

    @staticmethod
    def parse(text: str) -> Report: ...
    def to_json(self) -> str: ...

@final
class Table:
    """A table that any tool with Arrow's PyCapsule interface takes without a copy."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def write_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as Parquet. The same table gives the same bytes."""

def run(
    scenario: Scenario,
    *,
    seed: int,
    repeat: int,
    conditions: list[str],
    jobs: int,
    out: str | os.PathLike[str] | None,
    force: bool,
    captures: bool,
    known: list[tuple[str, int, float]],
) -> tuple[Report, list[str]]: ...
def solos(
    scenario: Scenario, *, seed: int, repeat: int, conditions: list[str]
) -> list[tuple[str, int]]: ...
def solo(scenario: Scenario, *, run: str, seed: int, conditions: list[str]) -> float: ...
def tables_of(
    results: list[tuple[Report, int]], columns: str = "{}", with_wall: bool = True
) -> dict[str, Table]: ...
def interval(values: list[float]) -> tuple[float, float | None] | None: ...
def wall_times_of(results: list[tuple[Report, int]], columns: str = "{}") -> Table: ...
def read_parquet(paths: list[str]) -> Table: ...
