"use strict";
const $ = (id) => document.getElementById(id);

function complete(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
const make = (tag, attributes = {}, ...children) =>
  complete(document.createElement(tag), attributes, children);
const makeButton = (attributes, ...children) =>
  make("button", { type: "button", tabindex: -1, ...attributes }, ...children);
const listed = (elements) => elements.map((element) => make("li", {}, element));
const percent = (p) => (100 * p).toFixed(p > 0 && p < 0.1 ? 1 : 0) + " %";
const announce = (text) => { $("status").textContent = text; };

// Hover and focus announce the same text; `leave` undoes what they show.
function onSeen(element, text, enter = () => {}, leave = () => {}) {
  for (const event of ["mouseenter", "focus"]) {
    element.addEventListener(event, () => { announce(text); enter(); });
  }
  for (const event of ["mouseleave", "blur"]) element.addEventListener(event, leave);
}

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1],
  ArrowDown: [0, 1] };
const indexOf = (element) => [...element.parentElement.children].indexOf(element);
const sibling = (element, by) => element.parentElement.children[indexOf(element) + by];

// One stop for Tab; the arrow keys walk on from there, across or down.
function walk(box, next) {
  box.addEventListener("keydown", (event) => {
    const to = event.key in MOVES && next(event.target, ...MOVES[event.key]);
    if (!to) return;
    event.preventDefault();
    for (const stop of box.querySelectorAll("[tabindex='0']")) stop.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  });
}

