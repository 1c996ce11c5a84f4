"""Reads the layers' weights of a CTranslate2 model.

One kernel holds the maps of queries, keys and values. All heads have one width;
narrower keys or values have zeros at the end of each head.
"""

from typing import NamedTuple

import numpy as np

from command_line.errors import UserError
from convert.tensor_files import Tensors
from convert.weight_mapping import Weight

ATTENTIONS = {"self": "self_attention", "memory": "attention"}
# For each map: index of its kernel, its place there, and number of maps there.
MAPS = {
    "self_attention": {
        "query": (0, 0, 3),
        "key": (0, 1, 3),
        "value": (0, 2, 3),
        "output": (1, 0, 1),
    },
    "attention": {
        "query": (0, 0, 1),
        "key": (1, 0, 2),
        "value": (1, 1, 2),
        "output": (2, 0, 1),
    },
}
ENDS = {"kernel": "weight", "bias": "bias"}


class Heads(NamedTuple):
    """The heads of a model.

    Attributes:
        count: Int, number of heads.
        stored: Int, features of a head in the file.
        key_dim: Int, features of queries and keys.
        value_dim: Int, features of values.
    """

    count: int
    stored: int
    key_dim: int
    value_dim: int

    def features(self, name: str) -> int:
        """Returns the features of a head of `"query"`, `"key"` and others."""
        return self.key_dim if name in ("query", "key") else self.value_dim


def find_value_dim(tensors: Tensors, count: int, stored: int) -> int:
    """Returns the features of values: those that are not 0 in all layers."""
    used = np.zeros(stored, bool)
    for name, shape in tensors.shapes.items():
        end = name.split("/", 2)[-1]
        if end in ("self_attention/linear_0/weight", "attention/linear_1/weight"):
            if shape[0] % (count * stored):
                continue  # `take` refuses it later, by its name.
            rows = tensors.take(name, shape)[-count * stored :]
            used |= rows.reshape(count, stored, -1).any(axis=(0, 2))
    return int(np.flatnonzero(used).max(initial=0)) + 1 if used.any() else stored


class LayerReader:
    """Reads the weights of layers by their `Weight`.

    Args:
        tensors: The tensors of the file.
        heads: The heads.
    """

    def __init__(self, tensors: Tensors, heads: Heads):
        self._tensors, self._heads = tensors, heads

    def read(self, weight: Weight) -> np.ndarray:
        """Returns a weight of a layer, in their order of features.

        Raises:
            UserError: If it is missing, has another shape or is not finite, or
                if padding of a head is not 0.
        """
        prefix = f"{weight.stack}/layer_{weight.layer}"
        shape = tuple(weight.variable.shape)
        what, end = weight.name.split(".")
        part = ATTENTIONS.get(weight.part)
        if what == "norm":
            name = f"{prefix}/{part or 'ffn'}/layer_norm/{end}"
            return self._tensors.take(name, shape)
        if part is None:
            index = {"expand": 0, "contract": 1}[what]
            name = f"{prefix}/ffn/linear_{index}/{ENDS[end]}"
            return self._tensors.take(name, shape[::-1]).T
        index, place, count = MAPS[part][what]
        name = f"{prefix}/{part}/linear_{index}/{ENDS[end]}"
        size = self._heads.count * self._heads.stored
        if what == "output":
            if end == "bias":
                return self._tensors.take(name, shape)
            array = self._tensors.take(name, (shape[1], size)).T
            return self._without_padding(array, what, name)
        rest = shape[:1] if end == "kernel" else ()
        array = self._tensors.take(name, (count * size, *rest))
        array = array[place * size : (place + 1) * size]
        return self._without_padding(array, what, name).T

    def _without_padding(self, array, what: str, name: str) -> np.ndarray:
        """Removes the zeros at the end of each head, along the first axis."""
        heads, features = self._heads, self._heads.features(what)
        split = array.reshape(heads.count, heads.stored, *array.shape[1:])
        if split[:, features:].any():
            raise UserError(
                f"{name} of {self._tensors.path} must have zeros beyond the "
                f"first {features} features of a head. Received: others"
            )
        return split[:, :features].reshape(-1, *array.shape[1:])
