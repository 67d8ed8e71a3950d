/* <relaxc/kernel_abi.h>: the calling convention of every kernel, generated or written by hand. Plain C; a
 * library of kernels needs no other header.
 *
 * A kernel is `int32_t name(const relaxc_kernel_args*)`. It returns 0 on success; anything else is an error and
 * the text, if any, is in context->error. Tensors are dense, row-major, 64-byte aligned when made by relaxc
 * (tensors bound by the host need only their element's alignment). Kernels never allocate and never throw. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs iterations [begin, end) of a parallel loop; `closure` is what the kernel handed to parallel_for. */
typedef int32_t (*relaxc_parallel_body)(void* closure, int64_t begin, int64_t end);

/* An argument or the result of a function of the host (T.call_packed): which members hold depends on the kind. */
typedef enum relaxc_value_kind {
  relaxc_none,
  relaxc_int,
  relaxc_float,
  relaxc_string,
  relaxc_tensor,
  relaxc_pointer
} relaxc_value_kind;
typedef struct relaxc_value {
  int32_t kind;    /* a relaxc_value_kind */
  int32_t dtype;   /* of a tensor: a type code (0 int, 1 uint, 2 float, 3 bfloat, 4 bool) | bits << 8 | lanes << 16 */
  int64_t integer; /* an int or bool */
  double real;     /* a float */
  void* pointer;   /* a pointer, the first element of a dense tensor, or the zero-terminated text of a string */
  const int64_t* shape; /* a tensor's dims */
  int64_t ndim;
} relaxc_value;

typedef struct relaxc_kernel_context {
  /* Calls body over a partition of [0, n), perhaps on several threads; returns the first non-zero status. */
  int32_t (*parallel_for)(struct relaxc_kernel_context* context, int64_t n, relaxc_parallel_body body, void* closure);
  /* Returns `bytes` of 64-byte aligned scratch, valid until the kernel (or the parallel body) that asked returns;
   * NULL when out of memory. Scratch is per thread. */
  void* (*scratch)(struct relaxc_kernel_context* context, int64_t bytes);
  /* Message of a failing kernel; a static or context-owned string. NULL if none. See also report. */
  const char* error;
  void* pool; /* the host's; kernels do not touch it */
  /* Sets `error` to a copy of the message in which the first `{}`s are replaced by the values in order, unless an error
   * is set already; threads may call it at once. Only kernels that name what they found call it (--check-bounds);
   * a host that fills in contexts of its own may leave it out for the others. */
  void (*report)(struct relaxc_kernel_context* context, const char* message, const int64_t* values, int32_t num_values);
  /* Calls the host's function of that name and stores its result; a status other than 0 ends the kernel. Tensors are
   * valid during the call. Threads may call it at once; the host's functions then run one after another. */
  int32_t (*call_packed)(struct relaxc_kernel_context* context, const char* name, const relaxc_value* args,
                         int32_t num_args, relaxc_value* result);
} relaxc_kernel_context;

typedef struct relaxc_kernel_args {
  void* const* data;      /* one pointer per tensor argument: inputs in order, then outputs */
  const int64_t* scalars; /* the symbolic values, in the order of the PrimFunc's scalar parameters; of floats the bits
                             of the double */
  relaxc_kernel_context* context;
} relaxc_kernel_args;

typedef int32_t (*relaxc_kernel)(const relaxc_kernel_args* args);

#ifdef __cplusplus
}
#endif
