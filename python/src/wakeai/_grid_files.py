"""The directory of a grid.

    grid.json              the grid: scenario, keys, seeds, version
    cells/0003/*.parquet   the tables of a cell, once all of its runs have ended
    parts/*.json           results of batches; they are removed when the grid has ended

Each file and each cell is written under a temporary name and then renamed, so whatever has its
final name is complete. Only the coordinating process writes, so workers need no shared disk.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from . import _native
from ._errors import GridError, ReadError
from ._native import Table

MANIFEST = "grid.json"


def is_grid(directory: Path) -> bool:
    """Whether the directory is that of a grid."""
    return (directory / MANIFEST).is_file()


def read_tables(directory: Path) -> dict[str, Table]:
    """The tables of all cells that have ended, sorted by cell and seed."""
    files: dict[str, list[str]] = {}
    for path in sorted((directory / "cells").glob("[0-9]*/*.parquet")):
        files.setdefault(path.stem, []).append(os.fspath(path))
    if not files:
        raise ReadError(f"{directory} is a grid of which no cell has ended yet")
    return {name: _native.read_parquet(paths) for name, paths in files.items()}


class Store:
    """The directory of one grid, held by one process."""

    def __init__(self, directory: Path, manifest: dict[str, Any], cells: int) -> None:
        self._directory = directory
        self._digits = max(4, len(str(cells - 1)))
        self._next_part = 0
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._take(manifest)
        except BaseException:
            os.close(self._lock)
            raise

    def _take(self, manifest: dict[str, Any]) -> None:
        directory = self._directory
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise GridError(
                f"another process is making the grid in {directory}; wait for its end, or choose "
                "another directory"
            ) from None
        if is_grid(directory):
            self._compare(manifest)
        elif any(directory.iterdir()):
            raise GridError(
                f"{directory} has files that are not of a grid; choose another directory, or an "
                "empty one"
            )
        else:
            self._write(directory / MANIFEST, json.dumps(manifest, indent=1) + "\n")
        for name in ("cells", "parts"):
            (directory / name).mkdir(exist_ok=True)
        for left in (directory / "cells").glob(".*"):
            shutil.rmtree(left)  # written by a process that was killed
        parts = [int(path.stem) for path in (directory / "parts").glob("[0-9]*.json")]
        self._next_part = max(parts, default=-1) + 1

    def _compare(self, manifest: dict[str, Any]) -> None:
        try:
            found = json.loads((self._directory / MANIFEST).read_text(encoding="utf-8"))
        except ValueError as error:
            raise GridError(f"{self._directory / MANIFEST} is damaged: {error}") from error
        if found == json.loads(json.dumps(manifest)):
            return
        differs = [key for key in manifest if found.get(key) != manifest[key]]
        raise GridError(
            f"{self._directory} has another grid: it differs in {' and '.join(differs)} (see its "
            f"{MANIFEST}); choose another directory, or ask for the same grid to go on with it"
        )

    def _write(self, path: Path, text: str) -> None:
        partial = path.with_name(f".{path.name}.partial")
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)

    def _cell(self, cell: int) -> Path:
        return self._directory / "cells" / f"{cell:0{self._digits}}"

    def has_cell(self, cell: int) -> bool:
        """Whether the tables of the cell are written."""
        return self._cell(cell).is_dir()

    def parts(self) -> Iterator[dict[str, Any]]:
        """The results of batches of an earlier process."""
        for path in sorted((self._directory / "parts").glob("[0-9]*.json")):
            try:
                part: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                continue  # its runs are made again
            yield part

    def add_part(self, part: dict[str, Any]) -> None:
        """Keeps the results of a batch."""
        path = self._directory / "parts" / f"{self._next_part:08}.json"
        self._next_part += 1
        self._write(path, json.dumps(part))

    def add_cell(self, cell: int, tables: Iterable[tuple[str, Table]]) -> None:
        """Writes the tables of a cell."""
        path = self._cell(cell)
        partial = path.with_name(f".{path.name}.partial")
        partial.mkdir()
        for name, table in tables:
            table.write_parquet(partial / f"{name}.parquet")
        partial.rename(path)

    def finish(self) -> None:
        """Removes the files that only an interrupted grid needs."""
        shutil.rmtree(self._directory / "parts")

    def close(self) -> None:
        """Lets other processes use the directory."""
        os.close(self._lock)
