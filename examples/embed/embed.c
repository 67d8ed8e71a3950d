/* relaxc inside a program in C: compiles a model (or loads an artifact, .so), says what it takes, and runs it on the
 * host's own memory with changing shapes. Usage: embed_c FILE */
#include <relaxc/relaxc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const char* what) { return fprintf(stderr, "%s: %s\n", what, relaxc_error_message()), 1; }

static void print_kernel(void* user, const relaxc_kernel_record* record) {
  (void)user;
  printf("  %-30s %8.1f us  %s\n", record->kernel, (double)record->duration_ns / 1e3, record->node);
}

/* Runs with every symbolic dim set to `size`, and every element of the inputs to 0.5. */
static int run(relaxc_program* program, relaxc_session* session, int64_t size) {
  enum { kMost = 8 };
  DLTensor inputs[kMost];
  DLManagedTensor* outputs[kMost];
  int64_t shapes[kMost][kMost];
  const int32_t num_inputs = relaxc_num_inputs(program, NULL), num_outputs = relaxc_num_outputs(program, NULL);
  if (num_inputs > kMost || num_outputs > kMost) return fprintf(stderr, "more values than this example takes\n"), 1;
  for (int32_t i = 0; i < num_inputs; ++i) {
    const relaxc_value_info* info = relaxc_input(program, NULL, i);
    if (strcmp(info->dtype_name, "float32") != 0 || info->rank > kMost)
      return fprintf(stderr, "input '%s' is %s, this example gives float32\n", info->name, info->type), 1;
    size_t count = 1;
    for (int32_t d = 0; d < info->rank; ++d) {
      shapes[i][d] = info->dims[d].value < 0 ? size : info->dims[d].value;
      count *= (size_t)shapes[i][d];
    }
    float* data = malloc(count * sizeof(float));
    if (!data) return fprintf(stderr, "out of memory\n"), 1;
    for (size_t k = 0; k < count; ++k) data[k] = 0.5f;
    inputs[i] = (DLTensor){data, {kDLCPU, 0}, info->rank, {kDLFloat, 32, 1}, shapes[i], NULL, 0};
  }
  const relaxc_status status = relaxc_run(session, NULL, inputs, num_inputs, outputs, num_outputs);
  for (int32_t i = 0; i < num_inputs; ++i) free(inputs[i].data);
  if (status != RELAXC_OK) return failed("the run failed");
  for (int32_t i = 0; i < num_outputs; ++i) {
    const DLTensor* tensor = &outputs[i]->dl_tensor;
    printf("%s: [", relaxc_output(program, NULL, i)->name);
    for (int32_t d = 0; d < tensor->ndim; ++d) printf("%s%lld", d ? ", " : "", (long long)tensor->shape[d]);
    printf("]\n");
    outputs[i]->deleter(outputs[i]);
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: embed_c FILE\n"), 2;
  const size_t length = strlen(argv[1]);
  const int is_artifact = length > 3 && strcmp(argv[1] + length - 3, ".so") == 0;
  relaxc_program* program = NULL;
  relaxc_session* session = NULL;
  if (is_artifact ? relaxc_load(argv[1], NULL, &program) : relaxc_compile(argv[1], NULL, &program))
    return failed("the model cannot be used");
  for (int32_t i = 0; i < relaxc_num_inputs(program, NULL); ++i)
    printf("input  %s: %s\n", relaxc_input(program, NULL, i)->name, relaxc_input(program, NULL, i)->type);
  if (relaxc_session_new(program, NULL, &session)) return failed("no session");
  int result = 0;
  for (int64_t size = 1; size <= 16 && result == 0; size *= 4) result = run(program, session, size);
  relaxc_session_profile(session, print_kernel, NULL);
  if (result == 0) result = run(program, session, 16);
  relaxc_session_release(session);
  relaxc_program_release(program);
  return result;
}
