/* Threads and forks. */
#define _GNU_SOURCE /* for sets of cores, and the default size of stacks */
#include "tests/api/checks.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Threads that share a session against the rules: one runs, and the others are told so. */
static relaxc_session* shared = NULL;

static void* run_shared(void* wrong) {
  float in[64], out[64];
  int64_t shape[2] = {32, 2};
  for (int i = 0; i < 64; ++i) in[i] = (float)i;
  DLTensor x = floats(in, 2, shape), y = floats(out, 2, shape);
  for (int run = 0; run < 3000; ++run) {
    const relaxc_status status = relaxc_run_into(shared, NULL, &x, 1, &y, 1);
    if (status == RELAXC_OK ? out[63] != 126 : status != RELAXC_USAGE) ++*(int*)wrong;
  }
  return NULL;
}

void check_shared_session(void) {
  relaxc_program* program = compiled(TWICE);
  const relaxc_session_options options = {.size = sizeof options, .num_threads = 1};
  shared = session_of(program, &options);
  pthread_t threads[3];
  int wrong[3] = {0};
  for (int i = 0; i < 3; ++i) EXPECT(pthread_create(&threads[i], NULL, run_shared, &wrong[i]) == 0);
  for (int i = 0; i < 3; ++i) {
    pthread_join(threads[i], NULL);
    EXPECT(wrong[i] == 0);
  }
  relaxc_session_release(shared);
  relaxc_program_release(program);
}

struct caller {
  relaxc_program* program;
  int number, wrong;
};

static void* call_often(void* of) {
  struct caller* caller = of;
  relaxc_session_options options = {.size = sizeof options};
  options.num_threads = 1;
  relaxc_session* session = NULL;
  if (relaxc_session_new(caller->program, &options, &session)) return caller->wrong = 1000, NULL;
  float in[64], out[64];
  relaxc_memory_stats warm = {0}, stats;
  for (int run = 0; run < 1000; ++run) {
    int64_t shape[2] = {1 + (run * 7 + caller->number) % 32, 2};
    for (int i = 0; i < 2 * shape[0]; ++i) in[i] = (float)(run + i), out[i] = 0;
    DLTensor x = floats(in, 2, shape), y = floats(out, 2, shape);
    if (relaxc_run_into(session, NULL, &x, 1, &y, 1)) ++caller->wrong;
    for (int i = 0; i < 2 * shape[0]; ++i) caller->wrong += out[i] != 2 * in[i];
    relaxc_session_memory(session, &stats);
    if (run == 31) warm = stats;
  }
  if (stats.allocations != warm.allocations) ++caller->wrong;
  relaxc_session_release(session);
  return NULL;
}

void check_threads(void) {
  relaxc_program* program = compiled(TWICE);
  pthread_t threads[8];
  struct caller callers[8];
  for (int i = 0; i < 8; ++i) {
    callers[i] = (struct caller){program, i, 0};
    EXPECT(pthread_create(&threads[i], NULL, call_often, &callers[i]) == 0);
  }
  for (int i = 0; i < 8; ++i) {
    pthread_join(threads[i], NULL);
    EXPECT(callers[i].wrong == 0);
  }
  relaxc_program_release(program);
}

/* A compilation that stands still from its first callback to the end of the forks. */
static sem_t compiling, may_go_on;

static void stand_still(void* user, const relaxc_progress_info* info) {
  (void)info;
  int* has_stood = user;
  if ((*has_stood)++) return;
  sem_post(&compiling);
  sem_wait(&may_go_on);
}

static void* compile_slowly(void* user) {
  relaxc_compile_options options = {.size = sizeof options, .progress = stand_still, .user = user};
  relaxc_program* program = NULL;
  EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "module.py", &options, &program) == RELAXC_OK);
  relaxc_program_release(program);
  return NULL;
}

/* Returns the exit code of a child that compiles; -1 where it does not end. */
static int compile_in_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    relaxc_program* program = NULL;
    const relaxc_status status = relaxc_compile_memory(TWICE, strlen(TWICE), "module.py", NULL, &program);
    if (status == RELAXC_UNSUPPORTED && !MESSAGE_HAS("forked while a thread of its parent was compiling")) _exit(99);
    _exit((int)status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void check_forks(void) {
  pthread_t thread;
  int has_stood = 0;
  sem_init(&compiling, 0, 0);
  sem_init(&may_go_on, 0, 0);
  EXPECT(pthread_create(&thread, NULL, compile_slowly, &has_stood) == 0);
  sem_wait(&compiling);
  EXPECT(compile_in_child() == RELAXC_UNSUPPORTED);
  sem_post(&may_go_on);
  pthread_join(thread, NULL);
  EXPECT(compile_in_child() == RELAXC_OK);
}

static void keep_warning(void* user, relaxc_log_level level, const char* message) {
  if (level == RELAXC_LOG_WARNING) snprintf(user, 256, "%s", message);
}

/* A system that has no room for the stacks of many threads. */
void check_refused_threads(void) {
#ifndef __SANITIZE_ADDRESS__
#ifndef __SANITIZE_THREAD__
  relaxc_program* program = compiled(TWICE);
  struct rlimit usual, narrow;
  EXPECT(getrlimit(RLIMIT_AS, &usual) == 0);
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  EXPECT(fscanf(file, "%ld", &pages) == 1);
  fclose(file);
  narrow = usual;
  narrow.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (64 << 20);
  cpu_set_t cores;
  pthread_attr_t usual_stack, large_stack;
  EXPECT(sched_getaffinity(0, sizeof cores, &cores) == 0);
  EXPECT(pthread_getattr_default_np(&usual_stack) == 0 && pthread_getattr_default_np(&large_stack) == 0);
  EXPECT(pthread_attr_setstacksize(&large_stack, 256 << 20) == 0);
  for (int all = 0; all < (CPU_COUNT(&cores) > 1 ? 2 : 1); ++all) {
    char warning[256] = "", expected[256];
    snprintf(expected, sizeof expected, "the system refuses %d threads, so that runs have 1",
             all ? CPU_COUNT(&cores) : 500);
    const relaxc_session_options options = {
        .size = sizeof options, .num_threads = all ? 0 : 500, .log = keep_warning, .user = warning};
    relaxc_session* session = NULL;
    EXPECT(setrlimit(RLIMIT_AS, &narrow) == 0 && pthread_setattr_default_np(&large_stack) == 0);
    EXPECT(relaxc_session_new(program, &options, &session) == RELAXC_OK);
    EXPECT(setrlimit(RLIMIT_AS, &usual) == 0 && pthread_setattr_default_np(&usual_stack) == 0);
    EXPECT(strcmp(warning, expected) == 0);
    float in[2] = {1, 2}, out[2] = {0, 0};
    int64_t shape[2] = {1, 2};
    DLTensor x = floats(in, 2, shape), y = floats(out, 2, shape);
    EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) == RELAXC_OK && out[1] == 4);
    relaxc_session_release(session);
  }
  relaxc_program_release(program);
#endif
#endif
}
