"""Loads a SavedModel and checks requests by the rules of TF Serving 2.20's source."""

import copy
import pathlib

import grpc
import tensorflow as tf
import tensorflow_text  # noqa: F401  The stock server links its ops.

Status = grpc.StatusCode
CODES = {status.value[0]: status for status in Status}


class ServerError(Exception):
    """The server's answer to a request that it refuses."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def invalid(message):
    return ServerError(Status.INVALID_ARGUMENT, message)


class Servable:
    """The newest version of an export, under the name that a server gives it."""

    def __init__(self, export_dir, name="translator"):
        folder, load = pathlib.Path(export_dir), tf.compat.v1.saved_model.loader.load
        files = folder.glob("*/saved_model.pb")
        self.name = name
        self.version = max(int(path.parent.name) for path in files)
        self._session = tf.compat.v1.Session(graph=tf.Graph())
        with self._session.graph.as_default():
            meta = load(self._session, ["serve"], str(folder / str(self.version)))
        self._session.graph.finalize()  # Nothing may grow.
        self.signatures = dict(meta.signature_def)
        self._max_batch_size = None

    def with_max_batch_size(self, size):
        """Returns a servable of the same Session, as with server-side batching."""
        twin = copy.copy(self)
        twin._max_batch_size = size
        return twin

    def check_model(self, name):
        """Refuses a model that is not there."""
        if name != self.name:
            raise ServerError(
                Status.NOT_FOUND, f"Servable not found for request: Latest({name})"
            )

    def predict(self, signature_name, inputs):
        """Returns a dict from output to array."""
        signature_name = signature_name or "serving_default"
        if signature_name not in self.signatures:
            raise ServerError(
                Status.FAILED_PRECONDITION,
                f'Serving signature key "{signature_name}" not found.',
            )
        signature = self.signatures[signature_name]
        feeds = fill_default_inputs(signature, inputs)
        limit = self._max_batch_size
        if limit and (size := len(next(iter(feeds.values())))) > limit:
            raise invalid(  # `batching_session.cc`
                f"Task size {size} is larger than maximum input batch size {limit}"
            )
        names = sorted(signature.outputs)
        fetches = [signature.outputs[name].name for name in names]
        try:
            outputs = self._session.run(fetches, feeds)
        except tf.errors.OpError as error:
            raise ServerError(CODES[error.error_code], error.message) from error
        except ValueError as error:  # Python's check of the shapes.
            raise invalid(str(error)) from error
        return dict(zip(names, outputs, strict=True))


def fill_default_inputs(signature, inputs):
    """Returns a dict from tensor name to array, defaults filled in."""
    if not set(inputs) <= set(signature.inputs):
        raise invalid(f"Inputs contains invalid name. Request input: {sorted(inputs)}")
    defaults = {n: tf.make_ndarray(value) for n, value in signature.defaults.items()}
    values = {**defaults, **inputs}
    if missing := sorted(set(signature.inputs) - set(values)):
        # `VerifyRequestInputsSize` of predict_util.cc.
        raise invalid(
            f"input size does not match signature: {len(inputs)}!="
            f"{len(signature.inputs)}. Missing but required: {{{','.join(missing)}}}."
        )
    return {info.name: values[name] for name, info in signature.inputs.items()}
