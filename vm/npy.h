// <relaxc/npy.h>: NumPy's .npy files, versions 1 to 3: the tensors of test data, examples and the command line.
#pragma once
#include "vm/tensor.h"

namespace relaxc {

// Reads bool, int8..64, uint8..64 and float16/32/64, little-endian and in C order. Throws RuntimeError that names the
// file for any other content, for damage, and for a file that is longer or shorter than its header says.
Tensor read_npy(const std::string& path);
// Throws RuntimeError for bfloat16, which has no .npy type.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace relaxc
