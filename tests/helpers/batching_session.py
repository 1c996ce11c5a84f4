"""Server-side batching by the rules of TF Serving's `batching_session.cc`."""

import concurrent.futures
import threading

import grpc
import numpy as np

Status = grpc.StatusCode


class ServerError(Exception):
    """The server's answer to a request that it refuses."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def invalid(message):
    return ServerError(Status.INVALID_ARGUMENT, message)


class BatchingSession:
    """Runs simultaneous requests of one signature together.

    Requests that ask for other tensors than those of a whole signature run
    alone; so does what has an `output_filter`. `run` makes a list of arrays of
    a dict of arrays and a list, both by tensor name. With the server's option
    `pad_variable_length_inputs`, inputs are padded with the first element of
    each; a batch is filled up to the next of the `allowed_batch_sizes` with its
    first row again and again. With `closes_at` requests, a batch is complete.
    """

    def __init__(
        self,
        run,
        signatures,
        timeout=0.01,
        max_batch_size=1000,
        pad_variable_length_inputs=False,
        allowed_batch_sizes=(),
        closes_at=None,
    ):
        self._run = run
        self._declared = {
            queue_of(names_of(signature.inputs), names_of(signature.outputs))
            for signature in signatures
        }
        self._timeout = timeout
        self._max_batch_size = max_batch_size
        self._pads = pad_variable_length_inputs
        self._allowed = sorted(allowed_batch_sizes)
        self._closes_at = closes_at
        self._lock = threading.Condition()
        self._open = {}  # The batch that waits for more, by queue.
        self.batch_sizes = []  # How many requests ran together.
        self.rows = []  # How many rows were then run.

    def run(self, feeds, fetches):
        queue = queue_of(feeds, fetches)
        if queue not in self._declared:
            return self._run(feeds, fetches)
        check_batch_size(feeds, self._max_batch_size)
        answer = concurrent.futures.Future()
        with self._lock:
            leads = queue not in self._open
            batch = self._open.setdefault(queue, [])
            batch.append((feeds, fetches, answer))
            self._lock.notify_all()
        if leads:
            with self._lock:
                self._lock.wait_for(
                    lambda: len(batch) == self._closes_at, self._timeout
                )
                del self._open[queue]
                self.batch_sizes.append(len(batch))
            self._process(batch)
        return answer.result()

    def _process(self, batch):
        """Answers all requests of a batch; an error is that of each."""
        all_feeds, all_fetches, answers = zip(*batch, strict=True)
        try:
            merged = {
                name: self._merge([feeds[name] for feeds in all_feeds])
                for name in all_feeds[0]
            }
            rows = len(next(iter(merged.values())))
            self.rows.append(rows)
            fetches = all_fetches[0]
            outputs = dict(zip(fetches, self._run(merged, fetches), strict=True))
            sizes = [len(next(iter(feeds.values()))) for feeds in all_feeds]
            sizes.append(rows - sum(sizes))  # Those filled up with.
            ends = np.cumsum(sizes)[:-1]
            parts = {name: np.split(output, ends) for name, output in outputs.items()}
        except Exception as error:
            for answer in answers:
                answer.set_exception(error)
            return
        for place, (_, names, answer) in enumerate(batch):
            answer.set_result([parts[name][place] for name in names])

    def _merge(self, arrays):
        if self._pads:
            longest = np.max([array.shape for array in arrays], axis=0)
            arrays = [pad(array, longest) for array in arrays]
        if len({array.shape[1:] for array in arrays}) > 1:
            raise ServerError(
                Status.FAILED_PRECONDITION,
                "Tensors from different tasks have different shapes and "
                "padding is turned off.",
            )
        rows = np.concatenate(arrays)
        size = next((n for n in self._allowed if n >= len(rows)), len(rows))
        return np.concatenate([rows, *[rows[:1]] * (size - len(rows))])


def queue_of(inputs, outputs):
    return frozenset(inputs), frozenset(outputs)


def names_of(infos):
    return [info.name for info in infos.values()]


def check_batch_size(feeds, limit):
    """Refuses what has no batch, or one that is too large."""
    if any(np.ndim(value) == 0 for value in feeds.values()):
        raise invalid("Batching Run() input tensors must have at least one dimension")
    size = len(next(iter(feeds.values())))
    if size > limit:
        raise invalid(
            f"Task size {size} is larger than maximum input batch size {limit}"
        )


def pad(array, shape):
    """Pads all but the batch, at the end, with the array's first element."""
    widths = [(0, more) for more in np.subtract(shape, array.shape)]
    widths[0] = (0, 0)
    if not np.any(widths):
        return array
    return np.pad(array, widths, constant_values=array.flat[0])
