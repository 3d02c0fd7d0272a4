"""Scenarios and their errors."""

from __future__ import annotations

import pickle
import tomllib
from pathlib import Path

import numpy
import pytest
import wakeai
from wakeai import _toml

from .conftest import ROOT, TEXT

KEYS = {
    "name": "made",
    "duration": "4s",
    "warmup": "1s",
    "access_point": {"standard": "802.11n"},
    "stations": [{"name": "phone", "count": 2}],
    "flows": [{"from": "phone", "to": "server"}],
}


def test_a_file_a_text_and_keyword_arguments_give_the_same_scenario(tmp_path: Path) -> None:
    made = wakeai.Scenario(KEYS)
    assert made == wakeai.Scenario(**KEYS) == wakeai.Scenario.parse(made.to_toml())
    path = tmp_path / "made.toml"
    path.write_text(made.to_toml())
    assert wakeai.Scenario.load(path) == made
    assert made.name == "made"
    assert made.duration_s == 4.0
    assert pickle.loads(pickle.dumps(made)) == made


def test_every_scenario_of_the_repository_is_read() -> None:
    paths = list((ROOT / "scenarios").glob("*.toml"))
    assert paths
    for path in paths:
        assert wakeai.Scenario.load(path).conditions


def test_a_refused_key_is_named_with_its_line() -> None:
    with pytest.raises(wakeai.ScenarioError) as caught:
        wakeai.Scenario.parse(TEXT.replace("warmup", "warm_up"))
    assert (caught.value.key, caught.value.line) == ("warm_up", 4)
    assert caught.value.problems[0].found == "an unknown key"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.problems) == (str(caught.value), caught.value.problems)


def test_an_error_of_keyword_arguments_has_a_key_and_no_line() -> None:
    with pytest.raises(wakeai.ScenarioError) as caught:
        wakeai.Scenario(KEYS, duration="forever")
    assert (caught.value.key, caught.value.line) == ("duration", None)
    assert "line" not in str(caught.value)


def test_an_error_of_an_override_has_its_key(scenario: wakeai.Scenario) -> None:
    for key in ("stations.phone.speed", "stations.tablet.count"):
        with pytest.raises(wakeai.ScenarioError) as caught:
            scenario.replace({key: 3})
        assert (caught.value.key, caught.value.line) == (key, None)


def test_a_file_that_is_missing_is_an_os_error() -> None:
    with pytest.raises(FileNotFoundError):
        wakeai.Scenario.load("/nowhere/x.toml")


def test_values_keep_their_types(scenario: wakeai.Scenario) -> None:
    count = numpy.int64(3)
    assert "count = 3" in scenario.replace({"stations.phone.count": count}).to_toml()
    hostile = 'a "quoted" name \\ \U0001f4a1 true'
    assert scenario.replace(name=hostile).name == hostile
    for text in (hostile, "\n\r\t\x00\x7f\u2028", "3", ""):
        assert tomllib.loads(_toml.document({text: [text, {"x": text}]})) == {
            text: [text, {"x": text}]
        }
    assert scenario.replace(name="3").name == "3"
    with pytest.raises(TypeError):
        scenario.replace(name=object())
