"""Options in YAML: what is written is read, what is wrong is refused."""

import argparse
import dataclasses
import pathlib
import re

import pytest
import yaml
from hypothesis import given, strategies as st

from command_line.config_file import NULLS, as_command_line, format_config, read_yaml
from command_line.errors import UserError
from command_line.options import (
    add_options,
    declared_options,
    option,
    part,
    positive,
    read_options,
)

PATH = pathlib.Path("run.yaml")


@dataclasses.dataclass(frozen=True)
class Text:
    language: str | None = option(None, "a code")
    folder: pathlib.Path | None = option(None, "a folder", kind=pathlib.Path)
    devices: list[str] | None = option(None, "some", nargs="+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class All:
    text: Text = part("text")
    steps: int = option(help="updates", kind=positive(int))
    rate: float = option(1.0, "a rate", kind=positive(float))
    norm: str = option("post", "a place", choices=["pre", "post"])
    fast: bool = option(False, "a switch")
    both: bool | None = option(None, "a switch with a third value", kind=bool)


DECLARED = declared_options(All)


def parse(path):
    words = as_command_line(read_yaml(path), DECLARED, PATH)
    parser = argparse.ArgumentParser()
    add_options(parser, All)
    return read_options(parser.parse_args(words), All)


# PyYAML folds some line ends of Unicode.
characters = st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"])
words = st.text(characters, min_size=1).filter(
    lambda text: text not in NULLS and "://" not in text
)


@given(
    options=st.builds(
        All,
        text=st.builds(
            Text,
            language=st.none() | words | st.sampled_from(["no", "off", "1e-4", "0x1f"]),
            folder=st.none() | words.map(pathlib.Path),
            devices=st.none() | st.lists(st.sampled_from(["GPU:0", "12"]), min_size=1),
        ),
        steps=st.integers(1, 2**31 - 1),
        rate=st.floats(0, exclude_min=True, allow_infinity=False, allow_nan=False),
        norm=st.sampled_from(["pre", "post"]),
        fast=st.booleans(),
        both=st.none() | st.booleans(),
    )
)
def test_options_that_are_written_are_read(tmp_path_factory, options):
    path = tmp_path_factory.getbasetemp() / "round-trip.yaml"
    path.write_text(format_config(options), encoding="utf-8")

    assert parse(path) == options


def test_defaults_are_left_out_and_names_stay_readable():
    options = All(text=Text(language="größer"), steps=3, rate=1e-5)

    assert yaml.safe_load(format_config(options)) == {
        "language": "größer",
        "steps": 3,
        "rate": 1e-5,
    }
    assert "größer" in format_config(options)


def test_values_are_those_that_are_written(tmp_path):
    """YAML 1.1 reads these as `False`, a text, a float and a number of seconds."""
    path = tmp_path / "run.yaml"
    path.write_text("{language: no, rate: 1e-4, steps: 1_0, devices: 1:20, both: ~}")

    options = parse(path)

    assert options.text == Text(language="no", devices=["1:20"])
    assert (options.rate, options.steps, options.both) == (1e-4, 10, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("step: 3", "run.yaml must hold options of this command, such as steps, "),
        ("steps: many", "steps in run.yaml must be of type positive int. Received: 'm"),
        (
            "steps: [1, 2]",
            "steps in run.yaml must be of type positive int. Received: [",
        ),
        ("language: {a: b}", "language in run.yaml must be of type str. Received: {"),
        ("devices: [[a]]", "devices in run.yaml must be of type str. Received: ['a']"),
        ("norm: last", "norm in run.yaml must be one of pre, post. Received: 'last'"),
        ("fast: 1", "fast in run.yaml must be one of true, false. Received: '1'"),
        ("folder: gs://a", "folder in run.yaml must be of type local_path. Received: "),
    ],
)
def test_wrong_options_are_refused_with_the_name_of_the_file(tmp_path, text, message):
    path = tmp_path / "run.yaml"
    path.write_text(text)

    with pytest.raises(UserError, match=re.escape(message)) as error:
        parse(path)

    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"- a", r"must hold options, such as `seed: 7`. Received: \['a'\]"),
        (b"", "must hold options.*None"),
        (b"a: [", "must be YAML. Received: .*line 1, column 5"),
        (b"a: \xff", "must be YAML"),
        (b"? [a]\n: b", "must be YAML"),
        (b"[" * 3_000, "must be YAML"),
    ],
)
def test_files_without_options_are_refused(tmp_path, content, message):
    path = tmp_path / "run.yaml"
    path.write_bytes(content)

    with pytest.raises(UserError, match=f"run.yaml {message}") as error:
        read_yaml(path)

    assert "\n" not in str(error.value)


def test_a_switch_that_is_off_may_be_written():
    config = {"fast": "false", "both": "false"}
    assert as_command_line(config, DECLARED, PATH) == ["--no-both"]
    parser = argparse.ArgumentParser()
    add_options(parser, All)
    assert parser.parse_args(["--steps=1", "--no-both"]).both is False
