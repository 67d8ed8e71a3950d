/* What a host in C can bring and ask for: an allocator, threads, a limit of memory, progress and cancellation of a
 * compilation, cancellation of a run, records of kernels, and values that are not tensors. Usage: host */
#include <relaxc/relaxc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

static const char kModule[] =
    "@I.ir_module\n"
    "class Module:\n"
    "    @R.function\n"
    "    def main(x: R.Tensor((\"n\", 64), \"float32\"), w: R.Tensor((64, 64), \"float32\")):\n"
    "        return R.nn.softmax(R.matmul(x, w))\n"
    "    @R.function\n"
    "    def words(x: R.Tensor((\"n\",), \"float32\")):\n"
    "        return R.string.from_numbers(x)\n";

/* ---- Memory: blocks may be freed on any thread, after the session, too. */
typedef struct memory {
  mtx_t lock;
  int blocks;
} memory;

static void count(memory* all, int change) {
  mtx_lock(&all->lock);
  all->blocks += change;
  mtx_unlock(&all->lock);
}

static void* allocate(void* user, size_t bytes, size_t alignment) {
  void* block = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (block) count(user, 1);
  return block;
}

static void free_block(void* user, void* block, size_t bytes) {
  (void)bytes;
  count(user, -1);
  free(block);
}

/* ---- Threads: those of your pool; here they are started for each task. */
enum { kWorkers = 2 };
typedef struct part {
  relaxc_task task;
  void* closure;
  int worker;
} part;

static int do_part(void* argument) {
  const part* mine = argument;
  mine->task(mine->closure, mine->worker);
  return 0;
}

static int num_workers(void* user) { return (void)user, kWorkers; }

static void run_on_workers(void* user, relaxc_task task, void* closure, int workers) {
  (void)user;
  thrd_t threads[kWorkers];
  part parts[kWorkers];
  int started = 0; /* the task may run on fewer threads than it asks for */
  for (int w = 1; w < workers; ++w) {
    parts[started] = (part){task, closure, w};
    if (thrd_create(&threads[started], do_part, &parts[started]) == thrd_success) ++started;
  }
  task(closure, 0);
  for (int i = 0; i < started; ++i) thrd_join(threads[i], NULL);
}

/* ---- A compilation that the host watches, and ends when it likes. */
typedef struct watch {
  char stage[16];
  volatile int32_t cancelled;
  int cancels; /* when programs are compiled */
} watch;

static void hear_progress(void* user, const relaxc_progress_info* info) {
  watch* mine = user;
  snprintf(mine->stage, sizeof mine->stage, "%s", info->stage);
  if (mine->cancels && strcmp(info->stage, "programs") == 0) mine->cancelled = 1;
}

static relaxc_status compile(watch* mine, relaxc_program** program) {
  const relaxc_compile_options options = {.size = sizeof options,
                                          .progress = hear_progress,
                                          .user = mine,
                                          .cancelled = &mine->cancelled};
  return relaxc_compile_memory(kModule, strlen(kModule), "host.py", &options, program);
}

/* ---- Runs */
static void cancel_run(void* session, const relaxc_kernel_record* record) {
  printf("cancelled behind %s\n", record->kernel);
  relaxc_session_cancel(session); /* any thread may call it */
}

static relaxc_status run(relaxc_session* session, int64_t rows) {
  static float x[32 * 64], w[64 * 64], y[32 * 64];
  int64_t shape[] = {rows, 64}, square[] = {64, 64};
  const DLTensor inputs[] = {{x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0},
                             {w, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, square, NULL, 0}};
  const DLTensor output = {y, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
  return relaxc_run_into(session, NULL, inputs, 2, &output, 1);
}

static relaxc_status print_words(relaxc_session* session) {
  float numbers[] = {1, 2.5f};
  int64_t shape[] = {2};
  const DLTensor tensor = {numbers, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0};
  relaxc_any *input = NULL, *output = NULL;
  relaxc_status status = relaxc_any_tensor(&tensor, &input); /* a copy */
  if (status == RELAXC_OK) {
    const relaxc_any* inputs[] = {input};
    status = relaxc_run_values(session, "words", inputs, 1, &output, 1);
  }
  for (int64_t i = 0; i < 2 && status == RELAXC_OK; ++i) {
    const char* text = NULL;
    size_t length = 0;
    status = relaxc_any_get_string(output, i, &text, &length);
    if (status == RELAXC_OK) printf("word %.*s\n", (int)length, text); /* it does not end in a zero */
  }
  relaxc_any_release(input);
  relaxc_any_release(output);
  return status;
}

int main(void) {
  relaxc_program* program = NULL;
  relaxc_session *session = NULL, *small = NULL;
  watch impatient = {.cancels = 1}, patient = {.cancels = 0};
  if (compile(&impatient, &program) == RELAXC_CANCELLED) printf("the first compilation was cancelled\n");
  if (compile(&patient, &program)) goto failed;
  printf("the second one ended with its %s\n", patient.stage);

  memory all = {.blocks = 0};
  mtx_init(&all.lock, mtx_plain);
  const relaxc_allocator allocator = {allocate, free_block, &all};
  const relaxc_thread_pool threads = {num_workers, run_on_workers, NULL};
  const relaxc_session_options options = {.size = sizeof options, .allocator = &allocator, .thread_pool = &threads};
  if (relaxc_session_new(program, &options, &session)) goto failed;
  relaxc_session_profile(session, cancel_run, session);
  if (run(session, 32) == RELAXC_CANCELLED) printf("%s\n", relaxc_error_message());
  relaxc_session_profile(session, NULL, NULL);

  const relaxc_kernel_record* records = NULL;
  int32_t num_records = 0;
  if (relaxc_session_keep_records(session, 1) || run(session, 32) ||
      relaxc_session_records(session, &records, &num_records))
    goto failed;
  for (int32_t i = 0; i < num_records; ++i) printf("kernel %s\n", records[i].kernel);
  if (print_words(session)) goto failed;

  const relaxc_session_options limited = {.size = sizeof limited, .num_threads = 1, .memory_limit = 1000};
  if (relaxc_session_new(program, &limited, &small)) goto failed;
  if (run(small, 32) == RELAXC_OUT_OF_MEMORY) printf("%s\n", relaxc_error_message());

  relaxc_session_release(small);
  relaxc_session_release(session);
  relaxc_program_release(program);
  printf("%d blocks are left\n", all.blocks);
  return 0;
failed:
  return fprintf(stderr, "%s\n", relaxc_error_message()), 1;
}
