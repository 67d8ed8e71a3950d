/* <relaxc/kernel_table.h>: kernels and functions of a shared library, for --kernels libmine.so and for artifacts that
 * need the library. Plain C. The library exports one symbol:
 *
 *   const relaxc_kernel_table relaxc_kernels = {RELAXC_KERNEL_TABLE_VERSION, 1, rows};
 *
 * docs/own-kernels.md says what the text in `implements` may be: what a file of kernels has, with the name of the row.
 */
#pragma once
#include "vm/kernel_abi.h"
#ifndef DLPACK_DLPACK_H_ /* of a host that has included its own */
#include "vm/dlpack.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A function on tensors of DLPack: the inputs of R.call_dps_packed and then its results, or the arguments of
 * R.call_packed, whose result it stores to `*result` (null is given where no result is asked for). The tensors belong
 * to the caller. Returns 0, or another status with the text in context->error. */
typedef int32_t (*relaxc_packed_function)(const DLTensor* const* tensors, int32_t num_tensors, DLManagedTensor** result,
                                          relaxc_kernel_context* context);

typedef struct relaxc_kernel_row {
  const char* name;     /* under which models and modules call it */
  relaxc_kernel kernel; /* one of these is set */
  relaxc_packed_function packed;
  const char* implements; /* null: it is only called by its name */
} relaxc_kernel_row;

#define RELAXC_KERNEL_TABLE_VERSION 1

typedef struct relaxc_kernel_table {
  int32_t version; /* RELAXC_KERNEL_TABLE_VERSION */
  int32_t num_rows;
  const relaxc_kernel_row* rows;
} relaxc_kernel_table;

/* The value of a float attribute, which the kernel gets among its scalars. */
static inline double relaxc_float_scalar(const relaxc_kernel_args* args, int32_t i) {
  union {
    int64_t bits;
    double value;
  } number;
  number.bits = args->scalars[i];
  return number.value;
}

#ifdef __cplusplus
}
#endif
