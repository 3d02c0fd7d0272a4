"""The exceptions of the package."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One problem of a scenario."""

    key: str
    """The key, in the form that `--set` takes; empty for a syntax error."""
    line: int | None
    """The line, from 1; None for an override and for a scenario that was not read from text."""
    column: int | None
    """The column in characters, from 1; None where `line` is None."""
    condition: str | None
    """The condition whose `set` caused the problem, if one did."""
    found: str
    """What was found."""
    allowed: str
    """What is allowed."""


class ScenarioError(ValueError):
    """A scenario was refused. `key` and `line` are those of the first problem."""

    def __init__(self, message: str, problems: list[Problem]) -> None:
        super().__init__(message)
        self.problems = problems

    def __reduce__(self) -> tuple[type[ScenarioError], tuple[str, list[Problem]]]:
        return (type(self), (str(self), self.problems))

    @property
    def key(self) -> str:
        """The key of the first problem; empty for a syntax error."""
        return self.problems[0].key if self.problems else ""

    @property
    def line(self) -> int | None:
        """The line of the first problem, from 1; None where there is no text of the user."""
        return self.problems[0].line if self.problems else None


class RunError(RuntimeError):
    """The simulator cannot run the scenario, or its records cannot be written."""


class ReadError(ValueError):
    """A file of a result is damaged, or a directory holds no result."""


class GridError(RuntimeError):
    """A grid cannot be made as asked."""
