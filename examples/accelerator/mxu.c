#include "mxu.h"

#include <stdatomic.h>
#include <string.h>

/* Each thread has a unit, as each core of a CPU has. */
static _Thread_local struct {
  _Alignas(64) int8_t scratchpad[kMxuScratchpad];
  int32_t status;
} unit;
/* Of all units. */
static struct {
  atomic_llong kernels, loads, stores, clears, multiplications;
} done;

/* Returns a row of a tile in the scratchpad, or NULL where it leaves it. */
static void* row_at(int64_t tile, int64_t pitch, int row, int64_t element_bytes) {
  int64_t bytes = kMxuTile * element_bytes, limit = kMxuScratchpad;
  int fits = tile >= 0 && tile <= limit && pitch >= kMxuTile && pitch <= limit && tile % element_bytes == 0 &&
             tile + row * pitch * element_bytes + bytes <= limit;
  if (!fits) unit.status = 1;
  return fits ? unit.scratchpad + tile + row * pitch * element_bytes : NULL;
}

int32_t mxu_begin(void) {
  unit.status = 0;
  ++done.kernels;
  return 0;
}

int32_t mxu_end(void) { return unit.status; }

int32_t mxu_load(int64_t to, int64_t pitch, const int8_t* from, int64_t stride) {
  for (int i = 0; i < kMxuTile; ++i) {
    void* row = row_at(to, pitch, i, 1);
    if (row) memcpy(row, from + i * stride, kMxuTile);
  }
  ++done.loads;
  return 0;
}

int32_t mxu_store(int32_t* to, int64_t stride, int64_t from, int64_t pitch) {
  for (int i = 0; i < kMxuTile; ++i) {
    const void* row = row_at(from, pitch, i, 4);
    if (row) memcpy(to + i * stride, row, kMxuTile * 4);
  }
  ++done.stores;
  return 0;
}

int32_t mxu_clear(int64_t at, int64_t pitch) {
  for (int i = 0; i < kMxuTile; ++i) {
    void* row = row_at(at, pitch, i, 4);
    if (row) memset(row, 0, kMxuTile * 4);
  }
  ++done.clears;
  return 0;
}

int32_t mxu_multiply(int64_t sums, int64_t sums_pitch, int64_t a, int64_t a_pitch, int64_t b, int64_t b_pitch) {
  for (int i = 0; i < kMxuTile; ++i) {
    int32_t* sum = row_at(sums, sums_pitch, i, 4);
    const int8_t* left = row_at(a, a_pitch, i, 1);
    for (int k = 0; sum && left && k < kMxuTile; ++k) {
      const int8_t* right = row_at(b, b_pitch, k, 1);
      for (int j = 0; right && j < kMxuTile; ++j) sum[j] += left[k] * right[j];
    }
  }
  ++done.multiplications;
  return 0;
}

mxu_counters mxu_read_counters(void) {
  mxu_counters result = {done.kernels, done.loads, done.stores, done.clears, done.multiplications, 0, 0, 0};
  result.multiply_adds = result.multiplications * kMxuTile * kMxuTile * kMxuTile;
  result.bytes_in = result.loads * kMxuTile * kMxuTile;
  result.bytes_out = result.stores * kMxuTile * kMxuTile * 4;
  return result;
}

void mxu_reset_counters(void) { done.kernels = done.loads = done.stores = done.clears = done.multiplications = 0; }
