/* For the checks of the C interface: what each of them needs, and the checks by file. A failure prints its line. */
#ifndef RELAXC_TESTS_API_CHECKS_H
#define RELAXC_TESTS_API_CHECKS_H

#include <stdio.h>
#include <string.h>

#include "api/relaxc.h"

extern int failures;
#define EXPECT(condition)                                                                          \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: %s [%s]\n", __FILE__, __LINE__, #condition, relaxc_error_message()); \
      ++failures;                                                                                  \
    }                                                                                              \
  } while (0)
#define MESSAGE_HAS(text) (strstr(relaxc_error_message(), text) != NULL)

#define TWICE "@R.function\ndef main(x: R.Tensor((\"n\", 2), \"float32\")):\n    return R.add(x, x)\n"

/* Returns the program of a module as text. */
relaxc_program* compiled(const char* text);
relaxc_session* session_of(relaxc_program* program, const relaxc_session_options* options);
DLTensor floats(float* data, int32_t rank, int64_t* shape);

/* compile_checks.c */
void check_sizes(void);
void check_names(void);
void check_types_and_links(const char* folder);
void check_constants(const char* folder);
void check_kernels(const char* folder);
void check_bound_values(void);
void check_cut_off_library(const char* folder);

/* program_checks.c */
void check_declarations(void);
void check_files(const char* folder);
void check_many_programs(const char* folder);

/* run_checks.c */
void check_runs(void);
void check_errors(void);
void check_values(void);
void check_caches(void);

/* host_checks.c */
void check_host_parts(void);
void check_strided_memory(void);
void check_records(void);
void check_wrong_pools(void);
void check_short_memory(void);

/* thread_checks.c */
void check_shared_session(void);
void check_threads(void);
void check_forks(void);
void check_refused_threads(void);

#endif
