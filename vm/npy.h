// <relaxc/npy.h>: NumPy's .npy files, versions 1 to 3: the tensors of test data, examples and the command line.
#pragma once
#include <string>

#include "vm/tensor.h"

namespace relaxc {

// bool, int8..64, uint8..64, float16/32/64; little-endian, C order. Throws RuntimeError naming the file for anything
// else, for damage, and for a file that is longer or shorter than its header says.
Tensor read_npy(const std::string& path);
// bfloat16 has no .npy type: RuntimeError.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace relaxc
