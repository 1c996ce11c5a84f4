"""Imports matplotlib if it is installed."""


def open_pyplot():
    """Returns `matplotlib.pyplot`, or prints that it is missing."""
    try:
        import matplotlib
    except ImportError as error:
        print(f"no picture: {error} (pip install matplotlib)")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
