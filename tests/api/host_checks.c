/* What a host brings: memory, threads, and who hears of kernels. */
#include "tests/api/checks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t live = 0, most = 0, requests = 0;

static void* count_allocate(void* user, size_t bytes, size_t alignment) {
  (void)user;
  live += bytes;
  ++requests;
  if (live > most) most = live;
  return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void count_free(void* user, void* memory, size_t bytes) {
  (void)user;
  live -= bytes;
  free(memory);
}

static int tasks = 0;
static int one_worker(void* user) { return (void)user, 1; }

static void run_here(void* user, relaxc_task task, void* closure, int workers) {
  (void)user, (void)workers;
  ++tasks;
  task(closure, 0);
}

static int records = 0, inner = -1;
static relaxc_session* to_run = NULL;
static relaxc_session* to_cancel = NULL;

static void count_record(void* user, const relaxc_kernel_record* record) {
  EXPECT(user == &records && record->size == sizeof *record && record->kernel[0] != 0 && record->duration_ns >= 0);
  ++records;
  relaxc_session_cancel(to_cancel);
  DLManagedTensor* result = NULL;
  if (to_run) inner = (int)relaxc_run(to_run, NULL, NULL, 0, &result, 1);
}

void check_host_parts(void) {
  relaxc_program* program = compiled(
      "@R.function\ndef main(x: R.Tensor((\"n\", 64), \"float32\"), w: R.Tensor((64, 64), \"float32\")):\n"
      "    return R.nn.softmax(R.matmul(R.matmul(x, w), w))\n");
  const relaxc_allocator allocator = {count_allocate, count_free, NULL};
  const relaxc_thread_pool pool = {one_worker, run_here, NULL};
  relaxc_session_options options = {.size = sizeof options};
  options.allocator = &allocator;
  options.thread_pool = &pool;
  relaxc_session* session = session_of(program, &options);
  static float in[512 * 64], w[64 * 64];
  int64_t shape[2] = {512, 64}, square[2] = {64, 64};
  DLTensor inputs[2] = {floats(in, 2, shape), floats(w, 2, square)};
  DLManagedTensor* result = NULL;
  EXPECT(relaxc_run(session, NULL, inputs, 2, &result, 1) == RELAXC_OK);
  EXPECT(most >= sizeof in && fabsf(((float*)result->dl_tensor.data)[0] - 1.0f / 64) < 1e-6f);
  result->deleter(result);
  const size_t before = requests;
  EXPECT(relaxc_run(session, NULL, inputs, 2, &result, 1) == RELAXC_OK && requests == before);
  result->deleter(result);
  relaxc_memory_stats stats;
  relaxc_session_memory(session, &stats);
  EXPECT(stats.live_bytes == 0 && stats.peak_bytes > 0 && stats.allocations > 0);
  /* a profiler sees kernels; one that cancels ends the run after the first */
  relaxc_session_profile(session, count_record, &records);
  EXPECT(relaxc_run(session, NULL, inputs, 2, &result, 1) == RELAXC_OK && records >= 2);
  result->deleter(result);
  to_run = session; /* a run inside of a run */
  EXPECT(relaxc_run(session, NULL, inputs, 2, &result, 1) == RELAXC_OK && inner == RELAXC_USAGE);
  result->deleter(result);
  to_run = NULL;
  records = 0;
  to_cancel = session;
  EXPECT(relaxc_run(session, NULL, inputs, 2, &result, 1) == RELAXC_CANCELLED && records == 1 && result == NULL);
  to_cancel = NULL;
  relaxc_session_profile(session, NULL, NULL);
  EXPECT(relaxc_run(session, NULL, inputs, 2, &result, 1) == RELAXC_OK);
  result->deleter(result);
  relaxc_session_release(session);
  EXPECT(live == 0);
  options.memory_limit = 1000;
  session = session_of(program, &options);
  EXPECT(relaxc_run(session, NULL, inputs, 2, &result, 1) == RELAXC_OUT_OF_MEMORY && MESSAGE_HAS("the limit is 1000"));
  relaxc_session_release(session);
  options.num_threads = -3;
  EXPECT(relaxc_session_new(program, &options, &session) == RELAXC_USAGE && session == NULL);
  relaxc_program_release(program);
}

/* A tensor with strides is copied to the session's memory, also for its result. */
void check_strided_memory(void) {
  relaxc_program* program = compiled(TWICE);
  const relaxc_allocator allocator = {count_allocate, count_free, NULL};
  relaxc_session_options options = {.size = sizeof options, .allocator = &allocator};
  relaxc_session* session = session_of(program, &options);
  static float in[4096 * 4], out[4096 * 4];
  int64_t shape[2] = {4096, 2}, strides[2] = {4, 2};
  DLTensor x = floats(in, 2, shape), y = floats(out, 2, shape);
  x.strides = strides;
  in[4] = 5;
  most = live = 0;
  EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) == RELAXC_OK && out[2] == 10 && most >= sizeof in / 2);
  y.strides = strides;
  EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) == RELAXC_OK && out[4] == 10 && most >= sizeof in);
  x.strides = NULL;
  x.data = (char*)in + 1; /* not aligned */
  const size_t before = most;
  EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) == RELAXC_OK && most >= before);
  relaxc_session_release(session);
  EXPECT(live == 0);
  options.memory_limit = sizeof in / 4;
  session = session_of(program, &options);
  x.data = in;
  x.strides = strides;
  EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) == RELAXC_OUT_OF_MEMORY &&
         MESSAGE_HAS("input 0 (counted from 0)"));
  relaxc_session_release(session);
  relaxc_program_release(program);
}

/* Records of kernels, which are made after the run. */
void check_records(void) {
  relaxc_program* program = compiled(TWICE);
  relaxc_session* session = session_of(program, NULL);
  float in[8] = {1}, out[8];
  int64_t shape[2] = {4, 2};
  DLTensor x = floats(in, 2, shape), y = floats(out, 2, shape);
  const relaxc_kernel_record* rows = NULL;
  int32_t count = -1;
  EXPECT(relaxc_session_records(session, &rows, &count) == RELAXC_USAGE && MESSAGE_HAS("keeps no records") &&
         count == 0);
  EXPECT(relaxc_session_keep_records(session, 7) == RELAXC_USAGE && MESSAGE_HAS("keep is 7, expected 0 or 1"));
  EXPECT(relaxc_session_keep_records(session, 1) == RELAXC_OK);
  for (int run = 0; run < 2; ++run) {
    shape[0] = 4 - run;
    EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) == RELAXC_OK);
    EXPECT(relaxc_session_records(session, &rows, &count) == RELAXC_OK && count == 1);
    EXPECT(strcmp(rows->kernel, "add") == 0 && rows->operations == 2.0 * (4 - run) && rows->bytes >= 2 * 8 * (4 - run));
    EXPECT(rows->size == sizeof *rows && rows->start_ns > 0 && rows->duration_ns >= 0);
  }
  records = 0;
  relaxc_session_profile(session, count_record, &records); /* in place of the records */
  EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) == RELAXC_OK && records == 1);
  EXPECT(relaxc_session_records(session, &rows, &count) == RELAXC_USAGE && rows == NULL);
  relaxc_session_release(session);
  relaxc_program_release(program);
}

/* Thread pools that break their promise: the run fails, and does not give what nobody has computed. */
static int four_workers(void* user) { return (void)user, 4; }

static void run_nothing(void* user, relaxc_task task, void* closure, int workers) {
  (void)user, (void)task, (void)closure, (void)workers;
}

static void run_others(void* user, relaxc_task task, void* closure, int workers) {
  (void)user;
  task(closure, -1);
  task(closure, workers + 100);
  task(closure, 0);
}

void check_wrong_pools(void) {
  relaxc_program* program =
      compiled("@R.function\ndef main(x: R.Tensor((\"n\", 512), \"float32\")):\n    return R.nn.softmax(R.exp(x))\n");
  relaxc_thread_pool pool = {four_workers, run_nothing, NULL};
  relaxc_session_options options = {.size = sizeof options, .thread_pool = &pool};
  static float in[512 * 512], out[512 * 512];
  int64_t shape[2] = {512, 512};
  DLTensor x = floats(in, 2, shape), y = floats(out, 2, shape);
  relaxc_session* session = session_of(program, &options);
  EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) == RELAXC_RUN_FAILED);
  EXPECT(MESSAGE_HAS("the thread pool of the host returned before the work was done"));
  relaxc_session_release(session);
  pool.run = run_others;
  session = session_of(program, &options);
  EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) == RELAXC_OK && fabsf(out[512 * 512 - 1] - 1.0f / 512) < 1e-6f);
  relaxc_session_release(session);
  relaxc_program_release(program);
}

static void* no_memory(void* user, size_t bytes, size_t alignment) {
  return (void)user, (void)bytes, (void)alignment, NULL;
}

void check_short_memory(void) {
  relaxc_program* program = compiled(TWICE);
  const relaxc_allocator allocator = {no_memory, count_free, NULL};
  relaxc_session_options options = {.size = sizeof options, .allocator = &allocator};
  relaxc_session* session = session_of(program, &options);
  float in[2] = {1, 2};
  int64_t shape[2] = {1, 2};
  DLTensor x = floats(in, 2, shape);
  DLManagedTensor* result = NULL;
  EXPECT(relaxc_run(session, NULL, &x, 1, &result, 1) == RELAXC_OUT_OF_MEMORY && result == NULL);
  relaxc_session_release(session);
  relaxc_program_release(program);
}
