"""Description of a run: reads, compares and writes `arguments.json`."""

import dataclasses
import json
import pathlib
from collections.abc import Collection

from command_line.errors import UserError, refuse_damage
from command_line.text_files import write_json
from keras_transformer import Preset
from train.run.run_folder import checkpoints_by_step, delete_checkpoint, read_history

PACKAGES = ("keras", "numpy", "sentencepiece", "tensorflow")
# Parts of two descriptions that must be equal for the same weights.
COMPARED = ("arguments", "preset", "corpus", "init")


@dataclasses.dataclass(kw_only=True)
class RunDescription:
    """Describes a run; its folder holds it as `arguments.json`."""

    arguments: dict  # The options by name, as JSON.
    preset: Preset  # With the hyperparameters that were replaced.
    # Digests of the text, "train" and "validation"; none of a converted model.
    corpus: dict = dataclasses.field(default_factory=dict)
    # Digests of the model or the vocabulary that the run starts from, if any.
    init: dict = dataclasses.field(default_factory=dict)
    packages: dict  # Versions of the packages with which the run began.
    origin: dict = dataclasses.field(default_factory=dict)  # If converted.
    decoding: dict = dataclasses.field(default_factory=dict)  # Search options.
    # `LanguageTags` as JSON, of a model of several languages.
    languages: dict = dataclasses.field(default_factory=dict)
    steps_per_epoch: int | None = None
    # Divides the sentences of a batch; `None` until the devices are known.
    row_multiple: int | None = None
    source_language: str = ""
    revision: str = ""  # Of the training text, where its publisher names one.

    @classmethod
    def load(cls, path: pathlib.Path) -> "RunDescription":
        """Reads an `arguments.json`."""
        text = path.read_bytes()
        # A missing entry, or one of another type, means a damaged file.
        with refuse_damage(path):
            content = json.loads(text)
            numbers = content.pop("preset")
            preset = Preset(numbers.pop("description")).replace(**numbers)
            description = cls(preset=preset, **content)
            for name in ("vocabulary_size", "max_length"):
                int(description.arguments[name])
            if not description.origin:
                int(description.steps_per_epoch)
        return description

    @classmethod
    def load_run(cls, run_dir: pathlib.Path, option: str) -> "RunDescription":
        """Reads the description of the run in a folder."""
        path = run_dir / "arguments.json"
        if not path.exists():
            raise UserError(
                f"{option} must be the folder of a run. Received: {run_dir}, "
                f"which has no {path.name}"
            )
        return cls.load(path)

    def compare(
        self, other: "RunDescription", not_compared: Collection[str]
    ) -> list[str]:
        """Returns the entries in which another description differs.

        An option that is off, or has no value, may be missing in one of them.
        """
        found = []
        for part in COMPARED:
            before, after = self._entries(part), other._entries(part)
            for name in [*after, *(before.keys() - after.keys())]:
                old, new = before.get(name), after.get(name)
                used = any(x is not None and x is not False for x in (old, new))
                compared = part != "arguments" or name not in not_compared
                if old != new and used and compared:
                    is_digest = part == "corpus"
                    values = "other text" if is_digest else f"{old} there, {new} here"
                    found.append(f"{name}: {values}")
        return found

    def find_earlier(
        self, run_dir: pathlib.Path, not_compared: Collection[str]
    ) -> "RunDescription | None":
        """Returns the description in a folder, which this run may resume.

        An update does not depend on the number of later updates (but for the
        rates of `--schedule linear` and `cosine`). So with another `--steps` the
        run becomes longer, or shorter, if it has not passed that update.
        """
        path = run_dir / "arguments.json"
        if not path.exists():
            return None
        earlier = self.load(path)
        if earlier.origin:
            raise UserError(
                "--run-dir must be another folder than that of a converted "
                "model; --init-from starts from it. "
                f"Received: --run-dir {run_dir}"
            )
        preset, steps = earlier.preset, self.arguments["steps"]
        reached = max(checkpoints_by_step(run_dir / "checkpoints"), default=0)
        if steps is not None and steps >= reached:
            preset = preset.replace(steps=steps)
        expected = dataclasses.replace(earlier, preset=preset)
        found = expected.compare(self, not_compared)
        if found:
            raise UserError(
                f"{run_dir} holds a run of other arguments; take them, or "
                f"another --run-dir. {'; '.join(found)}"
            )
        return earlier

    def claim(self, run_dir: pathlib.Path) -> None:
        """Writes `arguments.json`, which assigns the folder to this run."""
        self._delete_short_epoch(run_dir)
        write_json(run_dir / "arguments.json", self._to_json())

    def _entries(self, part):
        value = getattr(self, part)
        return value.hyperparameters() if part == "preset" else value

    def _to_json(self):
        content = {
            field.name: getattr(self, field.name) for field in dataclasses.fields(self)
        }
        content["preset"] = {
            "description": self.preset.description,
            **self.preset.hyperparameters(),
        }
        for name in ("decoding", "languages", "origin", "revision"):
            if not content[name]:
                del content[name]
        return content

    def _delete_short_epoch(self, run_dir):
        """Deletes the last checkpoint if the end of the run cut its epoch short.

        A longer run trains that epoch again, like an uninterrupted run.
        """
        steps = [0, *(int(row["step"]) for row in read_history(run_dir))]
        saved = checkpoints_by_step(run_dir / "checkpoints")
        if steps[-1] not in saved or not (run_dir / "arguments.json").exists():
            return
        earlier = self.load(run_dir / "arguments.json")
        ended = steps[-1] == earlier.preset.recipe.steps < self.preset.recipe.steps
        if ended and steps[-1] - steps[-2] < earlier.steps_per_epoch:
            delete_checkpoint(saved[steps[-1]])


def read_arguments(run_dir: pathlib.Path) -> dict | None:
    """Returns the arguments of the run in a folder, or `None` without one."""
    path = run_dir / "arguments.json"
    return RunDescription.load(path).arguments if path.exists() else None
