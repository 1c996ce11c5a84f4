const data = JSON.parse($("data").textContent);
const KINDS = {
  encoder_decoder_attention: ["Encoder-decoder attention",
    "A row predicts a subword of the target; columns are the source."],
  encoder_attention: ["Encoder self-attention",
    "A row is a subword of the source, and so is a column."],
  decoder_attention: ["Decoder self-attention, masked",
    "A row predicts a subword of the target; columns are what stands before it."],
};
// A recurrence has no weights.
if (!data.target.decoder_attention) delete KINDS.decoder_attention;
const MEAN = "mean";
const state = { layer: 0, head: MEAN, kind: Object.keys(KINDS)[0] };

// ---- Small helpers -------------------------------------------------------
const makeShape = (tag, attributes, ...children) => complete(
  document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const piece = (text) => make("bdi", {}, text);
const makeRow = (title, text, ...cells) => make("tr", {}, title,
  make("td", { dir: "auto" }, text), ...cells.map((cell) => make("td", {}, cell)));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

// ---- What is shown -------------------------------------------------------
const { target } = data;
const mapsOf = (kind) => (kind === "encoder_attention" ? data : target)[kind];
const layersOf = (kind) => mapsOf(kind).length;
const heads = data.encoder_attention[0].length;

function weights(kind, layer, head) {
  const maps = mapsOf(kind)[layer];
  if (head !== MEAN) return maps[head];
  return maps[0].map((row, t) => row.map((_, s) =>
    sum(maps.map((map) => map[t][s])) / heads));
}

function axes(kind) {
  const source = data.source.tokens, { tokens } = target;
  if (kind === "encoder_attention") return [source, source];
  if (kind === "encoder_decoder_attention") return [tokens, source];
  return [tokens, ["<s>", ...tokens.slice(0, -1)]];
}

function drawSummary() {
  const title = (text) => make("th", { scope: "row" }, text);
  $("summary").tBodies[0].append(
    makeRow(title("Source"), data.source.text, "–", "–", data.source.pieces),
    makeRow(title("Translation"), target.text, target.score.toFixed(3),
      target.log_probability.toFixed(3), target.pieces));
  $("notes").append(...listed(data.notes));
}

function drawConfidence() {
  $("confidence").append(...target.tokens.map((token, t) => {
    const found = target.token_log_probabilities[t], p = Math.exp(found);
    const text = `${token}: probability ${percent(p)}, log-probability ` +
      found.toFixed(3);
    const item = make("li", { class: "word", tabindex: t ? -1 : 0, "aria-label": text,
      style: `--p: ${100 * p}%` }, piece(token), make("small", {}, percent(p)));
    onSeen(item, text);
    return item;
  }));
}

// ---- Alignment -----------------------------------------------------------
function drawAlignment() {
  const kind = "encoder_decoder_attention";
  const map = weights(kind, Math.min(state.layer, layersOf(kind) - 1), state.head);
  const [rows, columns] = axes(kind);
  const height = 30, lines = [];
  let pressed = null;
  const show = (chosen) => {
    for (const { line, ends } of lines) {
      line.classList.toggle("faint", chosen !== null && !ends.includes(chosen));
    }
  };
  const button = (token, verb, others, seen) => {
    const most = others.map((other, i) => [other, seen[i]])
      .filter(([, w]) => w >= 0.05).sort((a, b) => b[1] - a[1])
      .map(([other, w]) => `${other} ${percent(w)}`).join(", ");
    const text = `${token} ${verb} ${most || "nothing above 5 %"}`;
    const element = makeButton({ "aria-pressed": "false", "aria-label": text },
      piece(token));
    onSeen(element, text, () => show(element), () => show(pressed));
    element.addEventListener("click", () => {
      pressed?.setAttribute("aria-pressed", "false");
      pressed = pressed === element ? null : element;
      pressed?.setAttribute("aria-pressed", "true");
      show(pressed);
    });
    return element;
  };
  const ofSource = columns.map((token, s) =>
    button(token, "is attended to for", rows, map.map((row) => row[s])));
  const ofTarget = rows.map((token, t) => button(token, "attends to", columns, map[t]));
  ofSource[0].tabIndex = 0;
  const middle = (place) => height * place + 13;
  map.forEach((row, t) => row.forEach((w, s) => {
    if (w < 0.03) return;
    const line = makeShape("line", { x1: "0", x2: "100%", y1: middle(s), y2: middle(t),
      "stroke-opacity": w });
    lines.push({ line, ends: [ofSource[s], ofTarget[t]] });
  }));
  const [sources, svg, targets] = $("alignment").children;
  sources.replaceChildren(...listed(ofSource));
  targets.replaceChildren(...listed(ofTarget));
  svg.setAttribute("height", height * Math.max(rows.length, columns.length));
  svg.replaceChildren(...lines.map(({ line }) => line));
}

// ---- Heat maps -----------------------------------------------------------
function paint(canvas, map) {
  const heat = getComputedStyle(canvas).color.match(/[\d.]+/g).map(Number);
  canvas.width = map[0].length;
  canvas.height = map.length;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  map.flat().forEach((w, i) => image.data.set([...heat.slice(0, 3), 255 * w], 4 * i));
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
      const button = makeButton({ "aria-label": text, "aria-pressed": String(pressed),
        tabindex: pressed ? 0 : -1 }, canvas);
      onSeen(button, `${KINDS[state.kind][0]}, ${text}`);
      button.addEventListener("click", () => {
        choose({ layer, head });
        box.querySelector(`[aria-label="${text}"]`).focus();
      });
      box.append(button);
      paint(canvas, weights(state.kind, layer, head));
    }
  }
}

function drawMap() {
  const { kind, layer, head } = state;
  const map = weights(kind, layer, head);
  const [rows, columns] = axes(kind);
  const titles = (scope, tokens) => tokens.map((token) =>
    make("th", { scope }, piece(token)));
  const across = titles("col", columns), down = titles("row", rows);
  const body = map.map((row, t) => make("tr", {}, down[t], ...row.map((w, s) => {
    const text = `${rows[t]} attends to ${columns[s]}: ${percent(w)}`;
    const cell = make("td", { tabindex: t + s ? -1 : 0, "aria-label": text,
      style: `--w: ${100 * w}%` }, Math.round(100 * w));
    const mark = (seen) => () => {
      for (const title of [across[s], down[t]]) title.classList.toggle("seen", seen);
    };
    onSeen(cell, text, mark(true), mark(false));
    return cell;
  })));
  $("map").setAttribute("aria-label", `${KINDS[kind][0]}, layer ${layer + 1}, ` +
    (head === MEAN ? "mean of the heads" : `head ${head + 1}`));
  $("map").replaceChildren(
    make("thead", {}, make("tr", {}, make("th"), ...across)),
    make("tbody", {}, ...body));
  $("kind-note").textContent = KINDS[kind][1];
}

// ---- The search ----------------------------------------------------------
function readTree() {
  const beam = data.beam, steps = [];
  beam.tokens.forEach((tokens, step) => steps.push(tokens.map((token, rank) => {
    if (beam.parents[step][rank] < 0) return null;
    const parent = step ? steps[step - 1][beam.parents[step][rank]] : null;
    const node = { step, rank, token, parent, best: beam.best[step] === rank,
      log: beam.log_probabilities[step][rank], penalty: beam.penalties[step],
      pruned: !beam.kept[step][rank], ended: beam.ended[step][rank] };
    node.score = node.log / node.penalty;
    node.text = (parent ? parent.text : "") + (node.ended ? "" : token);
    node.fate = node.pruned ? "pruned" : node.ended ? "ended"
      : step + 1 === beam.steps ? "left: it can no longer be among the best" : "kept";
    return node;
  })));
  return steps.flat().filter(Boolean);
}

const nodes = readTree();
let shown = [];
const spell = (node) => node.text.replaceAll("▁", " ").trim() || "(no text)";
const describe = (node) => `Step ${node.step + 1}: ${spell(node)}` +
  `${node.ended ? " (end)" : ""}; log-probability ${node.log.toFixed(3)}, ` +
  `penalty ${node.penalty.toFixed(3)}, score ${node.score.toFixed(3)}; ` +
  node.fate + (node.best ? ", on the path of the translation" : "");

function drawTree() {
  shown = nodes.filter((node) => !node.pruned || $("pruned").checked);
  const wide = 132, high = 48, box = $("tree");
  const place = (node) => node ? [wide * (node.step + 1), high * node.rank] : [0, 0];
  for (const node of shown) {
    const [x, y] = place(node), [px, py] = place(node.parent);
    const names = ["best", "pruned", "ended"].filter((name) => node[name]).join(" ");
    node.path = makeShape("path", { class: names, d: `M${px + 104} ${py + 20}` +
      `C${px + 118} ${py + 20} ${x - 14} ${y + 20} ${x} ${y + 20}` });
    const small = node.ended ? `score ${node.score.toFixed(2)}` : node.log.toFixed(2);
    node.button = makeButton({ class: names, "aria-label": describe(node),
      style: `left: ${x}px; top: ${y}px` },
    piece(node.token), make("small", {}, small));
    const mark = (seen) => () => {
      for (let n = node; n; n = n.parent) {
        for (const part of [n.path, n.button]) part.classList.toggle("seen", seen);
      }
    };
    onSeen(node.button, describe(node), mark(true), mark(false));
  }
  shown[0].button.tabIndex = 0;
  const width = Math.max(...shown.map((node) => place(node)[0])) + 110;
  const height = Math.max(...shown.map((node) => place(node)[1])) + 44;
  box.style = `width: ${width}px; height: ${height}px`;
  box.replaceChildren(
    makeShape("svg", { width, height, "aria-hidden": "true" },
      ...shown.map((n) => n.path)),
    make("span", { class: "root" }, "<s>"), ...shown.map((n) => n.button));
}

function drawSteps() {
  for (const node of nodes) {
    const row = makeRow(make("td", {}, node.step + 1), spell(node),
      ...[node.log, node.penalty, node.score].map((number) => number.toFixed(3)),
      node.fate + (node.best ? ", translation" : ""));
    row.classList.toggle("best", node.best);
    $("steps").tBodies[0].append(row);
  }
}

// ---- Selections ----------------------------------------------------------
function choose(change) {
  Object.assign(state, change);
  const layers = layersOf(state.kind);
  state.layer = Math.min(state.layer, layers - 1);
  [...$("layer").options].forEach((option, i) => { option.disabled = i >= layers; });
  for (const name of Object.keys(state)) $(name).value = state[name];
  if (!("kind" in change)) drawAlignment();
  drawOverview();
  drawMap();
}

const numbered = (name, count) =>
  [...Array(count).keys()].map((i) => [i, `${name} ${i + 1}`]);
const options = {
  layer: numbered("Layer", Math.max(...Object.keys(KINDS).map(layersOf))),
  head: [[MEAN, "Mean"], ...numbered("Head", heads)],
  kind: Object.entries(KINDS).map(([key, [name]]) => [key, name]),
};
for (const [name, values] of Object.entries(options)) {
  const select = $(name);
  select.append(...values.map(([value, text]) => make("option", { value }, text)));
  select.addEventListener("change", () =>
    choose({ [name]: values[select.selectedIndex][0] }));
}
$("numbers").addEventListener("change", () =>
  $("map").classList.toggle("numbers", $("numbers").checked));
$("pruned").addEventListener("change", drawTree);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawOverview);

// ---- Keys ----------------------------------------------------------------
walk($("confidence"), (item, across) => across && sibling(item, across));
walk($("alignment"), (button, across, down) => {
  const item = button.parentElement;
  const [sources, , targets] = $("alignment").children;
  const { children } = across < 0 ? sources : targets;
  const to = down ? sibling(item, down)
    : children[Math.min(indexOf(item), children.length - 1)];
  return to?.firstElementChild;
});
walk($("overview"), (button, across, down) => {
  const buttons = [...$("overview").querySelectorAll("button")];
  const at = buttons.indexOf(button), columns = heads + 1;
  const column = at % columns + across;
  return column >= 0 && column < columns && buttons[at + across + columns * down];
});
walk($("map"), (cell, across, down) => {
  const row = down ? sibling(cell.parentElement, down) : cell.parentElement;
  const to = row?.cells[cell.cellIndex + across];
  return to?.tagName === "TD" && to;
});
walk($("tree"), (button, across, down) => {
  const node = shown.find((each) => each.button === button);
  const column = shown.filter((each) => each.step === node.step);
  const to = down ? column[column.indexOf(node) + down]
    : across < 0 ? node.parent : shown.find((each) => each.parent === node);
  return to?.button;
});

drawSummary();
drawConfidence();
drawTree();
drawSteps();
// The last but one aligns best (Garg et al., 2019); of two, the last.
const layers = layersOf("encoder_decoder_attention");
choose({ layer: Math.max(Math.min(1, layers - 1), layers - 2) });
