"""Scenarios: from a file, a text, or keyword arguments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from . import _native, _toml


class Scenario:
    """An experiment, checked by the reader that the commands use.

    The keyword arguments are the keys of a scenario file (`docs/reference/scenario.md`), with
    mappings for its tables and lists of mappings for its lists. Quantities are strings with a unit,
    as in the file:

    >>> Scenario(
    ...     name="two",
    ...     duration="20s",
    ...     access_point={"standard": "802.11n"},
    ...     stations=[{"name": "phone", "count": 2}],
    ...     flows=[{"from": "phone", "to": "server"}],
    ... )

    Raises `ScenarioError`, whose `key` names the first key that was refused.
    """

    def __init__(self, keys: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        text = _toml.document({**(keys or {}), **more})
        self._native = _native.Scenario.parse(text, has_lines=False)

    @classmethod
    def _of(cls, native: _native.Scenario) -> Scenario:
        made = cls.__new__(cls)
        made._native = native
        return made

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scenario:
        """Reads a file. Raises `OSError` or `ScenarioError`, which has the line."""
        return cls._of(_native.Scenario.load(os.fspath(path)))

    @classmethod
    def parse(cls, text: str) -> Scenario:
        """Reads TOML. Raises `ScenarioError`, which has the line."""
        return cls._of(_native.Scenario.parse(text))

    def replace(self, keys: Mapping[str, Any] | None = None, /, **more: Any) -> Scenario:
        """A copy with changed keys, each named by its path as for `--set`.

        >>> scenario.replace({"stations.tablet.count": 40}, duration="60s")
        """
        pairs = {**(keys or {}), **more}.items()
        return self._replace_texts([(key, _toml.value(item)) for key, item in pairs])

    def _replace_texts(self, pairs: list[tuple[str, str]]) -> Scenario:
        return self._of(self._native.with_overrides(pairs)) if pairs else self

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return self._native.name

    @property
    def duration_s(self) -> float:
        """The length of a run in seconds, warmup included."""
        return self._native.duration_s

    @property
    def conditions(self) -> list[str]:
        """The names of the conditions. The first is the baseline."""
        return self._native.conditions

    def to_toml(self) -> str:
        """The scenario as TOML, with all replaced keys."""
        return self._native.to_toml()

    def __repr__(self) -> str:
        return f"<wakeai.Scenario {self.name!r}: {', '.join(self.conditions)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.to_toml() == other.to_toml()

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (Scenario.parse, (self.to_toml(),))


def of(scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str]) -> Scenario:
    """The scenario as it is, or the scenario of a mapping or of a file."""
    if isinstance(scenario, Scenario):
        return scenario
    if isinstance(scenario, Mapping):
        return Scenario(scenario)
    return Scenario.load(scenario)
