"""The encoder and the decoder's step as LiteRT graphs.

Axes: `K` hypotheses, `C` candidates, `V` vocabulary.
"""

import pathlib

import numpy as np
from ai_edge_litert.interpreter import Interpreter

FORBIDDEN = -1e30  # Attention logit of positions that are not ancestors.
FIRST_CAPACITY = 16  # Positions of a cache, which is doubled when it is full.


class Model:
    """The graphs of an export, with the state of a search.

    The inputs of the step keep their values between calls. A cache has the keys
    or values of all positions of all hypotheses, in the order of computation;
    `mask` selects the ancestors of each hypothesis. So the caches are never
    reordered.
    """

    def __init__(self, folder: pathlib.Path, settings: dict):
        self.eos_id, self.bos_id = settings["eos_id"], settings["bos_id"]
        self.max_length = settings["max_target_length"]
        self.forbidden_ids = settings["forbidden_ids"]
        self._encoder, self._step = graphs = [
            Interpreter(str(folder / name), num_threads=1)
            for name in ("encoder.tflite", "step.tflite")
        ]
        encoder, step = (graph.get_signature_runner() for graph in graphs)
        self._source = encoder.get_input_details()["ids"]["index"]
        self._memory = encoder.get_output_details()
        self._inputs = step.get_input_details()
        self._outputs = step.get_output_details()
        self._caches = [n for n in self._inputs if n.startswith(("keys", "values"))]
        self._states = [n for n in self._inputs if n.startswith("state")]
        self._kept = self._caches + self._states + ["mask"] * bool(self._caches)

    def start(self, ids: list[int], beams: int) -> None:
        """Encodes a source, and prepares the search of its translations."""
        self._encoder.resize_tensor_input(self._source, [len(ids)])
        self._encoder.allocate_tensors()
        self._encoder.set_tensor(self._source, np.array(ids, np.int32))
        self._encoder.invoke()
        self._source_length, self._beams, self._position = len(ids), beams, 0
        self._reserve(FIRST_CAPACITY)

    def _reserve(self, capacity: int) -> None:
        """Makes room for so many positions, and keeps the computed ones."""
        beams, entries = self._beams, capacity * self._beams
        names = self._kept if self._position else ()
        kept = {name: np.array(self._view(name)) for name in names}
        dynamic = {
            **{"ids": [beams], "mask": [beams, beams + entries]},
            **{"keys": [entries], "values": [entries], "state": [beams]},
            **{"memory": [self._source_length]},
        }
        for name, details in self._inputs.items():
            sizes = iter(dynamic.get(name.split("_")[0], ()))
            shape = [n if n > 0 else next(sizes) for n in details["shape_signature"]]
            self._step.resize_tensor_input(details["index"], shape)
        self._step.allocate_tensors()
        self._capacity = capacity
        for name, details in self._memory.items():
            self._view(name)[:] = self._encoder.get_tensor(details["index"])
        for name in self._kept:
            view = self._view(name)
            # The first columns of the mask are the new tokens themselves. The
            # caches hold no NaN, as a weight of 0 times NaN would be NaN.
            view[:] = FORBIDDEN if name == "mask" else 0
            if name in kept:
                view[:, : kept[name].shape[1]] = kept[name]
            elif name == "mask":
                np.fill_diagonal(view, 0)

    def _view(self, name):
        return self._step.tensor(self._inputs[name]["index"])()

    def output(self, name: str) -> np.ndarray:
        """Returns an output of the last step."""
        return self._step.get_tensor(self._outputs[name]["index"])

    def step(self, tokens: list[int]) -> None:
        """Decodes the next position of each hypothesis, after these tokens."""
        if self._caches and self._position == self._capacity:
            self._reserve(2 * self._capacity)
        self._view("ids")[:] = tokens
        self._view("position")[:] = self._position
        self._step.invoke()

    def log_probabilities(self) -> np.ndarray:
        """Returns the log-probabilities of all tokens, `(K, V)`."""
        x = self.output("logits")
        x -= x.max(axis=1, keepdims=True)
        return x - np.log(np.exp(x).sum(axis=1, keepdims=True))

    def reorder(self, parents: list[int]) -> None:
        """Makes each hypothesis continue the one of its parent."""
        start = self._position * self._beams
        for name in self._caches:
            self._view(name)[:, start : start + self._beams] = self.output(name)
        for name in self._states:
            self._view(name)[:] = self.output(name)[parents]
        if self._caches:
            columns = self._view("mask")[:, self._beams :]
            columns[:, :start] = columns[parents, :start]
            columns[range(self._beams), np.add(parents, start)] = 0
        self._position += 1
