// Tensors that do not have to be in memory as a whole: weights of a model that is compiled.
#pragma once
#include <cstdint>
#include <vector>

#include "vm/tensor.h"

namespace relaxc::vm {

// An uninitialised tensor in a nameless temporary file (in TMPDIR, else /var/tmp), so that release_pages() can take it
// out of memory; in plain memory when it is small or no such file can be had.
Tensor tensor_in_file(std::vector<int64_t> shape, DType dtype);
// The same contents in such a file.
Tensor moved_to_file(const Tensor& tensor);
// Takes the elements out of this process's memory if they lie in a mapped file; they are read again when needed.
void release_pages(const Tensor& tensor);

// Whether a MappedFile owns the elements.
bool lies_in_mapped_file(const Tensor& tensor);

// A hash of dtype, shape and bytes. It reads some bytes only of a large tensor, which then stays out of memory.
uint64_t sampled_hash(const Tensor& tensor);

}  // namespace relaxc::vm
