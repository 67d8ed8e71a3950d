// Runs every graph folder in ONNX Runtime, in one process: the expected outputs become
// FOLDER/test_data_set_<k>/output_<i>.pb, a refusal becomes FOLDER/ort_error.txt.
//
// usage: node ort.mjs ONNXRUNTIME_NODE_PACKAGE FOLDER...
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [runtime, ...folders] = process.argv.slice(2);
const ort = createRequire(import.meta.url)(runtime);

// ONNX element type -> the name and the array that the Node binding has for it.
const types = new Map([
  [1, ['float32', Float32Array]], [2, ['uint8', Uint8Array]], [3, ['int8', Int8Array]], [4, ['uint16', Uint16Array]],
  [5, ['int16', Int16Array]], [6, ['int32', Int32Array]], [7, ['int64', BigInt64Array]], [9, ['bool', Uint8Array]],
  [10, ['float16', Uint16Array]], [11, ['float64', Float64Array]], [12, ['uint32', Uint32Array]],
  [13, ['uint64', BigUint64Array]], [8, ['string', null]],
]);

// A TensorProto with the fields dims (1), data_type (2), string_data (6), name (8) and raw_data (9).
function decode(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return Number(value);
    }
  };
  const tensor = { dims: [], type: 0, name: '', raw: new Uint8Array(0), texts: [] };
  while (at < bytes.length) {
    const key = varint();
    if ((key & 7) === 0) {
      const value = varint();
      if (key >> 3 === 1) tensor.dims.push(value);
      if (key >> 3 === 2) tensor.type = value;
      continue;
    }
    const end = varint() + at;
    if (key >> 3 === 1) while (at < end) tensor.dims.push(varint());
    if (key >> 3 === 6) tensor.texts.push(Buffer.from(bytes.subarray(at, end)).toString());
    if (key >> 3 === 8) tensor.name = Buffer.from(bytes.subarray(at, end)).toString();
    if (key >> 3 === 9) tensor.raw = bytes.slice(at, end);
    at = end;
  }
  return tensor;
}

function encode({ dims, type, raw, texts }) {
  const out = [];
  const varint = (value) => {
    for (; value > 127; value = Math.floor(value / 128)) out.push((value % 128) + 128);
    out.push(value);
  };
  for (const dim of dims) { out.push(8); varint(dim); }
  out.push(16, type);
  const field = (number, content) => {
    out.push(number << 3 | 2);
    varint(content.length);
    for (const byte of content) out.push(byte);
  };
  if (texts) for (const text of texts) field(6, Buffer.from(text));
  else field(9, raw);
  return Buffer.from(out);
}

async function runGraph(folder) {
  const session = await ort.InferenceSession.create(`${folder}/model.onnx`, {
    graphOptimizationLevel: 'disabled', intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4,
  });
  for (let k = 0; existsSync(`${folder}/test_data_set_${k}`); ++k) {
    const data = `${folder}/test_data_set_${k}`;
    const feeds = {};
    for (let i = 0; existsSync(`${data}/input_${i}.pb`); ++i) {
      const tensor = decode(new Uint8Array(readFileSync(`${data}/input_${i}.pb`)));
      const [type, Elements] = types.get(tensor.type);
      const elements = Elements ? new Elements(tensor.raw.slice().buffer) : tensor.texts;
      feeds[tensor.name] = new ort.Tensor(type, elements, tensor.dims);
    }
    const results = await session.run(feeds);
    session.outputNames.forEach((name, i) => {
      const { type, data: elements, dims } = results[name];
      const number = [...types].find(([, [known]]) => known === type)[0];
      const content = type === 'string'
        ? { texts: elements } : { raw: Buffer.from(elements.buffer, elements.byteOffset, elements.byteLength) };
      writeFileSync(`${data}/output_${i}.pb`, encode({ dims, type: number, ...content }));
    });
  }
  await session.release();
}

for (const folder of folders) {
  try {
    await runGraph(folder);
  } catch (error) {
    writeFileSync(`${folder}/ort_error.txt`, String(error.message ?? error));
  }
  writeFileSync(`${folder}/ort_done`, '');
}
process.exit(0);
