// <relaxc/npy.h>: NumPy's .npy files, versions 1 to 3: the tensors of test data, examples and the command line.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "vm/error.h"
#include "vm/tensor.h"

namespace relaxc {

// Reads bool, int8..64, uint8..64 and float16/32/64. Fortran order and numbers with the high byte first are converted;
// `notes`, unless it is null, gets a line for each conversion. Throws RuntimeError that names the file for any other
// content, for damage, and for a file that is longer or shorter than its header says.
// Types of 8 bits and less that .npy does not have are stored as bytes, one for each element: integers as int8 or uint8
// with their values, floats as uint8 with their bits. Where such a type is expected, bytes are read as it. V1, which
// Python's ml_dtypes writes, is bytes, too.
using NpyNotes = std::vector<std::string>;
Tensor read_npy(const std::string& path, std::optional<DType> expected = {}, NpyNotes* notes = nullptr);
// The same for the content of a file, such as a member of an .npz archive, which messages call `name`.
Tensor read_npy_bytes(std::string_view content, const std::string& name, std::optional<DType> expected = {},
                      NpyNotes* notes = nullptr);
// Returns the bytes that a file has by its header, of which these are the first ones: all, or at least kNpyHeaderBytes.
constexpr size_t kNpyHeaderBytes = (size_t{1} << 16) + 12;
uint64_t bytes_of_npy(std::string_view begin, const std::string& name);
// Throws RuntimeError for bfloat16, which has no .npy type.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace relaxc
