/* What a host in C may do, and what it may do wrong. The exit code counts the failures. */
#include "tests/api/checks.h"

#include <signal.h>

int failures = 0;

relaxc_program* compiled(const char* text) {
  relaxc_program* program = NULL;
  EXPECT(relaxc_compile_memory(text, strlen(text), "module.py", NULL, &program) == RELAXC_OK);
  return program;
}
relaxc_session* session_of(relaxc_program* program, const relaxc_session_options* options) {
  relaxc_session* session = NULL;
  EXPECT(relaxc_session_new(program, options, &session) == RELAXC_OK);
  return session;
}
DLTensor floats(float* data, int32_t rank, int64_t* shape) {
  DLTensor tensor = {data, {kDLCPU, 0}, rank, {kDLFloat, 32, 1}, shape, NULL, 0};
  return tensor;
}

static int signals = 0;
static void count_signal(int signal) { signals += signal == SIGUSR1; }
static void check_signals(void) {
  EXPECT(raise(SIGUSR1) == 0 && signals == 1); /* the handler of before the first compilation */
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: api_checks FOLDER\n"), 100;
  EXPECT(relaxc_api_version() == RELAXC_API_VERSION && relaxc_version()[0] != 0);
  EXPECT(strcmp(relaxc_error_message(), "") == 0 && relaxc_error_count() == 0);
  signal(SIGUSR1, count_signal);
  check_declarations();
  check_sizes();
  check_names();
  check_types_and_links(argv[1]);
  check_constants(argv[1]);
  check_runs();
  check_errors();
  check_files(argv[1]);
  check_kernels(argv[1]);
  check_many_programs(argv[1]);
  check_values();
  check_caches();
  check_host_parts();
  check_strided_memory();
  check_records();
  check_wrong_pools();
  check_shared_session();
  check_bound_values();
  check_cut_off_library(argv[1]);
  check_short_memory();
  check_signals();
  check_threads();
  check_forks();
  check_refused_threads();
  if (failures == 0) printf("all right\n");
  return failures < 100 ? failures : 99;
}
