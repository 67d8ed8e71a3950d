/* A C function for the custom ONNX operator com.me::FancyGelu:
 *
 *   cc -O2 -shared -fPIC -I include gelu.c -o libgelu.so -lm
 *   relaxc run model.onnx --kernels libgelu.so
 *
 * The scalars are the attribute and then the dims that the signature names, in the order of their first occurrence. */
#include <math.h>
#include <relaxc/kernel_table.h>

int32_t c_gelu(const relaxc_kernel_args* args) {
  const float* x = args->data[0];
  float* y = args->data[1];
  double alpha = relaxc_float_scalar(args, 0);
  int64_t size = args->scalars[1] * args->scalars[2];
  for (int64_t i = 0; i < size; ++i) y[i] = (float)(alpha * x[i] * (1 + erff(x[i] * 0.70710678f)));
  return 0;
}

static const relaxc_kernel_row rows[] = {
    {.name = "c_gelu",
     .kernel = c_gelu,
     .implements = "@S.implements('com.me::FancyGelu', defaults={'alpha': 0.5})\n"
                   "@S.extern\n"
                   "def c_gelu(x: T.Buffer(('n', 'm'), 'float32'), alpha: T.float32,\n"
                   "           y: T.Buffer(('n', 'm'), 'float32')): ...\n"},
};
const relaxc_kernel_table relaxc_kernels = {RELAXC_KERNEL_TABLE_VERSION, 1, rows};
