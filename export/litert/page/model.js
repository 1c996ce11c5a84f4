/** The encoder and the decoder's step as LiteRT graphs.
 *
 * LiteRT.js takes no dynamic shapes, so a graph is compiled for the sizes of a
 * search, which are written into a copy of its file. The caches and their mask
 * are those of `litert_translator.graphs`.
 *
 * Axes: `K` hypotheses, `C` candidates, `V` vocabulary.
 */

import { Tensor, getGlobalLiteRt, loadAndCompile } from "./litert/core.js";
import { withSizes } from "./tflite.js";

const FORBIDDEN = -1e30; // Attention logit of positions that are not ancestors.

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
    this.forbiddenIds = settings.forbidden_ids;
    this.memory = this.inputs = this.outputs = {};
  }

  /** Encodes a source, and prepares the search of its translations. */
  async start(ids, beams) {
    const length = (this.sourceLength = ids.length);
    this.beams = beams;
    this.position = 0;
    await this.encoder.resize({ ids: [length] }, { memory: [length] });
    const source = { ids: new Tensor(Int32Array.from(ids), [length]) };
    free(this.memory);
    this.memory = await this.encoder.compiled.run(source);
    free(source);
    // Most translations are shorter, and a second compilation takes long.
    await this.reserve(16 * Math.ceil(length / 8));
  }

  /** Makes room for so many positions, and keeps the computed ones. */
  async reserve(capacity) {
    const [rows, entries] = [[this.beams], [capacity * this.beams]];
    const memory = [this.sourceLength];
    const sizes = { ids: rows, state: rows, logits: rows, candidates: rows, log: rows };
    await this.decoder.resize(
      {
        ...{ ...sizes, memory, keys: entries, values: entries },
        mask: [...rows, this.beams + entries[0]],
      },
      { ...sizes, attention: [...rows, ...memory], keys: rows, values: rows },
    );
    const old = this.inputs;
    this.inputs = {};
    for (const { name, dtype, shape } of this.decoder.compiled.getInputDetails()) {
      if (name in this.memory) continue;
      const size = shape.reduce((a, b) => a * b, 1),
        width = size / shape[0];
      const values = dtype === "int32" ? new Int32Array(size) : new Float32Array(size);
      if (name === "mask") {
        values.fill(FORBIDDEN);
        // The first columns are the new tokens themselves.
        for (let i = 0; i < this.beams; i++) values[i * width + i] = 0;
      }
      if (this.position) {
        rowsOf(old[name]).forEach((row, i) => values.set(row, i * width));
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
    return [rowsOf(this.outputs.candidates), rowsOf(this.outputs.log_probabilities)];
  }

  /** Returns the log-probabilities of all tokens, `(K, V)`. */
  logProbabilities() {
    return rowsOf(this.outputs.logits).map((row) => {
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
      const width = widthOf(input);
      if (kind === "keys" || kind === "values") {
        const [heads, , features] = input.type.layout.dimensions;
        const rows = rowsOf(this.outputs[name]);
        write(input, (values) => {
          for (let h = 0; h < heads; h++)
            values.set(rows[h], h * width + start * features);
        });
      } else if (kind === "state") {
        const rows = rowsOf(this.outputs[name]);
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

/** Returns the number of values for each index of the first axis. */
function widthOf(tensor) {
  return tensor.type.layout.dimensions.slice(1).reduce((a, b) => a * b, 1);
}

/** Returns a copy of a tensor's values, for each index of the first axis. */
function rowsOf(tensor) {
  const values = tensor.toTypedArray(),
    width = widthOf(tensor);
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
