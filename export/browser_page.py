"""Writes a folder of static files that translates in a browser.

    npm install --prefix NPM_DIR @litertjs/core@2.5.3
    python -m export.browser_page --export-dir EXPORT_DIR --page-dir PAGE_DIR \\
        --npm-dir NPM_DIR
    python -m http.server --directory PAGE_DIR

Any web server can serve the folder. The page asks it for files only: LiteRT.js
runs the model in the browser. The translations are those of
`litert_translator`.
"""

import dataclasses
import json
import pathlib
import shutil

from command_line.errors import UserError, exit_on_user_error, refuse_damage
from command_line.options import option, parse_command
from export.bundle.file_layout import LITERT_CONFIG, LITERT_ENCODER, LITERT_STEP
from export.bundle.versions import EXPORT_DIR, find_version

PACKAGE, PACKAGE_VERSION = "@litertjs/core", "2.5.3"
UTILITIES = "@litertjs/wasm-utils"
# For browsers with relaxed SIMD instructions of WebAssembly, and without.
RUNTIMES = ("litert_wasm_internal", "litert_wasm_compat_internal")
SOURCES = pathlib.Path(__file__).parent / "litert" / "page"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PageOptions:
    export_dir: pathlib.Path = option(**EXPORT_DIR)
    page_dir: pathlib.Path = option(
        help="folder to write, which may not exist", kind=pathlib.Path, metavar="DIR"
    )
    npm_dir: pathlib.Path = option(
        help="folder in which `npm install --prefix DIR "
        f"{PACKAGE}@{PACKAGE_VERSION}` installed LiteRT.js",
        kind=pathlib.Path,
        metavar="DIR",
    )


def find_packages(npm_dir: pathlib.Path) -> pathlib.Path:
    """Returns the folder of npm's packages.

    Other versions of LiteRT.js are refused: the page uses more of it than its
    documented interface.
    """
    packages = npm_dir / "node_modules"
    path = packages / PACKAGE / "package.json"
    found = "no such package"
    if path.exists():
        with refuse_damage(path):
            found = json.loads(path.read_text("utf-8"))["version"]
    if found != PACKAGE_VERSION:
        raise UserError(
            f"--npm-dir must be a folder in which `npm install --prefix "
            f"{npm_dir} {PACKAGE}@{PACKAGE_VERSION}` ran. Received: {found}"
        )
    return packages


def write_page(
    folder: pathlib.Path, packages: pathlib.Path, page_dir: pathlib.Path
) -> None:
    """Writes the page of a version of an export for LiteRT.

    PAGE_DIR/index.html, page.js, translator.js, ...
             model/    files of the version
             litert/   LiteRT.js
    """
    if page_dir.exists():
        raise UserError(f"--page-dir must be a new folder. Received: {page_dir}")
    with refuse_damage(folder / LITERT_CONFIG):
        config = json.loads((folder / LITERT_CONFIG).read_text("utf-8"))
        tokenizers = {config["tokenizer"], config["target_tokenizer"]}
        languages = config["languages"] or {}
    for name in ("source", "target"):
        if len(codes := languages.get(f"{name}_tags", ())) > 1:
            raise UserError(
                f"a page needs an export with --{name}-language, one of: "
                f"{', '.join(codes)}"
            )
    shutil.copytree(SOURCES, page_dir)
    model, litert = page_dir / "model", page_dir / "litert"
    model.mkdir()
    litert.mkdir()
    for name in (LITERT_CONFIG, LITERT_ENCODER, LITERT_STEP, *tokenizers):
        shutil.copyfile(folder / name, model / name)
    for name in RUNTIMES:
        for file in (f"{name}.js", f"{name}.wasm"):
            shutil.copyfile(packages / PACKAGE / "wasm" / file, litert / file)
    shutil.copyfile(packages / UTILITIES / "dist/index.js", litert / "wasm-utils.js")
    # A browser finds a module by its address, not by its package.
    module = (packages / PACKAGE / "dist/index.js").read_text("utf-8")
    module = module.replace(f'"{UTILITIES}"', '"./wasm-utils.js"')
    (litert / "core.js").write_text(module, "utf-8")


def run(options: PageOptions) -> None:
    folder = find_version(options.export_dir, LITERT_STEP)
    packages = find_packages(options.npm_dir)
    write_page(folder, packages, options.page_dir)
    print(
        f"{options.page_dir} is written. Next:\n"
        f"  python -m http.server --directory {options.page_dir}"
    )


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_command("export.browser_page", __doc__, PageOptions, argv))


if __name__ == "__main__":
    main()
