"use strict";
const $ = (id) => document.getElementById(id);
const PAUSE = 500; // Milliseconds without a key before a text is sent.
const OTHERS = 5; // Other translations that are asked for.
const SHARE = 0.1; // Of attention, below which nothing is said of it.
const state = { pairs: [], names: {}, limit: 0, wait: PAUSE,
  sentences: [], chosen: null, sending: null, timer: null };

// ---- Small helpers -------------------------------------------------------
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
const percent = (p) => (100 * p).toFixed(p > 0 && p < 0.1 ? 1 : 0) + " %";
const announce = (text) => { $("status").textContent = text; };
const pair = () => state.pairs.find((each) =>
  each.source === $("from").value && each.target === $("to").value);
const hasFeature = (name) => pair().features.includes(name);

function complain(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
}

async function post(path, fields, signal) {
  const { source, target } = pair();
  const body = JSON.stringify({ source, target, ...fields,
    api_key: $("key").value });
  for (;;) {
    const answer = await fetch(path, { method: "POST", signal, body,
      headers: { "Content-Type": "application/json" } });
    if (answer.status !== 429) {
      complain("");
      if (answer.ok) return answer;
      throw new Error((await answer.json()).error);
    }
    const seconds = Number(answer.headers.get("Retry-After")) || 1;
    complain(`The server is busy. Next request in ${seconds} s.`);
    await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
    signal?.throwIfAborted();
  }
}

async function* linesOf(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
}

// One stop for Tab; the arrow keys walk on from there.
function walk(box, next) {
  box.addEventListener("keydown", (event) => {
    const to = next(event.target, event.key);
    if (!to) return;
    event.preventDefault();
    for (const stop of box.querySelectorAll("[tabindex='0']")) {
      stop.tabIndex = -1;
    }
    to.tabIndex = 0;
    to.focus();
  });
}

function step(all, from, key, keys) {
  const at = all.indexOf(from);
  const by = keys[key];
  return at < 0 || by === undefined ? null : all[at + by] ?? null;
}

// ---- Languages -----------------------------------------------------------
function fill(select, codes, value) {
  const options = codes.map((code) =>
    make("option", { value: code }, state.names[code]));
  select.replaceChildren(...options);
  if (codes.includes(value)) select.value = value;
}

function fillTargets(value) {
  const targets = state.pairs.filter(({ source }) =>
    source === $("from").value).map(({ target }) => target);
  fill($("to"), targets, value);
}

async function start() {
  const [settings, languages] = await Promise.all(
    ["frontend/settings", "languages"].map(async (path) =>
      (await fetch(path)).json()));
  state.pairs = settings.pairs;
  state.limit = settings.charLimit;
  state.atOnce = Math.min(16, settings.batchLimit);
  state.wait = settings.frontendTimeout;
  state.names = Object.fromEntries(languages.map(({ code, name }) =>
    [code, name]));
  $("key-label").hidden = !settings.keyRequired;
  const { source, target } = settings.language;
  fill($("from"), [...new Set(state.pairs.map((each) => each.source))],
    source.code);
  fillTargets(target.code);
  $("from").addEventListener("change", () => {
    fillTargets($("to").value);
    restart();
  });
  $("swap").addEventListener("click", swap);
  $("copy").addEventListener("click", copy);
  $("to").addEventListener("change", restart);
  $("key").addEventListener("change", restart);
  $("languages").addEventListener("submit", (event) => event.preventDefault());
  $("text").addEventListener("input", changed);
  changed();
}

// The translation becomes the text.
function swap() {
  const [source, target] = [$("to").value, $("from").value];
  const text = $("output").textContent;
  $("from").value = source;
  fillTargets(target);
  if (state.sentences.length) $("text").value = text;
  restart();
}

async function copy() {
  const text = $("output").textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch { // A page without TLS has no clipboard.
    getSelection().selectAllChildren($("output"));
    document.execCommand("copy");
  }
  announce("The translation is copied.");
}

// Another pair: nothing of before holds.
function restart() {
  state.sentences = [];
  choose(null);
  changed();
}

// ---- Translation ---------------------------------------------------------
function changed() {
  const length = [...$("text").value].length;
  const most = state.limit.toLocaleString("en");
  $("count").textContent =
    `${length.toLocaleString("en")} of ${most} characters`;
  $("swap").disabled = !state.pairs.some((each) =>
    each.source === $("to").value && each.target === $("from").value);
  state.sending?.abort();
  clearTimeout(state.timer);
  state.timer = setTimeout(translate, state.wait);
}

async function translate() {
  const sending = state.sending = new AbortController();
  complain("");
  $("text").lang = $("from").value;
  $("output").lang = $("to").value;
  if (!$("text").value.trim()) {
    show({ parts: [], places: [] });
    return;
  }
  try {
    const answer = await post("sentences", { q: $("text").value },
      sending.signal);
    for await (const line of linesOf(answer)) {
      if (sending.signal.aborted) return;
      if (line.error) throw new Error(line.error);
      if (line.parts) show(line); else arrive(line);
    }
    await askWords(sending);
  } catch (error) {
    if (error.name !== "AbortError") complain(error.message);
  }
}

// A sentence that was there before keeps its translation until it comes anew.
function show({ parts, places }) {
  const before = new Map(state.sentences.map((each) => [each.source, each]));
  const nodes = [...parts];
  state.sentences = places.map((place) => {
    const old = before.get(parts[place]);
    const sentence = { words: null, taken: false, text: null, ...old,
      source: parts[place],
      element: make("span", { class: "sentence", role: "button",
        tabindex: -1, "aria-pressed": "false", "aria-controls": "sentence" }) };
    nodes[place] = sentence.element;
    drawWords(sentence);
    return sentence;
  });
  $("output").replaceChildren(...nodes);
  drawSummary();
  if (state.sentences.length) state.sentences[0].element.tabIndex = 0;
  const chosen = state.sentences.find(({ source }) =>
    source === state.chosen?.source);
  choose(chosen ?? null);
}

function arrive({ sentence: place, text, truncated }) {
  const sentence = state.sentences[place];
  if (sentence.taken) return; // Another was chosen for it.
  if (sentence.text !== text) {
    Object.assign(sentence, { text, words: null });
    $("spoken").append(make("p", { lang: $("to").value }, text));
    while ($("spoken").childElementCount > 50) $("spoken").firstChild.remove();
  }
  sentence.truncated = truncated;
  draw(sentence);
  if (sentence === state.chosen) drawChosen();
}

async function askWords(sending) {
  if (!hasFeature("words")) return;
  for (;;) {
    const some = state.sentences.filter(({ words, text }) =>
      text && !words).slice(0, state.atOnce);
    if (!some.length) return;
    const texts = some.map(({ text }) => text);
    const answer = await post("words", { q: some.map(({ source }) => source),
      translations: texts }, sending.signal);
    (await answer.json()).forEach((words, n) => {
      if (some[n].text !== texts[n]) return;
      some[n].words = words;
      draw(some[n]);
      // Not the others: one of their buttons may have the focus.
      if (some[n] === state.chosen) drawChosenWords();
    });
  }
}

// Words of the source that no word of the translation attends to.
function uncoveredIn(words) {
  const sources = words?.source ?? [];
  return sources.filter(({ text }, s) => /\p{L}/u.test(text) &&
    words.target.every(({ weights }) => weights[s] < SHARE));
}

function drawSummary() {
  const text = $("output").textContent;
  const missing = state.sentences.flatMap(({ words }) => uncoveredIn(words))
    .map((word) => word.text);
  $("copy").disabled = !text ||
    state.sentences.some((sentence) => sentence.text === null);
  $("output-count").textContent =
    `${[...text].length.toLocaleString("en")} characters`;
  $("uncovered").hidden = !missing.length;
  $("uncovered").textContent = "Parts of the text may be missing in the " +
    `translation. No word of it is aligned with: ${missing.join(", ")}`;
}

const withSpace = ({ space, text }) => (space ? " " : "") + text;

// Words are drawn apart where their pieces are the text.
function draw(sentence) {
  drawWords(sentence);
  drawSummary();
}

function drawWords(sentence) {
  const { element, text, words, source } = sentence;
  element.classList.toggle("pending", text === null);
  const target = words?.target ?? [];
  if (target.map(withSpace).join("") !== text) {
    element.replaceChildren(text ?? source);
    return;
  }
  element.replaceChildren(...target.flatMap((word, place) => {
    const span = make("span", { class: "word" }, word.text);
    span.style.setProperty("--p", percentOf(word));
    span.addEventListener("mouseenter", () => announce(describe(words, place)));
    return word.space ? [" ", span] : [span];
  }));
}

const percentOf = ({ probability }) => `${100 * probability}%`;

function describe(words, place) {
  const word = words.target[place];
  const seen = word.weights.map((weight, n) => [words.source[n].text, weight])
    .filter(([, weight]) => weight >= SHARE).sort((a, b) => b[1] - a[1])
    .map(([text, weight]) => `${text} ${percent(weight)}`).join(", ");
  return `${word.text}: probability ${percent(word.probability)}, aligned with ` +
    (seen || "nothing in particular");
}

// ---- One sentence --------------------------------------------------------
function choose(sentence) {
  state.chosen = sentence;
  $("sentence").hidden = !sentence;
  for (const { element } of state.sentences) {
    element.setAttribute("aria-pressed", element === sentence?.element);
  }
  if (sentence) drawChosen();
}

function drawChosen() {
  const { source } = state.chosen;
  $("no-words").hidden = hasFeature("words");
  drawChosenWords();
  $("report").hidden = !hasFeature("report");
  const fields = { q: source, api_key: $("key").value,
    source: $("from").value, target: $("to").value };
  for (const [name, value] of Object.entries(fields)) {
    $("report").elements[name].value = value;
  }
  drawOthers();
}

function drawChosenWords() {
  const { words } = state.chosen;
  $("alignment").hidden = !words;
  if (words) drawAlignment(words);
}

function drawAlignment(words) {
  const [above, below] = $("alignment").querySelectorAll("ol");
  above.lang = $("from").value;
  below.lang = $("to").value;
  const missing = uncoveredIn(words);
  const buttons = {
    source: words.source.map((word) => make("button", { type: "button",
      tabindex: -1, class: missing.includes(word) && "uncovered" },
    word.text)),
    target: words.target.map((word) => {
      const button = make("button",
        { type: "button", tabindex: -1, class: "word" }, word.text,
        make("small", {}, percent(word.probability)));
      button.style.setProperty("--p", percentOf(word));
      return button;
    }),
  };
  const light = (chosen, others, weights, text) => {
    chosen.setAttribute("aria-label", text);
    for (const event of ["mouseenter", "focus"]) {
      chosen.addEventListener(event, () => {
        for (const button of [...buttons.source, ...buttons.target]) {
          button.style.setProperty("--w", 0);
          button.classList.toggle("seen", button === chosen);
        }
        const most = Math.max(...weights, SHARE);
        others.forEach((button, n) =>
          button.style.setProperty("--w", weights[n] / most));
        announce(text);
      });
    }
  };
  words.target.forEach(({ weights }, t) => light(buttons.target[t],
    buttons.source, weights, describe(words, t)));
  words.source.forEach(({ text }, s) => {
    const weights = words.target.map((word) => word.weights[s]);
    const seen = words.target.filter((_, t) => weights[t] >= SHARE)
      .map((word) => word.text).join(", ");
    light(buttons.source[s], buttons.target, weights,
      `${text}: attended to for ${seen || "no word"}`);
  });
  for (const [box, all] of [[above, buttons.source], [below, buttons.target]]) {
    box.replaceChildren(...all.map((button) => make("li", {}, button)));
    if (all.length) all[0].tabIndex = 0;
  }
}

async function drawOthers() {
  const sentence = state.chosen;
  $("no-others").textContent = !hasFeature("alternatives")
    ? "This model returns one translation only."
    : sentence.others ? "" : "Looking for others …";
  $("others").lang = $("to").value;
  $("others").replaceChildren(...(sentence.others ?? []).map((text) => {
    const button = make("button", { type: "button",
      "aria-pressed": text === sentence.text }, text);
    button.addEventListener("click", () => take(sentence, text));
    return make("li", {}, button);
  }));
  if (!hasFeature("alternatives") || sentence.others || sentence.asked) return;
  sentence.asked = true;
  try {
    const answer = await post("translate",
      { q: sentence.source, alternatives: OTHERS });
    const { translatedText, alternatives } = await answer.json();
    sentence.others = [translatedText, ...alternatives];
  } catch (error) {
    sentence.others = [];
    complain(error.message);
  }
  if (sentence === state.chosen) drawOthers();
}

function take(sentence, text) {
  Object.assign(sentence, { text, words: null, taken: true });
  draw(sentence);
  const at = sentence.others.indexOf(text);
  drawChosen();
  $("others").querySelectorAll("button")[at].focus();
  askWords(state.sending).catch((error) => {
    if (error.name !== "AbortError") complain(error.message);
  });
}

// ---- Keys and pointer ----------------------------------------------------
const elements = () => state.sentences.map(({ element }) => element);
const SENTENCE_KEYS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1,
  ArrowDown: 1 };
walk($("output"), (from, key) => step(elements(), from, key, SENTENCE_KEYS));
for (const row of $("alignment").querySelectorAll("ol")) {
  walk(row, (from, key) => step([...row.querySelectorAll("button")], from, key,
    { ArrowLeft: -1, ArrowRight: 1 }));
}
const pick = (target) => {
  const element = target.closest(".sentence");
  const sentence = state.sentences.find((each) => each.element === element);
  if (sentence) choose(sentence);
};
$("output").addEventListener("click", (event) => pick(event.target));
$("output").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  pick(event.target);
});
start().catch((error) => complain(error.message));
