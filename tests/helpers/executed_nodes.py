"""Counts the graph nodes that TensorFlow's executor runs."""

import tensorflow as tf


class NodeCounter:
    """A traced function in a Session, as a server holds it.

    Args:
        function: `ConcreteFunction` of float32 variables and constants.
        variables: Those that it reads.
    """

    def __init__(self, function, variables):
        values = {id(v.handle): v.numpy() for v in variables}
        self._session = tf.compat.v1.Session(graph=tf.Graph())
        with self._session.graph.as_default():
            handles = {
                inner.name: tf.compat.v1.Variable(
                    values[id(outer)], use_resource=True
                ).handle
                for outer, inner in function.graph.captures
            }
            inputs = [x for x in function.inputs if x.name not in handles]
            self._outputs = tf.import_graph_def(
                function.graph.as_graph_def(),
                input_map=handles,
                return_elements=[x.name for x in function.graph.outputs],
                name="",
            )
            self._session.run(tf.compat.v1.global_variables_initializer())
        self._inputs = [x.name for x in inputs]

    def run(self, *arrays):
        """Returns the number of executed nodes, and the outputs."""
        feeds = dict(zip(self._inputs, arrays, strict=True))
        options = tf.compat.v1.RunOptions(
            trace_level=tf.compat.v1.RunOptions.FULL_TRACE
        )
        metadata = tf.compat.v1.RunMetadata()
        outputs = self._session.run(
            self._outputs, feeds, options=options, run_metadata=metadata
        )
        devices = metadata.step_stats.dev_stats
        return sum(len(device.node_stats) for device in devices), outputs
