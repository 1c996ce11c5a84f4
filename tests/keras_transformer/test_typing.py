"""The type hints serve a user's own code, as that of the guide."""

import pathlib
import re

import mypy.api

ROOT = pathlib.Path(__file__).parents[2]
BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs/tutorials/layers.md").read_text(), re.S
)
WRONG = {
    "kt.Transfomer(9)": "has no attribute",
    "kt.Transformer('1000')": "expected",
    "kt.EncoderLayer(num_heads='4', intermediate_dim=8)": "expected",
    "kt.Transformer(9).generate([[1]], beam_size='4')": "expected",
    "kt.copy_attention_weights()": "Missing positional arguments",
    "kt.SubwordTokenizer('a path')": "expected",
    "kt.Transformer.from_preset('tiny')": "Missing positional argument",
}


def test_hints_find_wrong_calls_and_pass_the_guide():
    program = "\n".join([*BLOCKS, *WRONG])

    found, errors, _ = mypy.api.run(
        ["--config-file", str(ROOT / "setup.cfg"), "-c", program]
    )

    assert not errors
    *lines, _ = found.splitlines()
    assert len(lines) == len(WRONG), found
    for line, (call, message) in zip(lines, WRONG.items(), strict=True):
        number = program.splitlines().index(call) + 1
        assert f":{number}: " in line
        assert message in line
