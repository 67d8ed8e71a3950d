// The instruction of own_unit.py: c += a * b on tiles of 8 by 8 elements; `ld` is the distance of rows in elements.
#include <stdint.h>

int32_t unit_mma(float* c, int64_t ldc, const float* a, int64_t lda, const float* b, int64_t ldb) {
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j)
      for (int k = 0; k < 8; ++k) c[i * ldc + j] += a[i * lda + k] * b[k * ldb + j];
  return 0;
}
