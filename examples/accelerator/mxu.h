/* The runtime of a simulated matrix unit: products of 16 x 16 tiles of int8 with sums of int32, from a scratchpad of
 * 64 KiB that only it sees. Kernels call these functions; with real hardware they would write to its registers.
 *
 * `at`, `to`, `from`, `sums`, `a` and `b` of type int64_t are byte addresses in the scratchpad; a pitch or a stride is
 * the distance of two rows in elements. All of them return 0; an address out of range is noted, and mxu_end reports it.
 */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { kMxuTile = 16, kMxuScratchpad = 64 * 1024 };

int32_t mxu_begin(void); /* the thread's next kernel begins */
int32_t mxu_end(void);   /* returns 1 if an address since mxu_begin was out of range, else 0 */
/* DMA: a tile of int8 into the scratchpad, and a tile of int32 out of it. */
int32_t mxu_load(int64_t to, int64_t pitch, const int8_t* from, int64_t stride);
int32_t mxu_store(int32_t* to, int64_t stride, int64_t from, int64_t pitch);
int32_t mxu_clear(int64_t at, int64_t pitch);
/* sums += a * b */
int32_t mxu_multiply(int64_t sums, int64_t sums_pitch, int64_t a, int64_t a_pitch, int64_t b, int64_t b_pitch);

typedef struct {
  int64_t kernels, loads, stores, clears, multiplications; /* of tiles */
  int64_t multiply_adds, bytes_in, bytes_out;
} mxu_counters;
mxu_counters mxu_read_counters(void);
void mxu_reset_counters(void);

#ifdef __cplusplus
}
#endif
