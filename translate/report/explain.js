"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const KINDS = {
  encoder_decoder_attention: ["Encoder-decoder attention",
    "A row predicts a subword of the target; columns are the source."],
  encoder_attention: ["Encoder self-attention",
    "A row is a subword of the source, and so is a column."],
  decoder_attention: ["Decoder self-attention, masked",
    "A row predicts a subword of the target; columns are what stands before it."],
};
// A recurrence has no weights.
if (!data.targets[0].decoder_attention) delete KINDS.decoder_attention;
const MEAN = "mean";
const state = { target: 0, layer: 0, head: MEAN, kind: Object.keys(KINDS)[0] };

// ---- Small helpers -------------------------------------------------------
function make(tag, attributes = {}, ...children) {
  const space = ["svg", "line", "path"].includes(tag)
    ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
  const element = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
const piece = (text) => make("bdi", {}, text);
const percent = (p) => (100 * p).toFixed(p > 0 && p < 0.1 ? 1 : 0) + " %";
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const announce = (text) => { $("status").textContent = text; };

// Hover and focus announce the same text; `leave` undoes what they show.
function onSeen(element, text, enter = () => {}, leave = () => {}) {
  for (const event of ["mouseenter", "focus"]) {
    element.addEventListener(event, () => { announce(text); enter(); });
  }
  for (const event of ["mouseleave", "blur"]) {
    element.addEventListener(event, leave);
  }
}

// One stop for Tab; the arrow keys walk on from there.
function walk(box, next) {
  box.addEventListener("keydown", (event) => {
    const to = next(event.target, event.key);
    if (!to) return;
    event.preventDefault();
    box.querySelector("[tabindex='0']").tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  });
}

function fill(select, options, value, change) {
  select.replaceChildren(...options.map(([value, text]) =>
    make("option", { value }, text)));
  select.value = value;
  select.addEventListener("change", () => change(select.value));
}

// ---- What is shown -------------------------------------------------------
const target = () => data.targets[state.target];
const mapsOf = (kind) => (kind === "encoder_attention" ? data : target())[kind];
const layersOf = (kind) => mapsOf(kind).length;
const heads = data.encoder_attention[0].length;

function weights(kind, layer, head) {
  const maps = mapsOf(kind)[layer];
  if (head !== MEAN) return maps[head];
  return maps[0].map((row, t) => row.map((_, s) =>
    sum(maps.map((map) => map[t][s])) / heads));
}

function axes(kind) {
  const source = data.source.tokens, tokens = target().tokens;
  if (kind === "encoder_attention") return [source, source];
  if (kind === "encoder_decoder_attention") return [tokens, source];
  return [tokens, ["<s>", ...tokens.slice(0, -1)]];
}

function drawSummary() {
  $("summary").tBodies[0].append(
    make("tr", {}, make("th", { scope: "row" }, "Source"),
      make("td", { dir: "auto" }, data.source.text), make("td", {}, "–"),
      make("td", {}, "–"), make("td", {}, data.source.pieces)),
    ...data.targets.map((t) => make("tr", {},
      make("th", { scope: "row" }, t.name),
      make("td", { dir: "auto" }, t.text),
      make("td", {}, t.score.toFixed(3)),
      make("td", {}, t.log_probability.toFixed(3)),
      make("td", {}, t.pieces))));
  $("notes").append(...data.notes.map((note) => make("li", {}, note)));
}

function drawConfidence() {
  $("confidence").replaceChildren(...target().tokens.map((token, t) => {
    const found = target().token_log_probabilities[t], p = Math.exp(found);
    const text = `${token}: probability ${percent(p)}, log-probability ` +
      found.toFixed(3);
    const item = make("li", { tabindex: t ? -1 : 0, "aria-label": text,
      style: `--p: ${100 * p}%` }, piece(token),
    make("small", {}, percent(p)));
    onSeen(item, text);
    return item;
  }));
}

// ---- Alignment -----------------------------------------------------------
function drawAlignment() {
  const kind = "encoder_decoder_attention";
  const layer = Math.min(state.layer, layersOf(kind) - 1);
  const map = weights(kind, layer, state.head);
  const [rows, columns] = axes(kind);
  const [sources, svg, targets] = $("alignment").children;
  const height = 30, lines = [];
  let pressed = null;
  const show = (chosen) => {
    for (const { line, t, s } of lines) {
      line.classList.toggle("faint", chosen !== null &&
        chosen !== buttons.target[t] && chosen !== buttons.source[s]);
    }
  };
  const button = (token, verb, seen) => {
    const most = seen.filter(([, w]) => w >= 0.05).sort((a, b) => b[1] - a[1])
      .map(([other, w]) => `${other} ${percent(w)}`).join(", ");
    const text = `${token} ${verb} ${most || "nothing above 5 %"}`;
    const element = make("button",
      { type: "button", tabindex: -1, "aria-pressed": "false",
        "aria-label": text }, piece(token));
    onSeen(element, text, () => show(element), () => show(pressed));
    element.addEventListener("click", () => {
      if (pressed) pressed.setAttribute("aria-pressed", "false");
      pressed = pressed === element ? null : element;
      if (pressed) pressed.setAttribute("aria-pressed", "true");
      show(pressed);
    });
    return element;
  };
  const buttons = {
    source: columns.map((token, s) => button(token, "is attended to for",
      rows.map((other, t) => [other, map[t][s]]))),
    target: rows.map((token, t) => button(token, "attends to",
      columns.map((other, s) => [other, map[t][s]]))),
  };
  buttons.source[0].tabIndex = 0;
  const list = (items) => items.map((item) => make("li", {}, item));
  sources.replaceChildren(...list(buttons.source));
  targets.replaceChildren(...list(buttons.target));
  const middle = (place) => height * place + 13;
  map.forEach((row, t) => row.forEach((w, s) => {
    if (w < 0.03) return;
    const line = make("line", { x1: "0", x2: "100%", y1: middle(s),
      y2: middle(t), "stroke-opacity": w });
    lines.push({ line, t, s });
  }));
  svg.setAttribute("height", height * Math.max(rows.length, columns.length));
  svg.replaceChildren(...lines.map(({ line }) => line));
}

// ---- Heat maps -----------------------------------------------------------
function paint(canvas, map) {
  const probe = make("span", { style: "color: var(--heat)" });
  canvas.after(probe);
  const heat = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number);
  probe.remove();
  canvas.width = map[0].length;
  canvas.height = map.length;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  map.flat().forEach((w, i) => {
    image.data.set([heat[0], heat[1], heat[2], 255 * w], 4 * i);
  });
  context.putImageData(image, 0, 0);
}

function drawOverview() {
  const choices = [MEAN, ...Array(heads).keys()];
  const label = (head) => head === MEAN ? MEAN : `head ${head + 1}`;
  const box = $("overview");
  box.style.gridTemplateColumns = `repeat(${heads + 2}, auto)`;
  box.replaceChildren(make("span"),
    ...choices.map((head) => make("span", {}, label(head))));
  for (let layer = 0; layer < layersOf(state.kind); layer++) {
    box.append(make("span", {}, `layer ${layer + 1}`));
    for (const head of choices) {
      const text = `layer ${layer + 1}, ${label(head)}`;
      const canvas = make("canvas", { "aria-hidden": "true" });
      const pressed = state.layer === layer && state.head === head;
      const button = make("button", { type: "button", "aria-label": text,
        "aria-pressed": String(pressed), tabindex: pressed ? 0 : -1 }, canvas);
      onSeen(button, `${KINDS[state.kind][0]}, ${text}`);
      button.addEventListener("click", () => {
        choose({ layer, head });
        for (const other of box.querySelectorAll("button")) {
          if (other.ariaLabel === text) other.focus();
        }
      });
      box.append(button);
      paint(canvas, weights(state.kind, layer, head));
    }
  }
}

function drawMap() {
  const map = weights(state.kind, state.layer, state.head);
  const [rows, columns] = axes(state.kind);
  const table = $("map");
  const head = columns.map((token) =>
    make("th", { scope: "col" }, piece(token)));
  const names = rows.map((token) => make("th", { scope: "row" }, piece(token)));
  const body = map.map((row, t) => make("tr", {}, names[t],
    ...row.map((w, s) => {
      const text = `${rows[t]} attends to ${columns[s]}: ${percent(w)}`;
      const cell = make("td", { tabindex: t + s ? -1 : 0, "aria-label": text,
        style: `--w: ${100 * w}%` }, Math.round(100 * w));
      const mark = (seen) => () => {
        head[s].classList.toggle("seen", seen);
        names[t].classList.toggle("seen", seen);
      };
      onSeen(cell, text, mark(true), mark(false));
      return cell;
    })));
  table.setAttribute("aria-label", `${KINDS[state.kind][0]}, layer ` +
    `${state.layer + 1}, ` +
    (state.head === MEAN ? "mean of the heads" : `head ${state.head + 1}`));
  table.replaceChildren(
    make("thead", {}, make("tr", {}, make("th"), ...head)),
    make("tbody", {}, ...body));
  $("kind-note").textContent = KINDS[state.kind][1];
}

// ---- The search ----------------------------------------------------------
function readTree() {
  const beam = data.beam, steps = [];
  beam.tokens.forEach((tokens, step) => steps.push(tokens.map((token, rank) => {
    if (beam.parents[step][rank] < 0) return null;
    const parent = step ? steps[step - 1][beam.parents[step][rank]] : null;
    const node = { step, rank, token, parent, best: beam.best[step] === rank,
      log: beam.log_probabilities[step][rank], penalty: beam.penalties[step],
      kept: beam.kept[step][rank], ended: beam.ended[step][rank] };
    node.score = node.log / node.penalty;
    node.text = (parent ? parent.text : "") + (node.ended ? "" : token);
    node.fate = !node.kept ? "pruned" : node.ended ? "ended"
      : step + 1 === beam.steps ? "left: it can no longer be among the best" : "kept";
    return node;
  })));
  return steps.flat().filter(Boolean);
}

const nodes = readTree();
const spell = (node) => node.text.replaceAll("▁", " ").trim() || "(no text)";
const describe = (node) => `Step ${node.step + 1}: ${spell(node)}` +
  `${node.ended ? " (end)" : ""}; log-probability ${node.log.toFixed(3)}, ` +
  `penalty ${node.penalty.toFixed(3)}, score ${node.score.toFixed(3)}; ` +
  node.fate + (node.best ? ", on the path of the translation" : "");

function drawTree() {
  const shown = nodes.filter((node) => node.kept || $("pruned").checked);
  const wide = 132, high = 48, box = $("tree");
  const place = (node) => node
    ? [wide * (node.step + 1), high * node.rank] : [0, 0];
  const names = (node) => ["best", "pruned", "ended"].filter((name) =>
    name === "pruned" ? !node.kept : node[name]).join(" ");
  const svg = make("svg", { "aria-hidden": "true" });
  const elements = shown.map((node) => {
    const [x, y] = place(node), [px, py] = place(node.parent);
    const path = make("path", { class: names(node), d: `M${px + 104} ${py + 20}` +
      `C${px + 118} ${py + 20} ${x - 14} ${y + 20} ${x} ${y + 20}` });
    svg.append(path);
    const small = node.ended ? `score ${node.score.toFixed(2)}`
      : node.log.toFixed(2);
    const button = make("button", { type: "button", class: names(node),
      tabindex: -1, "aria-label": describe(node),
      style: `left: ${x}px; top: ${y}px` },
    piece(node.token), make("small", {}, small));
    node.drawn = [path, button];
    const mark = (seen) => () => {
      for (let n = node; n; n = n.parent) {
        for (const part of n.drawn) part.classList.toggle("seen", seen);
      }
    };
    onSeen(button, describe(node), mark(true), mark(false));
    return button;
  });
  elements[0].tabIndex = 0;
  const size = [Math.max(...shown.map((node) => place(node)[0])) + 110,
    Math.max(...shown.map((node) => place(node)[1])) + 44];
  box.style.width = `${size[0]}px`;
  box.style.height = `${size[1]}px`;
  svg.setAttribute("width", size[0]);
  svg.setAttribute("height", size[1]);
  box.replaceChildren(svg, make("span", { class: "root" }, "<s>"), ...elements);
  box.at = (element) => shown[elements.indexOf(element)];
  box.of = (found) => elements[shown.indexOf(found)];
  box.shown = shown;
}

function drawSteps() {
  $("steps").tBodies[0].append(...nodes.map((node) => make("tr",
    { class: node.best ? "best" : null },
    make("td", {}, node.step + 1), make("td", { dir: "auto" }, spell(node)),
    ...[node.log, node.penalty, node.score].map((number) =>
      make("td", {}, number.toFixed(3))),
    make("td", {}, node.fate + (node.best ? ", translation" : "")))));
}

// ---- Wiring --------------------------------------------------------------
function choose(change) {
  Object.assign(state, change);
  const layers = layersOf(state.kind);
  state.layer = Math.min(state.layer, layers - 1);
  [...$("layer").options].forEach((option, i) => {
    option.disabled = i >= layers;
  });
  for (const name of ["target", "layer", "head", "kind"]) {
    $(name).value = state[name];
  }
  if ("target" in change) drawConfidence();
  if (!("kind" in change)) drawAlignment();
  drawOverview();
  drawMap();
}

const numbered = (name, count) =>
  [...Array(count).keys()].map((i) => [i, `${name} ${i + 1}`]);
fill($("target"), data.targets.map((t, i) => [i, t.name]), 0,
  (value) => choose({ target: Number(value) }));
const mostLayers = Math.max(...Object.keys(KINDS).map(layersOf));
fill($("layer"), numbered("Layer", mostLayers), 0,
  (value) => choose({ layer: Number(value) }));
fill($("head"), [[MEAN, "Mean"], ...numbered("Head", heads)], MEAN,
  (value) => choose({ head: value === MEAN ? MEAN : Number(value) }));
fill($("kind"), Object.entries(KINDS).map(([key, [name]]) => [key, name]),
  state.kind, (kind) => choose({ kind }));
$("numbers").addEventListener("change", () =>
  $("map").classList.toggle("numbers", $("numbers").checked));
$("pruned").addEventListener("change", drawTree);
matchMedia("(prefers-color-scheme: dark)")
  .addEventListener("change", drawOverview);

walk($("confidence"), (item, key) => ({
  ArrowLeft: item.previousElementSibling,
  ArrowRight: item.nextElementSibling,
}[key]));
walk($("alignment"), (button, key) => {
  const item = button.parentElement;
  const [sources, , targets] = $("alignment").children;
  const at = [...item.parentElement.children].indexOf(item);
  const beside = ({ children }) =>
    children[Math.min(at, children.length - 1)];
  return {
    ArrowLeft: beside(sources),
    ArrowRight: beside(targets),
    ArrowUp: item.previousElementSibling,
    ArrowDown: item.nextElementSibling,
  }[key]?.firstElementChild;
});
walk($("overview"), (button, key) => {
  const buttons = [...$("overview").querySelectorAll("button")];
  const at = buttons.indexOf(button), columns = heads + 1;
  return {
    ArrowLeft: at % columns ? buttons[at - 1] : null,
    ArrowRight: (at + 1) % columns ? buttons[at + 1] : null,
    ArrowUp: buttons[at - columns],
    ArrowDown: buttons[at + columns],
  }[key];
});
walk($("map"), (cell, key) => {
  const row = cell.parentElement, rows = [...row.parentElement.rows];
  const across = { ArrowLeft: -1, ArrowRight: 1 }[key] || 0;
  const down = { ArrowUp: -1, ArrowDown: 1 }[key] || 0;
  if (!across && !down) return null;
  const to = rows[rows.indexOf(row) + down];
  const found = to && to.cells[cell.cellIndex + across];
  return found && found.tagName === "TD" ? found : null;
});
walk($("tree"), (element, key) => {
  const box = $("tree"), node = box.at(element);
  const find = (test) => box.of(box.shown.find(test));
  const column = box.shown.filter((n) => n.step === node.step);
  const at = column.indexOf(node);
  return {
    ArrowLeft: () => box.of(node.parent),
    ArrowRight: () => find((n) => n.parent === node),
    ArrowUp: () => box.of(column[at - 1]),
    ArrowDown: () => box.of(column[at + 1]),
  }[key]?.();
});

drawSummary();
drawTree();
drawSteps();
choose({ target: 0, layer: data.align_layer });
