// The fuzz target of image files (./dev fuzz): an input is a file in whatever format its first bytes say. Decoding
// gives an image, or one without pixels; every byte of it is read.
#include <cstdio>
#include <cstdlib>

#include "vm/dlpack.h"
#include "vm/kernel_table.h"

extern "C" const relaxc_kernel_table relaxc_kernels;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int64_t shape[] = {static_cast<int64_t>(size)};
  DLTensor bytes = {const_cast<uint8_t*>(data), {kDLCPU, 0}, 1, {kDLUInt, 8, 1}, shape, nullptr, 0};
  const DLTensor* arguments[] = {&bytes};
  relaxc_kernel_context context = {};
  DLManagedTensor* image = nullptr;
  const relaxc_kernel_row& row = relaxc_kernels.rows[size % static_cast<size_t>(relaxc_kernels.num_rows)];
  if (row.packed(arguments, 1, &image, &context) != 0) return 0;  // not enough memory
  const DLTensor& pixels = image->dl_tensor;
  const int64_t count = pixels.shape[0] * pixels.shape[1] * pixels.shape[2];
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<const uint8_t*>(pixels.data)[i];
  const bool is_wrong = pixels.ndim != 3 || sum > 255 * static_cast<uint64_t>(count);
  image->deleter(image);
  if (is_wrong) std::abort();
  return 0;
}
