"""The encoder and the decoder's step as LiteRT graphs.

Axes: `B` sentences, `S` source tokens, `K` hypotheses of a sentence, `L` entries
of a cache, `C` candidates, `V` vocabulary.
"""

import pathlib
import threading

import numpy as np
from ai_edge_litert.interpreter import Interpreter

FORBIDDEN = -1e30  # Attention logit of positions that are not ancestors.
BLOCK = 8  # Lengths are rounded up to its multiples, so that few sizes occur.
FEW = 8  # Hypotheses that get room for translations of usual lengths at once.
# A thread has it while it runs Python. If threads compete for Python's own lock, which
# NumPy often gives away for a moment, two take longer than one.
TURN = threading.Lock()


class Graph:
    """A LiteRT graph. Its inputs keep their values between calls.

    `inputs` and `outputs` have, for each name, a function that returns the array.
    """

    def __init__(self, path: pathlib.Path):
        self._interpreter = Interpreter(str(path), num_threads=1)
        runner = self._interpreter.get_signature_runner()
        self._details = runner.get_input_details()
        self.inputs, self.outputs = (
            {name: self._interpreter.tensor(each["index"]) for name, each in of.items()}
            for of in (self._details, runner.get_output_details())
        )
        self._sizes = None

    def run(self) -> None:
        """Computes the outputs, while another thread may have its `TURN`."""
        TURN.release()
        try:
            self._interpreter.invoke()
        finally:
            TURN.acquire()

    def resize(self, **sizes) -> None:
        """Gives the inputs their dynamic sizes, by the first words of their names."""
        if sizes == self._sizes:
            return
        for name, details in self._details.items():
            left = iter(sizes.get(name.split("_")[0], ()))
            shape = [n if n > 0 else next(left) for n in details["shape_signature"]]
            self._interpreter.resize_tensor_input(details["index"], shape)
        self._interpreter.allocate_tensors()
        self._sizes = sizes


class Model:
    """The graphs of an export, with the state of a search. It needs the `TURN`.

    A cache has the keys or values of all positions of all hypotheses of a sentence,
    in the order of computation; `mask` selects the ancestors of each hypothesis. So
    the caches are never reordered.
    """

    def __init__(self, folder: pathlib.Path, settings: dict):
        self.settings = settings
        self._encoder = Graph(folder / "encoder.tflite")
        self._step = Graph(folder / "step.tflite")
        self._inputs, self._outputs = self._step.inputs, self._step.outputs
        self._caches = [n for n in self._inputs if n.startswith(("keys", "values"))]
        self._states = [n for n in self._inputs if n.startswith("state")]

    def start(self, sources: list[list[int]], beams: int) -> None:
        """Encodes sources, and prepares the search of their translations."""
        longest = max(map(len, sources))
        length = min(-(-longest // BLOCK) * BLOCK, self.settings["max_source_length"])
        ids = np.zeros((len(sources), length), np.int32)
        for row, source in zip(ids, sources, strict=True):
            row[: len(source)] = source
        self._encoder.resize(ids=ids.shape)
        self._encoder.inputs["ids"]()[:] = ids
        self._encoder.run()
        self._position, self._beams, self._length = 0, beams, length
        # Resizing costs a sentence much, and computing with empty entries a batch.
        self._resize(len(sources), BLOCK if len(sources) * beams > FEW else length)
        for name, memory in self._encoder.outputs.items():
            self._inputs[name]()[:] = memory()

    def _resize(self, sentences: int, capacity: int) -> None:
        """Prepares the inputs of the step for so many sentences and positions."""
        beams, self._capacity = self._beams, capacity
        self._rows, self._hypotheses = np.arange(sentences)[:, None], np.arange(beams)
        entries, rows = (sentences, capacity * beams), (sentences, beams)
        self._step.resize(
            **{"ids": rows, "state": rows, "memory": (sentences, self._length)},
            **{"mask": (*rows, beams + entries[1]), "keys": entries, "values": entries},
        )
        # The caches hold no NaN, as a weight of 0 times NaN would be NaN.
        for name in [*self._caches, *self._states]:
            self._inputs[name]()[:] = 0
        if self._caches:
            mask = self._inputs["mask"]()
            mask[:] = FORBIDDEN
            # The first columns are the new tokens themselves.
            mask[:, self._hypotheses, self._hypotheses] = 0

    def keep(self, rows: np.ndarray, capacity: int | None = None) -> None:
        """Keeps these sentences only, with room for so many positions."""
        kept = {
            name: values().take(rows, 1 if "keys" in name or "values" in name else 0)
            for name, values in self._inputs.items()
            if name not in ("ids", "position")
        }
        self._resize(len(rows), capacity or self._capacity)
        for name, values in kept.items():
            self._inputs[name]()[tuple(map(slice, values.shape))] = values

    def output(self, name: str) -> np.ndarray:
        """Returns an output of the last step."""
        return self._outputs[name]().copy()

    def step(self, tokens: np.ndarray) -> None:
        """Decodes the next position of each hypothesis, after `tokens` `(B, K)`."""
        if self._caches and self._position == self._capacity:
            self.keep(self._rows[:, 0], self._capacity + BLOCK)
        self._inputs["ids"]()[:] = tokens
        self._inputs["position"]()[:] = self._position
        self._step.run()

    def log_probabilities(self) -> np.ndarray:
        """Returns the log-probabilities of all tokens, `(B, K, V)`."""
        x = self.output("logits")
        x -= x.max(axis=1, keepdims=True)
        x -= np.log(np.exp(x).sum(axis=1, keepdims=True))
        return x.reshape(len(self._rows), self._beams, -1)

    def reorder(self, parents: np.ndarray) -> None:
        """Makes each hypothesis continue the one of its parent, `(B, K)`."""
        start, beams = self._position * self._beams, self._beams
        for name in self._caches:
            self._inputs[name]()[:, :, start : start + beams] = self._outputs[name]()
        for name in self._states:
            self._inputs[name]()[:] = self._outputs[name]()[self._rows, parents]
        if self._caches:
            columns = self._inputs["mask"]()[:, :, beams:]
            if beams > 1:  # It is faster.
                columns[:, :, :start] = columns[self._rows, parents, :start]
            columns[self._rows, self._hypotheses, start + parents] = 0
        self._position += 1
