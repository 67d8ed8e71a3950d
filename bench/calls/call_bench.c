/* What a call of the C interface costs besides the kernels: microseconds of processor time of a run of a model with one
 * tiny kernel (6 elements), least of five rounds of 200,000 runs. Usage: call_bench. Exits with 1 where a call with
 * memory of the host's takes a microsecond or more. */
#include <relaxc/relaxc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

enum { kRuns = 200000, kRounds = 5 };

int main(void) {
  const char* text =
      "@R.function\n"
      "def main(x: R.Tensor((\"n\", 2), \"float32\")):\n"
      "    return R.add(x, x)\n";
  relaxc_program* program = NULL;
  relaxc_session* session = NULL;
  relaxc_session_options options = {.size = sizeof options, .num_threads = 1};
  if (relaxc_compile_memory(text, strlen(text), "tiny.py", NULL, &program) ||
      relaxc_session_new(program, &options, &session))
    return fprintf(stderr, "%s\n", relaxc_error_message()), 1;
  float in[6] = {1, 2, 3, 4, 5, 6}, out[6];
  int64_t shape[2] = {3, 2};
  DLTensor x = {in, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0}, y = x;
  y.data = out;
  double least_into = 1e9, least_new = 1e9;
  int failures = 0;
  for (int round = 0; round < kRounds; ++round) {
    double start = now_us();
    for (int i = 0; i < kRuns; ++i) failures += relaxc_run_into(session, NULL, &x, 1, &y, 1) != RELAXC_OK;
    const double into = (now_us() - start) / kRuns;
    start = now_us();
    for (int i = 0; i < kRuns; ++i) {
      DLManagedTensor* result = NULL;
      if (relaxc_run(session, NULL, &x, 1, &result, 1) == RELAXC_OK)
        result->deleter(result);
      else
        ++failures;
    }
    const double fresh = (now_us() - start) / kRuns;
    least_into = into < least_into ? into : least_into;
    least_new = fresh < least_new ? fresh : least_new;
  }
  printf("relaxc_run_into  %.2f us\nrelaxc_run       %.2f us\n", least_into, least_new);
  relaxc_session_release(session);
  relaxc_program_release(program);
  return failures != 0 || least_into >= 1;
}
