const OTHERS = 5; // Other translations that are asked for.
const SHARE = 0.1; // Of attention, below which nothing is said of it.
const state = { sentences: [], chosen: null, sending: null, timer: null };

// ---- Small helpers -------------------------------------------------------
const grouped = (number) => number.toLocaleString("en");
const findPair = (source, target) => state.pairs.find((each) =>
  each.source === source && each.target === target);
const pair = () => findPair($("from").value, $("to").value);
const hasFeature = (name) => pair().features.includes(name);

function complain(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
}

function complainOf(error) {
  if (error.name !== "AbortError") complain(error.message);
}

async function post(path, fields, signal) {
  const { source, target } = pair();
  const body = JSON.stringify({ source, target, ...fields, api_key: $("key").value });
  const headers = { "Content-Type": "application/json" };
  for (;;) {
    const answer = await fetch(path, { method: "POST", signal, body, headers });
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

// ---- Languages -----------------------------------------------------------
function fill(select, codes, value) {
  select.replaceChildren(...codes.map((code) =>
    make("option", { value: code }, state.names[code])));
  if (codes.includes(value)) select.value = value;
}

function fillTargets(value) {
  const pairs = state.pairs.filter(({ source }) => source === $("from").value);
  fill($("to"), pairs.map(({ target }) => target), value);
}

async function start() {
  const [settings, languages] = await Promise.all(
    ["frontend/settings", "languages"].map(async (path) => (await fetch(path)).json()));
  state.pairs = settings.pairs;
  state.limit = settings.charLimit;
  state.atOnce = Math.min(16, settings.batchLimit);
  state.wait = settings.frontendTimeout;
  state.names = Object.fromEntries(languages.map(({ code, name }) => [code, name]));
  $("key-label").hidden = !settings.keyRequired;
  fill($("from"), [...new Set(state.pairs.map((each) => each.source))],
    settings.language.source.code);
  fillTargets(settings.language.target.code);
  for (const [id, event, act] of [
    ["from", "change", () => { fillTargets($("to").value); restart(); }],
    ["swap", "click", swap],
    ["copy", "click", copy],
    ["to", "change", restart],
    ["key", "change", restart],
    ["languages", "submit", (submitted) => submitted.preventDefault()],
    ["text", "input", changed],
  ]) {
    $(id).addEventListener(event, act);
  }
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
  try {
    await navigator.clipboard.writeText($("output").textContent);
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
  $("count").textContent = `${grouped(length)} of ${grouped(state.limit)} characters`;
  $("swap").disabled = !findPair($("to").value, $("from").value);
  state.sending?.abort();
  clearTimeout(state.timer);
  state.timer = setTimeout(() => translate().catch(complainOf), state.wait);
}

async function translate() {
  const { signal } = state.sending = new AbortController();
  complain("");
  $("text").lang = $("from").value;
  $("output").lang = $("to").value;
  if (!$("text").value.trim()) {
    show({ parts: [], places: [] });
    return;
  }
  const answer = await post("sentences", { q: $("text").value }, signal);
  for await (const line of linesOf(answer)) {
    if (signal.aborted) return;
    if (line.error) throw new Error(line.error);
    if (line.parts) show(line); else arrive(line);
  }
  await askWords(signal);
}

// A sentence that was there before keeps its translation until it comes anew.
function show({ parts, places }) {
  const before = new Map(state.sentences.map((each) => [each.source, each]));
  const nodes = [...parts];
  state.sentences = places.map((place) => {
    const source = parts[place];
    const element = make("span", { class: "sentence", role: "button", tabindex: -1,
      "aria-pressed": "false", "aria-controls": "sentence" });
    const sentence = { words: null, taken: false, text: null, ...before.get(source),
      source, element };
    nodes[place] = element;
    drawWords(sentence);
    return sentence;
  });
  $("output").replaceChildren(...nodes);
  drawSummary();
  if (state.sentences.length) state.sentences[0].element.tabIndex = 0;
  choose(state.sentences.find(({ source }) => source === state.chosen?.source) ?? null);
}

function arrive({ sentence: place, text }) {
  const sentence = state.sentences[place];
  if (sentence.taken) return; // Another was chosen for it.
  if (sentence.text !== text) {
    Object.assign(sentence, { text, words: null });
    $("spoken").append(make("p", { lang: $("to").value }, text));
    while ($("spoken").childElementCount > 50) $("spoken").firstChild.remove();
  }
  draw(sentence);
  if (sentence === state.chosen) drawChosen();
}

async function askWords(signal) {
  if (!hasFeature("words")) return;
  for (;;) {
    const some = state.sentences.filter(({ words, text }) => text && !words)
      .slice(0, state.atOnce);
    if (!some.length) return;
    const texts = some.map(({ text }) => text);
    const answer = await post("words",
      { q: some.map(({ source }) => source), translations: texts }, signal);
    (await answer.json()).forEach((words, n) => {
      if (some[n].text !== texts[n]) return;
      some[n].words = words;
      draw(some[n]);
      // Not the others: one of their buttons may have the focus.
      if (some[n] === state.chosen) drawAlignment();
    });
  }
}

// Words of the source that no word of the translation attends to.
const uncoveredIn = (words) => (words?.source ?? []).filter(({ text }, s) =>
  /\p{L}/u.test(text) && words.target.every(({ weights }) => weights[s] < SHARE));

function drawSummary() {
  const text = $("output").textContent;
  const missing = state.sentences.flatMap(({ words }) => uncoveredIn(words))
    .map((word) => word.text);
  $("copy").disabled = !text || state.sentences.some((each) => each.text === null);
  $("output-count").textContent = `${grouped([...text].length)} characters`;
  $("uncovered").hidden = !missing.length;
  $("uncovered").textContent = "Parts of the text may be missing in the " +
    `translation. No word of it is aligned with: ${missing.join(", ")}`;
}

function draw(sentence) {
  drawWords(sentence);
  drawSummary();
}

// Words are drawn apart where their pieces are the text.
function drawWords({ element, text, words, source }) {
  element.classList.toggle("pending", text === null);
  const target = words?.target ?? [];
  if (target.map((word) => (word.space ? " " : "") + word.text).join("") !== text) {
    element.replaceChildren(text ?? source);
    return;
  }
  element.replaceChildren(...target.flatMap((word) => {
    const span = withProbability(make("span", { class: "word" }, word.text), word);
    onSeen(span, describe(words, word));
    return word.space ? [" ", span] : [span];
  }));
}

function withProbability(element, { probability }) {
  element.style.setProperty("--p", `${100 * probability}%`);
  return element;
}

function describe(words, { text, probability, weights }) {
  const seen = weights.map((weight, n) => [words.source[n].text, weight])
    .filter(([, weight]) => weight >= SHARE).sort((a, b) => b[1] - a[1])
    .map(([source, weight]) => `${source} ${percent(weight)}`).join(", ");
  return `${text}: probability ${percent(probability)}, aligned with ` +
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
  $("no-words").hidden = hasFeature("words");
  drawAlignment();
  drawOthers();
}

function drawAlignment() {
  const { words } = state.chosen;
  $("alignment").hidden = !words;
  if (!words) return;
  const missing = uncoveredIn(words);
  const sources = words.source.map((word) =>
    makeButton({ class: missing.includes(word) && "uncovered" }, word.text));
  const targets = words.target.map((word) => withProbability(makeButton(
    { class: "word" }, word.text, make("small", {}, percent(word.probability))), word));
  const light = (chosen, others, weights, text) => {
    chosen.setAttribute("aria-label", text);
    onSeen(chosen, text, () => {
      for (const each of [...sources, ...targets]) {
        each.style.setProperty("--w", 0);
        each.classList.toggle("seen", each === chosen);
      }
      const most = Math.max(...weights, SHARE);
      others.forEach((other, n) => other.style.setProperty("--w", weights[n] / most));
    });
  };
  words.target.forEach((word, t) =>
    light(targets[t], sources, word.weights, describe(words, word)));
  words.source.forEach(({ text }, s) => {
    const weights = words.target.map((word) => word.weights[s]);
    const seen = words.target.filter((_, t) => weights[t] >= SHARE)
      .map((word) => word.text).join(", ");
    light(sources[s], targets, weights,
      `${text}: attended to for ${seen || "no word"}`);
  });
  const [above, below] = $("alignment").querySelectorAll("ol");
  for (const [box, lang, buttons] of
    [[above, $("from").value, sources], [below, $("to").value, targets]]) {
    box.lang = lang;
    box.replaceChildren(...listed(buttons));
    if (buttons.length) buttons[0].tabIndex = 0;
  }
}

async function drawOthers() {
  const sentence = state.chosen;
  const { others } = sentence;
  $("no-others").textContent = !hasFeature("alternatives")
    ? "This model returns one translation only." : others ? "" : "Looking for others …";
  $("others").lang = $("to").value;
  $("others").replaceChildren(...listed((others ?? []).map((text) => {
    const pressed = text === sentence.text;
    const button = makeButton({ tabindex: 0, "aria-pressed": pressed }, text);
    button.addEventListener("click", () => take(sentence, text));
    return button;
  })));
  if (!hasFeature("alternatives") || others || sentence.asked) return;
  sentence.asked = true;
  try {
    const fields = { q: sentence.source, alternatives: OTHERS };
    const answer = await post("translate", fields);
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
  drawChosen();
  $("others").querySelectorAll("button")[sentence.others.indexOf(text)].focus();
  askWords(state.sending.signal).catch(complainOf);
}

// ---- Keys and pointer ----------------------------------------------------
walk($("output"), (from, across, down) => {
  const all = state.sentences.map(({ element }) => element);
  return all.includes(from) && all[all.indexOf(from) + across + down];
});
for (const row of $("alignment").querySelectorAll("ol")) {
  walk(row, (button, across) =>
    across && sibling(button.parentElement, across)?.firstChild);
}
const pick = ({ target }) => {
  const element = target.closest(".sentence");
  const sentence = state.sentences.find((each) => each.element === element);
  if (sentence) choose(sentence);
};
$("output").addEventListener("click", pick);
$("output").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  pick(event);
});
start().catch(complainOf);
