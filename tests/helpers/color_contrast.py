"""Computes the WCAG colour contrast of a page."""

import json

import numpy as np


def contrasts(page, selector, name):
    """Returns the contrast of a colour of each element with what is behind.

    Args:
        page: The `Page`.
        selector: CSS selector.
        name: `"color"`, on the background of the element, or another colour
            of the style, such as of a border, on what surrounds the element.
    """
    pairs = page.evaluate(
        f"[...document.querySelectorAll({json.dumps(selector)})]"
        ".map((element) => {"
        " const canvas = document.createElement('canvas');"
        " const context = canvas.getContext('2d');"
        " const paint = (color) => { context.fillStyle = color;"
        "  context.fillRect(0, 0, 1, 1);"
        "  return [...context.getImageData(0, 0, 1, 1).data]; };"
        f" const name = {json.dumps(name)};"
        " let box = name === 'color' ? element : element.parentElement;"
        " const back = (e) => getComputedStyle(e).backgroundColor;"
        " while (back(box) === 'rgba(0, 0, 0, 0)') box = box.parentElement;"
        " return [paint(back(box)), paint(getComputedStyle(element)[name])];"
        "})"
    )
    light, dark = np.sort(luminance(pairs)).T[::-1]
    return (light + 0.05) / (dark + 0.05)


def luminance(colors):
    """Relative luminance of sRGB (WCAG 2.2); the last axis is the colour."""
    part = np.array(colors)[..., :3] / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]
