"""The rows of Table 3, scaled to a budget, trained and compared."""

import train  # noqa: F401  Before TensorFlow, which it sets up.
