"""Imports matplotlib where it is installed, and saves charts."""


def open_pyplot():
    """Returns `matplotlib.pyplot`, or says that there is none."""
    try:
        import matplotlib
    except ImportError as error:
        print(f"no picture: {error} (pip install matplotlib)")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
