"""The encoder and the decoder's step as LiteRT graphs.

Axes: `B` sentences, `S` source tokens, `K` hypotheses of a sentence, `L` entries
of a cache, `C` candidates, `V` vocabulary.
"""

import pathlib
from collections.abc import Callable

import numpy as np
from ai_edge_litert.interpreter import Interpreter

FORBIDDEN = -1e30  # Attention logit of positions that are not ancestors.
BLOCK = 8  # Lengths are rounded up to its multiples, so that few sizes occur.
FEW = 8  # Hypotheses that get room for translations of usual lengths at once.


def views(graph: Interpreter, details: dict) -> dict[str, Callable]:
    """Returns functions that return inputs or outputs, without a copy."""
    return {name: graph.tensor(each["index"]) for name, each in details.items()}


class Model:
    """The graphs of an export, with the state of a search.

    The inputs of the step keep their values between calls. A cache has the keys
    or values of all positions of all hypotheses of a sentence, in the order of
    computation; `mask` selects the ancestors of each hypothesis. So the caches
    are never reordered.
    """

    def __init__(self, folder: pathlib.Path, settings: dict):
        self.eos_id, self.bos_id = settings["eos_id"], settings["bos_id"]
        self.max_length = settings["max_target_length"]
        self.max_source_length = settings["max_source_length"]
        self.forbidden_ids = settings["forbidden_ids"]
        self.num_candidates = settings["num_candidates"]
        self._encoder, self._step = graphs = [
            Interpreter(str(folder / name), num_threads=1)
            for name in ("encoder.tflite", "step.tflite")
        ]
        encoder, step = (graph.get_signature_runner() for graph in graphs)
        self._source = encoder.get_input_details()["ids"]["index"]
        self._source_shape = None
        self._details = step.get_input_details()
        self._memory = views(self._encoder, encoder.get_output_details())
        self._inputs = views(self._step, self._details)
        self._outputs = views(self._step, step.get_output_details())
        self._caches = [n for n in self._inputs if n.startswith(("keys", "values"))]
        self._states = [n for n in self._inputs if n.startswith("state")]
        self._sizes = None

    def start(self, sources: list[list[int]], beams: int) -> None:
        """Encodes sources, and prepares the search of their translations."""
        longest = max(map(len, sources))
        length = min(-(-longest // BLOCK) * BLOCK, self.max_source_length)
        ids = np.zeros((len(sources), length), np.int32)
        for row, source in zip(ids, sources, strict=True):
            row[: len(source)] = source
        if ids.shape != self._source_shape:
            self._encoder.resize_tensor_input(self._source, ids.shape)
            self._encoder.allocate_tensors()
            self._source_shape = ids.shape
        self._encoder.set_tensor(self._source, ids)
        self._encoder.invoke()
        self._position = 0
        # Resizing costs a sentence much, and computing with empty entries a batch.
        capacity = BLOCK if len(sources) * beams > FEW else length
        self._resize(len(sources), beams, length, capacity)
        for name, memory in self._memory.items():
            self._inputs[name]()[:] = memory()
        for name in self._states:
            self._inputs[name]()[:] = 0
        if self._caches:
            self._clear(self._inputs["mask"]())

    def _resize(self, sentences: int, beams: int, length: int, capacity: int):
        """Gives the inputs of the step their shapes, unless they have them."""
        self._rows, self._hypotheses = np.arange(sentences)[:, None], np.arange(beams)
        self._beams, self._capacity = beams, capacity
        sizes = sentences, beams, length, capacity
        if sizes == self._sizes:
            return
        entries = capacity * beams
        dynamic = {
            **{"ids": sizes[:2], "mask": [sentences, beams, beams + entries]},
            **{"keys": [sentences, entries], "values": [sentences, entries]},
            **{"state": sizes[:2], "memory": [sentences, length]},
        }
        for name, details in self._details.items():
            left = iter(dynamic.get(name.split("_")[0], ()))
            shape = [n if n > 0 else next(left) for n in details["shape_signature"]]
            self._step.resize_tensor_input(details["index"], shape)
        self._step.allocate_tensors()
        self._sizes = sizes
        # The caches hold no NaN, as a weight of 0 times NaN would be NaN.
        for name in self._caches:
            self._inputs[name]()[:] = 0

    def _clear(self, mask: np.ndarray) -> None:
        """Lets each hypothesis attend to its new token, the first columns, only."""
        mask[:] = FORBIDDEN
        mask[:, self._hypotheses, self._hypotheses] = 0

    def keep(self, rows: np.ndarray, capacity: int | None = None) -> None:
        """Keeps these sentences only, with room for so many positions."""
        capacity = capacity or self._capacity
        kept = {}
        for name in self._inputs.keys() - {"ids", "position"}:
            axis = 1 if "keys" in name or "values" in name else 0
            kept[name] = self._inputs[name]().take(rows, axis)
        self._resize(len(rows), self._beams, self._sizes[2], capacity)
        for name, values in kept.items():
            view = self._inputs[name]()
            if name == "mask":
                self._clear(view)
            view[tuple(map(slice, values.shape))] = values

    def output(self, name: str) -> np.ndarray:
        """Returns an output of the last step."""
        return self._outputs[name]().copy()

    def step(self, tokens: np.ndarray) -> None:
        """Decodes the next position of each hypothesis, after `tokens` `(B, K)`."""
        if self._caches and self._position == self._capacity:
            self.keep(self._rows[:, 0], self._capacity + BLOCK)
        self._inputs["ids"]()[:] = tokens
        self._inputs["position"]()[:] = self._position
        self._step.invoke()

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
