"""Tests of the errors of the commands of `export`, one line each."""

import shlex
import string

import pytest

from export import __main__ as export_command, check
from serve import __main__ as serve
from translate import __main__ as translate, evaluate, explain

COMMANDS = {
    "export": export_command,
    "translate": translate,
    "evaluate": evaluate,
    "explain": explain,
    "check": check,
    "serve": serve,
}
# $TMP is a folder with the files of `folder`, $EXPORT one with an export.
NAMES = {
    "RUN": "--run-dir=$TMP --export-dir=$TMP",
    "PAGE": "--output=$TMP/page.html",
    "ONE": "--source=$TMP/one --reference=$TMP/one",
    "PAIR": "must be SOURCE:TARGET=EXPORT_DIR or SOURCE:TARGET=HOST:PORT, such "
    "as en:es=exports/demo. Received:",
}
# A command, its arguments, and words of what it says.
REFUSALS = """
translate --server=nowhere -> Received: nowhere
translate --server=a:1/prefix -> --server must be HOST:PORT
translate --server=https://a:1 -> --server must be HOST:PORT
translate --server=u:p@a:1 -> --server must be HOST:PORT. Received: a:1
translate --server=:1 -> --server must be HOST:PORT
translate --server=a:b -> --server must be HOST:PORT
translate --server=a:65536 -> --server must be HOST:PORT
translate --server=[::1:8500 -> --server must be HOST:PORT
translate --server=a:1 --timeout=0 -> --timeout: invalid positive float value
translate --server=a:1 --in-flight=0 -> --in-flight: invalid positive int value
translate --server=a:1 --batch-tokens=0 -> --batch-tokens: invalid positive int value
translate --export-dir=$TMP/no -> `python -m export` wrote
translate --export-dir=x --top-k=3 -> --top-k needs --sample. Received: 3
translate --export-dir=x --sample --temperature=0 -> must be between 0.01 and 100.
translate --export-dir=x --sample --top-k=-1 -> must be between 0 and 2147483647.
translate --export-dir=x --sample --top-p=1.5 -> must be above 0 and at most 1.
translate --export-dir=$EXPORT --input=$TMP/x -> no such file
translate --export-dir=$EXPORT --input=$TMP/one --output=$TMP/one -> than --input
translate --export-dir=x --format=text --sample -> --sample must be left out
evaluate --export-dir=x --source=$TMP/two --reference=$TMP/one -> 2 lines in
evaluate --export-dir=x --source=$TMP/empty --reference=$TMP/one -> may not be empty
evaluate --export-dir=x --source=$TMP/latin --reference=$TMP/one -> line 1, byte 0xe9
evaluate --export-dir=x --source=x -> required: --reference
evaluate --export-dir=x --source=none --reference=none -> no such file: none
explain $PAGE --export-dir=$EXPORT --text=' ' -> --text must hold some text.
explain $PAGE --export-dir=$TMP --text=a -> `python -m export` wrote
check --export-dir=$TMP/ct2 -> of the format saved_model or litert.
check --export-dir=$TMP/no -> `python -m export` wrote. Received
check --export-dir=$EXPORT --version=7 -> --version must be one of 1.
export $RUN --beam-size=0 -> --beam-size must be between 1 and 100. Received: 0
export $RUN --length-penalty=nan -> between -10 and 10
export $RUN --length-penalty=1e39 -> between -10 and 10
export $RUN --max-extra-length=-1 -> must be between 0
export $RUN --no-repeat-ngram=21 -> --no-repeat-ngram must be between 0 and
export $RUN --min-length=-1 -> --min-length must be between 0 and 1000. Received
export $RUN --precision=int8 -> must be float32 or bfloat16 with
export $RUN --format=ctranslate2 --min-length=2 -> --min-length must be left out
export $RUN --format=litert --precision=bfloat16 -> must be float32 or int8 with
export --run-dir=$REAL_RUN --export-dir=$EXPORT --format=ctranslate2 --version=2
 -> --export-dir must be a folder for one format
export $RUN --signatures score any -> invalid choice: 'any'
export --run-dir=$REAL_RUN --export-dir=$TMP/new --align-layer=2
 -> `align_layer` must be between -2 and 1
export --run-dir=$REAL_RUN --export-dir=$TMP/new --align-head=2
 -> `align_head` must be between 0 and 1
export $RUN --version=-1 -> argument --version: invalid natural value
export $RUN --model-name=é -> --model-name must be of letter
export $RUN -> --run-dir must be the folder of a finished
serve -> --pair
serve --port=0 --pair=en-es=exports -> $PAIR en-es
serve --port=0 --pair=en:es= -> $PAIR en:es=
serve --port=0 --pair=en:es=$TMP/no -> wrote. Received: $TMP/no
serve --port=0 --pair=en:es=a:1 --pair=en:es=a:1 -> must name each pair once.
serve --port=70000 --pair=en:es=a:1 -> --port must be between
serve --port=0 --pair=en:es=a:1 --host=0.0.0.1 -> assign requested address
serve --port=0 --pair=en:es=a:1 --char-limit=0 -> --char-limit: invalid positive
serve --pair=en:es=a:1 --rate-limit=often -> must be such as 60/minute
serve --pair=en:es=a:1 --url-prefix=mt -> --url-prefix must be a path
serve --pair=en:es=a:1 --url-prefix=/mt/ -> --url-prefix must be a path
serve --pair=en:es=a:1 --public-url=https://a/b -> Received: https://a/b
serve --pair=en:es=a:1 --public-url=http://[::1 -> --public-url must be a scheme
serve --pair=en:es=a:1 --trusted-proxies=proxy -> or networks
serve --port=0 --pair=en:es=https://u:p@a/?b -> https://u:p@a/?b: --server must be
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refused")
    (folder / "two").write_text("a\nb\n")
    (folder / "one").write_text("a\n")
    (folder / "latin").write_bytes(b"caf\xe9\n")
    (folder / "empty").touch()
    (folder / "ct2" / "1").mkdir(parents=True)
    (folder / "ct2" / "1" / "model.bin").touch()
    return folder


@pytest.mark.parametrize("case", REFUSALS.replace("\n ", " ").strip().splitlines())
def test_refuses_in_one_line(case, folder, run_dir, export_dir, refused):
    there = {"TMP": folder, "EXPORT": export_dir, "REAL_RUN": run_dir}
    for names in (NAMES, there):
        case = string.Template(case).safe_substitute(names)
    arguments, message = case.split(" -> ")
    command, *options = shlex.split(arguments)

    line = refused(COMMANDS[command], *options)

    assert message in line
