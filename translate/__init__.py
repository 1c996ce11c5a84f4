"""Uses what was exported: lines, documents, scores, reports, on disk or on a server."""

from command_line.quiet_tensorflow import start_tensorflow

start_tensorflow()
