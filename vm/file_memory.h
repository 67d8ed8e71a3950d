// Tensors that need not be in memory as a whole: weights of a model that is being compiled.
#pragma once
#include <cstdint>
#include <vector>

#include "vm/tensor.h"

namespace relaxc::vm {

// Returns an uninitialised tensor in an unnamed temporary file (in TMPDIR, else /var/tmp), so that release_pages() can
// take it out of memory. The tensor is in plain memory when it is small or such a file cannot be created.
Tensor tensor_in_file(std::vector<int64_t> shape, DType dtype);
// Returns a tensor with the same contents in such a file.
Tensor moved_to_file(const Tensor& tensor);
// Takes the elements out of this process's memory if they are in a mapped file; they are read again when needed.
void release_pages(const Tensor& tensor);

// Returns whether a MappedFile owns the elements.
bool lies_in_mapped_file(const Tensor& tensor);

// Returns a hash of dtype, shape and bytes. It reads only some bytes of a large tensor, which then stays out of memory.
uint64_t sampled_hash(const Tensor& tensor);

}  // namespace relaxc::vm
