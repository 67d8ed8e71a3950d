// Raw tensors in a file beside a text, in the safetensors format: eight bytes with the length of a JSON header, the
// header {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}, the bytes (little endian,
// row-major). (https://huggingface.co/docs/safetensors, the section on the format.)
#pragma once
#include <map>
#include <utility>

#include "vm/tensor.h"

namespace relaxc::text {

// Writes tensors of wide elements first, so that each is aligned. Throws CompileError for dtypes that the format lacks,
// and RuntimeError when the file cannot be written.
void write_safetensors(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors);
// Returns tensors that share memory with the mapped file. Everything in it is checked; errors are CompileErrors.
std::map<std::string, Tensor> read_safetensors(const std::string& path);

}  // namespace relaxc::text
