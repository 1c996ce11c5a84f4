/** Encodes and decodes text with a SentencePiece model (.model).
 *
 * Byte-pair encodings and unigram models, with the normalization that the file
 * holds. The ids are those of the sentencepiece library.
 */

// Types of a piece, and of a model.
const [NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE] = [1, 2, 3, 4, 5, 6];
const [UNIGRAM, BPE] = [1, 2];
const UNKNOWN_PENALTY = 10;
const SPACE = "\u2581";
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const strictDecoder = new TextDecoder("utf-8", {
  ignoreBOM: true,
  fatal: true,
});

/** Returns the fields of a protocol buffer: `[number, value]` each. */
function* fieldsOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const varint = () => {
    let value = 0,
      scale = 1,
      byte;
    do {
      byte = bytes[at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte & 128);
    return value;
  };
  while (at < bytes.length) {
    const key = varint(),
      kind = key & 7;
    if (kind === 0) {
      yield [key >> 3, varint()];
    } else if (kind === 2) {
      const size = varint();
      yield [key >> 3, bytes.subarray(at, (at += size))];
    } else if (kind === 5) {
      yield [key >> 3, view.getFloat32(at, true)];
      at += 4;
    } else {
      at += 8;
    }
  }
}

/** Returns `[length, value]` of the longest prefix in a trie of Darts. */
function longestPrefix(trie, bytes, start) {
  const offset = (unit) => (unit >>> 10) << ((unit & 512) >>> 6);
  let found = [0, 0],
    node = offset(trie[0]);
  for (let i = start; i < bytes.length; i++) {
    node ^= bytes[i];
    const unit = trie[node];
    if ((unit & 0x800000ff) !== bytes[i]) break;
    node ^= offset(unit);
    if (unit & 256) found = [i + 1 - start, trie[node] & 0x7fffffff];
  }
  return found;
}

export class SentencePiece {
  /** @param {Uint8Array} bytes The contents of a .model file. */
  constructor(bytes) {
    this.pieces = [];
    let trainer = {},
      normalizer = {};
    for (const [number, value] of fieldsOf(bytes)) {
      if (number > 3) continue;
      const fields = Object.fromEntries(fieldsOf(value));
      if (number === 1) {
        const { 1: piece, 2: score = 0, 3: type = NORMAL } = fields;
        this.pieces.push({ piece: decoder.decode(piece), score, type });
      } else if (number === 2) trainer = fields;
      else normalizer = fields;
    }
    this.type = trainer[3] ?? UNIGRAM;
    if (![UNIGRAM, BPE].includes(this.type) || trainer[24]) {
      throw new Error("A tokenizer must be a byte-pair encoding or a unigram model.");
    }
    this.unknownText = trainer[44] ? decoder.decode(trainer[44]) : " \u2047 ";
    this.addsPrefix = normalizer[3] ?? 1;
    this.removesSpaces = normalizer[4] ?? 1;
    this.space = (normalizer[5] ?? 1) ? SPACE : " ";
    this.readCharacterMap(normalizer[2]);
    this.ids = new Map();
    this.byteIds = [];
    this.symbols = [];
    this.longest = 0;
    this.lowest = Infinity;
    for (const [id, { piece, type, score }] of this.pieces.entries()) {
      if (type === NORMAL) this.lowest = Math.min(this.lowest, score);
      if (type === UNKNOWN) this.unknown = id;
      else if (type === BYTE) this.byteIds[parseInt(piece.slice(3, 5), 16)] = id;
      else if (type !== CONTROL) {
        this.ids.set(piece, id);
        this.longest = Math.max(this.longest, piece.length);
        if (type === USER_DEFINED) this.symbols.push(piece);
      }
    }
    this.symbols.sort((a, b) => b.length - a.length);
  }

  readCharacterMap(blob) {
    if (!blob?.length) return;
    const copy = blob.slice();
    const size = new DataView(copy.buffer).getUint32(0, true);
    this.trie = new Uint32Array(copy.buffer.slice(4, 4 + size));
    this.replacements = copy.subarray(4 + size);
  }

  /** Returns the ids of a text. */
  encode(text) {
    const normal = this.normalize(text);
    const found =
      this.type === BPE ? this.mergePairs(normal) : this.findBestPath(normal);
    const ids = [];
    let wasUnknown = false;
    for (const [piece, id] of found) {
      if (id !== undefined) ids.push(id);
      else if (this.byteIds.length) {
        for (const byte of encoder.encode(piece)) ids.push(this.byteIds[byte]);
      } else if (!wasUnknown) ids.push(this.unknown);
      wasUnknown = id === undefined;
    }
    return ids;
  }

  /** Returns the user-defined symbol that stands at a position, or "". */
  symbolAt(text, start) {
    return this.symbols.find((symbol) => text.startsWith(symbol, start)) ?? "";
  }

  normalize(text) {
    if (!text) return "";
    text = text.toWellFormed();
    const bytes = encoder.encode(text);
    let result = this.addsPrefix ? this.space : "";
    let isAfterSpace = this.removesSpaces;
    for (let i = 0, start = 0; i < bytes.length;) {
      let part = this.symbolAt(text, start),
        length = encoder.encode(part).length;
      if (!part && this.trie) {
        let place;
        [length, place] = longestPrefix(this.trie, bytes, i);
        if (length) {
          const end = this.replacements.indexOf(0, place);
          part = decoder.decode(this.replacements.subarray(place, end));
        }
      }
      if (!length) {
        part = String.fromCodePoint(text.codePointAt(start));
        length = encoder.encode(part).length;
      }
      start += decoder.decode(bytes.subarray(i, i + length)).length;
      i += length;
      if (isAfterSpace) part = part.replace(/^ +/, "");
      if (part) {
        result += part.replaceAll(" ", this.space);
        isAfterSpace = this.removesSpaces && part.endsWith(" ");
      }
    }
    if (this.removesSpaces)
      while (result.endsWith(this.space)) result = result.slice(0, -this.space.length);
    return result;
  }

  /** Merges the pair of the highest score until no pair is a piece. */
  mergePairs(text) {
    const nodes = [];
    for (let i = 0; i < text.length;) {
      const symbol = this.symbolAt(text, i);
      const piece = symbol || String.fromCodePoint(text.codePointAt(i));
      nodes.push({ piece, isFixed: Boolean(symbol) });
      i += piece.length;
    }
    const halves = new Map();
    const joined = (i) => {
      const [left, right] = [nodes[i], nodes[i + 1]];
      if (!left || !right || left.isFixed || right.isFixed) return;
      const found = this.pieces[this.ids.get(left.piece + right.piece)];
      if (found?.type === UNUSED) halves.set(found.piece, [left.piece, right.piece]);
      return found;
    };
    // The piece that each node and the next one are, if they are one.
    const pairs = nodes.map((_, i) => joined(i));
    for (;;) {
      let best;
      pairs.forEach((pair, i) => {
        if (pair && !(pair.score <= pairs[best]?.score)) best = i;
      });
      if (best === undefined) break;
      nodes[best].piece = pairs[best].piece;
      nodes.splice(best + 1, 1);
      pairs.splice(best + 1, 1);
      if (best) pairs[best - 1] = joined(best - 1);
      pairs[best] = joined(best);
    }
    const split = (piece) => {
      const id = this.ids.get(piece);
      if (this.pieces[id]?.type !== UNUSED) return [[piece, id]];
      return halves.get(piece)?.flatMap(split) ?? [[piece, undefined]];
    };
    return nodes.flatMap(({ piece }) => split(piece));
  }

  /** Finds the pieces whose scores have the highest sum (Viterbi). */
  findBestPath(text) {
    const best = Array.from({ length: text.length + 1 }, () => ({
      score: 0,
      start: -1,
    }));
    const update = (start, end, score, id) => {
      const total = Math.fround(best[start].score + score);
      if (best[end].start < 0 || total > best[end].score) {
        best[end] = { score: total, start, id };
      }
    };
    for (let start = 0; start < text.length;) {
      const width = text.codePointAt(start) > 0xffff ? 2 : 1;
      let isKnown = false;
      for (
        let end = start + 1;
        end <= Math.min(text.length, start + this.longest);
        end++
      ) {
        const piece = text.slice(start, end),
          id = this.ids.get(piece);
        if (id === undefined || this.pieces[id].type === UNUSED) continue;
        let { score } = this.pieces[id];
        if (this.pieces[id].type === USER_DEFINED) {
          score = Math.fround(0.1 * (encoder.encode(piece).length - 1));
        }
        update(start, end, score, id);
        isKnown ||= end === start + width;
      }
      if (!isKnown) {
        update(start, start + width, Math.fround(this.lowest - UNKNOWN_PENALTY));
      }
      start += width;
    }
    const pieces = [];
    for (let end = text.length; end > 0; end = best[end].start) {
      pieces.unshift([text.slice(best[end].start, end), best[end].id]);
    }
    return pieces;
  }

  /** Returns the text of ids. */
  decode(ids) {
    let text = "",
      bytes = [],
      isFirst = true;
    const flush = () => {
      text += decodeBytes(bytes);
      bytes = [];
    };
    for (const id of ids) {
      let { piece, type } = this.pieces[id];
      if (type === BYTE) {
        bytes.push(parseInt(piece.slice(3, 5), 16));
        continue;
      }
      flush();
      isFirst &&= !text;
      if (type === CONTROL) continue;
      if (type === UNKNOWN) {
        text += this.unknownText;
        continue;
      }
      if (
        isFirst &&
        (this.addsPrefix || this.removesSpaces) &&
        piece.startsWith(SPACE)
      ) {
        piece = piece.slice(1);
        isFirst = this.removesSpaces;
      }
      text += piece.replaceAll(SPACE, " ");
    }
    flush();
    return text;
  }
}

/** Decodes UTF-8, without the bytes that are not part of a character. */
function decodeBytes(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length;) {
    const first = bytes[i];
    const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    try {
      text += strictDecoder.decode(new Uint8Array(bytes.slice(i, i + length)));
      i += length;
    } catch {
      i++;
    }
  }
  return text;
}
