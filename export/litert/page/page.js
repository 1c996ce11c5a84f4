/** Connects the page to the translator. */

import { Translator } from "./translator.js";

const $ = (id) => document.getElementById(id);
const report = (text) => {
  $("status").textContent = text;
};

async function translateLines(translator) {
  const options = { beam_size: $("beams").valueAsNumber };
  const translations = [];
  let wasCut = false;
  for (const line of $("text").value.split("\n")) {
    const { text, truncated } = await translator.translate(line, options);
    translations.push(text);
    wasCut ||= truncated;
    $("output").textContent = translations.join("\n");
    // Lets the browser draw.
    await new Promise((resolve) => setTimeout(resolve));
  }
  report(wasCut ? "A line or its translation is too long, and was cut." : "");
}

try {
  const translator = await Translator.load("model/");
  $("beams").value = translator.settings.search.beam_size;
  $("translate").disabled = false;
  report("");
  $("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    $("translate").disabled = true;
    report("Translating…");
    try {
      await translateLines(translator);
    } catch (error) {
      report(String(error));
    }
    $("translate").disabled = false;
  });
} catch (error) {
  report(String(error));
}
