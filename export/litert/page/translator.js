/** Translates in a browser with an export for LiteRT, as `litert_translator`.
 *
 *     const translator = await Translator.load("model/");
 *     const { text } = await translator.translate("The cat sees a dog.");
 */

import { getGlobalLiteRtPromise, loadLiteRt } from "./litert/core.js";
import { Model } from "./model.js";
import { search } from "./search.js";
import { SentencePiece } from "./sentencepiece.js";

async function read(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: HTTP ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

export class Translator {
  /** Loads LiteRT, and a version of an export.
   *
   * @param {string} folder Its address, which ends with "/".
   */
  static async load(folder) {
    await (getGlobalLiteRtPromise() ??
      loadLiteRt(new URL("litert/", import.meta.url).href));
    const settings = JSON.parse(
      new TextDecoder().decode(await read(folder + "config.json")),
    );
    const names = [
      "encoder.tflite",
      "step.tflite",
      settings.tokenizer,
      settings.target_tokenizer,
    ];
    const [encoder, step, source, target] = await Promise.all(
      names.map((name) => read(folder + name)),
    );
    const translator = new Translator();
    translator.settings = settings;
    translator.model = new Model(encoder, step, settings);
    translator.source = new SentencePiece(source);
    translator.target = new SentencePiece(target);
    return translator;
  }

  /** Translates a sentence; one at a time.
   *
   * @param {string} text A sentence; the translation of an empty one is "".
   * @param {object} options Replaces options of the search, as `beam_size`.
   * @returns `{text, score, truncated}`: the translation, its log-probability
   *     over the length penalty, and whether the text or the translation was
   *     cut at the model's limit.
   */
  async translate(text, options = {}) {
    const { eos_id: eosId, max_source_length: limit } = this.settings;
    const [before, prefix] = findTags(this.settings.languages);
    const most = limit - before.length - 1;
    const ids = this.source.encode(text.replaceAll("\0", " "));
    if (!ids.length) return { text: "", score: 0, truncated: false };
    const source = [...before, ...ids.slice(0, most), eosId];
    const found = await search(this.model, source, {
      ...this.settings.search,
      ...options,
      prefix,
    });
    return {
      text: this.target.decode(found.ids.slice(prefix.length)),
      score: found.score,
      truncated: found.truncated || ids.length > most,
    };
  }
}

/** Returns the tags before a source, and those that translations begin with.
 *
 * @param languages `null`, or the tags of one source and of one target language.
 */
function findTags(languages) {
  if (!languages) return [[], []];
  const before = Object.values(languages.source_tags);
  const target = Object.values(languages.target_tags);
  return languages.is_forced ? [before, target] : [[...before, ...target], []];
}
