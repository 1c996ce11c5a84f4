/** Reads as much of a .tflite file (a FlatBuffer) as its shapes need. */

// Indices of the fields of the tables, in TensorFlow's schema.fbs.
const [MODEL_SUBGRAPHS, MODEL_SIGNATURES] = [2, 7];
const SUBGRAPH_TENSORS = 0;
const [TENSOR_SHAPE, TENSOR_SHAPE_SIGNATURE] = [0, 7];
const [SIGNATURE_INPUTS, SIGNATURE_OUTPUTS] = [0, 1];
const [ENTRY_NAME, ENTRY_INDEX] = [0, 1];

/** Returns a copy of a graph whose inputs and outputs have these sizes.
 *
 * @param {Uint8Array} file A graph with one signature.
 * @param inputs The sizes of the dynamic axes of each input, by the first word
 *     of its name.
 * @param outputs Those of each output.
 */
export function withSizes(file, inputs, outputs) {
  const copy = file.slice();
  const view = new DataView(copy.buffer);
  const follow = (at) => at + view.getUint32(at, true);
  const field = (table, index) => {
    const layout = table - view.getInt32(table, true);
    const at = 4 + 2 * index;
    const offset =
      at < view.getUint16(layout, true) ? view.getUint16(layout + at, true) : 0;
    return offset && table + offset;
  };
  const elements = (table, index) => {
    const at = field(table, index);
    if (!at) return [];
    const start = follow(at),
      count = view.getUint32(start, true);
    return Array.from({ length: count }, (_, i) => start + 4 + 4 * i);
  };
  const tables = (table, index) => elements(table, index).map(follow);
  const text = (at) => {
    const start = follow(at) + 4;
    return new TextDecoder().decode(
      copy.subarray(start, start + view.getUint32(start - 4, true)),
    );
  };
  const model = follow(0);
  const [subgraph] = tables(model, MODEL_SUBGRAPHS);
  const [signature] = tables(model, MODEL_SIGNATURES);
  const tensors = tables(subgraph, SUBGRAPH_TENSORS);
  for (const [list, sizes] of [
    [SIGNATURE_INPUTS, inputs],
    [SIGNATURE_OUTPUTS, outputs],
  ]) {
    for (const entry of tables(signature, list)) {
      const [kind] = text(field(entry, ENTRY_NAME)).split("_");
      const index = field(entry, ENTRY_INDEX); // Absent if it is 0.
      const tensor = tensors[index && view.getUint32(index, true)];
      const shape = elements(tensor, TENSOR_SHAPE),
        left = [...(sizes[kind] ?? [])];
      for (const [axis, at] of elements(tensor, TENSOR_SHAPE_SIGNATURE).entries()) {
        if (view.getInt32(at, true) >= 0) continue;
        // LiteRT computes the sizes of all tensors between inputs and outputs.
        const size = left.shift();
        view.setInt32(at, size, true);
        view.setInt32(shape[axis], size, true);
      }
    }
  }
  return copy;
}
