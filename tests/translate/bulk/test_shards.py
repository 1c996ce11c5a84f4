import gzip
import importlib
import itertools
import json
import pathlib
import tempfile

import pytest
from hypothesis import given, strategies as st

from command_line.errors import UserError

pytestmark = pytest.mark.peers("apache_beam")


@pytest.fixture(scope="module")
def shards():
    return importlib.import_module("translate.bulk.shards")


TEXTS = st.lists(
    st.sampled_from([b"a", b"", b"b c", b"\r", b"\xff", b"\xe2\x80\xa8", b"\0"])
).map(b"\n".join)


@given(
    text=TEXTS,
    end=st.sampled_from([b"", b"\n", b"\r\n"]),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    packed=st.booleans(),
    shard_lines=st.integers(1, 5),
)
def test_shards_hold_each_line_once(shards, text, end, mark, packed, shard_lines):
    content = mark + text + end
    lines = content.split(b"\n")
    lines = [line.rstrip(b"\r") for line in lines[: None if lines[-1] else -1]]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "text")
        path.write_bytes(gzip.compress(content) if packed else content)

        plan, known = shards.split_into_shards(str(path), "text", shard_lines)
        found = [shards.read_shard(shard) for shard in plan]

    if lines:  # A mark alone is a line.
        lines[0] = lines[0].removeprefix(mark)
    assert list(itertools.chain(*found)) == lines
    assert known["lines"] == len(lines)
    assert known["bytes"] == len(content)
    assert {len(part) for part in found[:-1]} <= {shard_lines}
    names = [shard.name for shard in plan]
    assert names == sorted(set(names))
    for shard, part in zip(plan, found, strict=True):
        assert shard.lines == len(part)
        assert lines[shard.first - 1 :][: shard.lines] == part


def test_refuses_no_input_and_two_of_a_name(shards, tmp_path):
    with pytest.raises(UserError, match="no such file: .*none"):
        shards.find_inputs(f"{tmp_path}/none*")
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "a.gz").write_bytes(b"")

    with pytest.raises(UserError, match="different names.*/a and .*/a.gz"):
        shards.find_inputs(f"{tmp_path}/*")
    (tmp_path / "b.html.gz").write_bytes(b"")
    with pytest.raises(UserError, match="`python -m translate` takes documents.*b.ht"):
        shards.find_inputs(f"{tmp_path}/b*")


def test_refuses_half_a_gzip_file(shards, tmp_path):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"line\n" * 99)[:-9])

    with pytest.raises(UserError, match=f"not a whole gzip or zip file: {path}"):
        shards.split_into_shards(str(path), "text", 5)


def test_a_file_is_there_when_it_is_whole(shards, tmp_path):
    path = tmp_path / "new" / "file"

    def write_half():
        with shards.create(str(path)) as file:
            file.write(b"half")
            (part,) = path.parent.iterdir()
            assert part.match("file.*.part")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert not list(path.parent.iterdir())
    with shards.create(str(path)) as file:
        file.write(b"whole")
    assert [path] == list(path.parent.iterdir())
    assert path.read_bytes() == b"whole"


def test_a_folder_is_of_one_plan(shards, tmp_path):
    settings = {"model": 1, "shard_lines": 10}
    output = str(tmp_path / "out")
    shards.record_plan(output, settings, {"a.en": {"lines": 3}})

    shards.record_plan(output, settings, {"b.en": {"lines": 4}})
    noted = json.loads((tmp_path / "out" / "bulk.json").read_text())
    assert noted["inputs"] == {"a.en": {"lines": 3}, "b.en": {"lines": 4}}
    with pytest.raises(UserError, match="--output must be .* of shard_lines 10, and"):
        shards.record_plan(output, settings | {"shard_lines": 20}, {})
    with pytest.raises(UserError, match=r"of a.en {'lines': 3}, and here it is"):
        shards.record_plan(output, settings, {"a.en": {"lines": 5}})
    shards.record_plan(output, settings, {"model": {"lines": 6}})  # A file.
    with pytest.raises(UserError, match="of model 1, and here it is 2"):
        shards.record_plan(output, {"model": 2}, {"model": {"lines": 6}})
    (tmp_path / "out" / "bulk.json").write_text("{")
    with pytest.raises(UserError, match=r"bulk\.json must be whole"):
        shards.record_plan(output, settings, {})
