/** The encoder and the decoder's step as LiteRT graphs.
 *
 * LiteRT.js takes no dynamic shapes, so a graph is compiled for the sizes of a
 * search, which are written into a copy of its file. The caches and their mask
 * are those of `litert_translator.graphs`, of one sentence.
 *
 * Axes: `K` hypotheses, `C` candidates, `V` vocabulary.
 */

import { Tensor, getGlobalLiteRt, loadAndCompile } from "./litert/core.js";
import { withSizes } from "./tflite_shapes.js";

const FORBIDDEN = -1e30; // Attention logit of positions that are not ancestors.
const BLOCK = 8; // Source lengths are rounded up to its multiples.

/** A graph, compiled for the sizes of its last use. */
class Graph {
  constructor(file) {
    this.file = file;
  }

  /** Compiles the graph, unless it is compiled for these sizes.
   *
   * @param inputs The dynamic sizes of each input, by the first word of its
   *     name.
   * @param outputs Those of each output.
   */
  async resize(inputs, outputs) {
    const key = JSON.stringify([inputs, outputs]);
    if (key === this.key) return;
    this.compiled?.delete();
    this.key = this.compiled = undefined;
    const file = withSizes(this.file, inputs, outputs);
    this.compiled = await loadAndCompile(file, { accelerator: "wasm" });
    this.key = key;
  }
}

export class Model {
  constructor(encoderFile, stepFile, settings) {
    this.encoder = new Graph(encoderFile);
    this.decoder = new Graph(stepFile);
    this.eosId = settings.eos_id;
    this.bosId = settings.bos_id;
    this.maxLength = settings.max_target_length;
    this.maxSourceLength = settings.max_source_length;
    this.forbiddenIds = settings.forbidden_ids;
    this.memory = this.inputs = this.outputs = {};
  }

  /** Encodes a source, and prepares the search of its translations. */
  async start(ids, beams) {
    // Padding makes sentences of unlike lengths share a compiled graph.
    const padded = BLOCK * Math.ceil(ids.length / BLOCK);
    const length = (this.sourceLength = Math.min(padded, this.maxSourceLength));
    this.beams = beams;
    this.position = 0;
    const sizes = [1, length];
    await this.encoder.resize({ ids: sizes }, { memory: sizes });
    const values = new Int32Array(length);
    values.set(ids);
    const source = { ids: new Tensor(values, sizes) };
    free(this.memory);
    this.memory = await this.encoder.compiled.run(source);
    free(source);
    // Most translations are shorter, and a second compilation takes long.
    await this.reserve(2 * length);
  }

  /** Makes room for so many positions, and keeps the computed ones. */
  async reserve(capacity) {
    const [beams, entries] = [this.beams, capacity * this.beams];
    const [rows, memory] = [
      [1, beams],
      [1, this.sourceLength],
    ];
    await this.decoder.resize(
      {
        ...{ ids: rows, state: rows, memory, mask: [...rows, beams + entries] },
        ...{ keys: [1, entries], values: [1, entries] },
      },
      {
        ...{ logits: [beams], candidates: [beams], log: [beams] },
        ...{ attention: [...rows, this.sourceLength] },
        ...{ keys: rows, values: rows, state: rows },
      },
    );
    const old = this.inputs;
    this.inputs = {};
    for (const { name, dtype, shape } of this.decoder.compiled.getInputDetails()) {
      if (name in this.memory) continue;
      const size = shape.reduce((a, b) => a * b, 1),
        width = widthOf(name, shape);
      const values = dtype === "int32" ? new Int32Array(size) : new Float32Array(size);
      if (name === "mask") {
        values.fill(FORBIDDEN);
        // The first columns are the new tokens themselves.
        for (let i = 0; i < this.beams; i++) values[i * width + i] = 0;
      }
      if (this.position) {
        rowsOf(name, old[name]).forEach((row, i) => values.set(row, i * width));
      }
      this.inputs[name] = new Tensor(values, [...shape]);
    }
    free(old);
    this.capacity = capacity;
  }

  /** Decodes the next position of each hypothesis.
   *
   * @returns The best tokens, `(K, C)`, and their log-probabilities.
   */
  async step(tokens) {
    if (this.inputs.mask && this.position === this.capacity) {
      await this.reserve(2 * this.capacity);
    }
    write(this.inputs.ids, (values) => values.set(tokens));
    write(this.inputs.position, (values) => values.fill(this.position));
    free(this.outputs);
    this.outputs = await this.decoder.compiled.run({
      ...this.inputs,
      ...this.memory,
    });
    return ["candidates", "log_probabilities"].map((name) =>
      rowsOf(name, this.outputs[name]),
    );
  }

  /** Returns the log-probabilities of all tokens, `(K, V)`. */
  logProbabilities() {
    return rowsOf("logits", this.outputs.logits).map((row) => {
      const highest = row.reduce((a, b) => Math.max(a, b));
      const total = row.reduce((sum, x) => sum + Math.exp(x - highest), 0);
      return row.map((x) => x - highest - Math.log(total));
    });
  }

  /** Makes each hypothesis continue the one of its parent. */
  reorder(parents) {
    const start = this.position * this.beams;
    for (const [name, input] of Object.entries(this.inputs)) {
      const kind = name.split("_")[0];
      const shape = input.type.layout.dimensions;
      const width = widthOf(name, shape);
      if (kind === "keys" || kind === "values") {
        const rows = rowsOf(name, this.outputs[name]);
        write(input, (values) =>
          rows.forEach((row, h) => values.set(row, h * width + start * shape[3])),
        );
      } else if (kind === "state") {
        const rows = rowsOf(name, this.outputs[name]);
        write(input, (values) =>
          parents.forEach((parent, i) => values.set(rows[parent], i * width)),
        );
      } else if (kind === "mask") {
        write(input, (values) => {
          const columns = (i) =>
            values.subarray(i * width + this.beams, (i + 1) * width);
          const ancestors = parents.map((parent) => columns(parent).slice(0, start));
          parents.forEach((parent, i) => {
            columns(i).set(ancestors[i]);
            columns(i)[start + parent] = 0;
          });
        });
      }
    }
    this.position++;
  }
}

/** Deletes tensors, which are not garbage-collected. */
function free(tensors) {
  for (const tensor of Object.values(tensors)) tensor.delete();
}

/** Returns the number of values of a head, or of a hypothesis. */
function widthOf(name, shape) {
  return /^(keys|values)/.test(name) ? shape[2] * shape[3] : shape.at(-1);
}

/** Returns a copy of a tensor's values, for each head or hypothesis. */
function rowsOf(name, tensor) {
  const values = tensor.toTypedArray(),
    width = widthOf(name, tensor.type.layout.dimensions);
  const count = values.length / width;
  return Array.from({ length: count }, (_, i) =>
    values.subarray(i * width, (i + 1) * width),
  );
}

/** Lets a function change the values of a tensor in place. */
function write(tensor, change) {
  const { HEAPU8, LiteRtTensorBufferLockMode: modes } = getGlobalLiteRt().liteRtWasm;
  const buffer = tensor.liteRtTensorBuffer;
  const address = buffer.lock(modes.READ_WRITE);
  const Values = tensor.type.dtype === "int32" ? Int32Array : Float32Array;
  change(new Values(HEAPU8.buffer, address, buffer.size() / Values.BYTES_PER_ELEMENT));
  buffer.unlock();
}
