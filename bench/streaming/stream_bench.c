/* How long a run of an artifact takes, beside a plain read of the artifact's bytes: a product of few rows should take
 * as long as reading its weights. Both run in turn, with as many threads. Usage: stream_bench ARTIFACT [THREADS
 * [ROUNDS]] The artifact has inputs of float32 with known shapes; `models.py` writes such models. */
#include <fcntl.h>
#include <pthread.h>
#include <relaxc/relaxc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { kMostThreads = 64, kMostInputs = 8, kMostRounds = 1000, kLine = 64, kAhead = 4096 };

typedef struct {
  const char *begin, *end;
  double sum;
} Part;

/* Reads memory with eight sums of 16 floats, and prefetches 4 KiB ahead: faster than without. */
static void* read_part(void* argument) {
  typedef float Vector __attribute__((vector_size(kLine), aligned(4)));
  Part* part = argument;
  Vector sums[8] = {{0}};
  for (const char* at = part->begin; at + 8 * kLine <= part->end; at += 8 * kLine) {
    for (int i = 0; i < 8; ++i) {
      __builtin_prefetch(at + kAhead + i * kLine);
      sums[i] += *(const Vector*)(at + i * kLine);
    }
  }
  for (int i = 0; i < 8; ++i) part->sum += (double)sums[i][0];
  return NULL;
}

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void read_all(const char* bytes, size_t size, int threads) {
  static Part parts[kMostThreads];
  static pthread_t ids[kMostThreads];
  const size_t each = size / (size_t)threads / kLine * kLine;
  for (int i = 0; i < threads; ++i) {
    parts[i] = (Part){bytes + each * (size_t)i, bytes + each * (size_t)(i + 1), 0};
    if (i > 0) pthread_create(&ids[i], NULL, read_part, &parts[i]);
  }
  read_part(&parts[0]);
  for (int i = 1; i < threads; ++i) pthread_join(ids[i], NULL);
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char** argv) {
  if (argc < 2) return fprintf(stderr, "usage: stream_bench ARTIFACT [THREADS [ROUNDS]]\n"), 1;
  const int threads = argc > 2 ? atoi(argv[2]) : 1, rounds = argc > 3 ? atoi(argv[3]) : 15;
  if (threads < 1 || threads > kMostThreads || rounds < 1 || rounds > kMostRounds)
    return fprintf(stderr, "expected 1 to %d threads and 1 to %d rounds\n", kMostThreads, kMostRounds), 1;
  const int file = open(argv[1], O_RDONLY);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0) return perror(argv[1]), 1;
  const size_t size = (size_t)status.st_size;
  const char* bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (bytes == MAP_FAILED) return perror("mmap"), 1;

  relaxc_program* program = NULL;
  relaxc_session* session = NULL;
  relaxc_session_options options = {.size = sizeof options, .num_threads = threads};
  if (relaxc_load(argv[1], NULL, &program) || relaxc_session_new(program, &options, &session))
    return fprintf(stderr, "%s\n", relaxc_error_message()), 1;
  DLTensor inputs[kMostInputs];
  const int32_t num_inputs = relaxc_num_inputs(program, NULL);
  if (num_inputs > kMostInputs) return fprintf(stderr, "expected at most %d inputs\n", kMostInputs), 1;
  for (int32_t i = 0; i < num_inputs; ++i) {
    const relaxc_value_info* info = relaxc_input(program, NULL, i);
    int64_t count = 1;
    int64_t* shape = malloc((size_t)info->rank * sizeof *shape);
    for (int32_t d = 0; d < info->rank; ++d) count *= shape[d] = info->dims[d].value;
    float* data = malloc((size_t)count * sizeof *data);
    for (int64_t k = 0; k < count; ++k) data[k] = (float)(k * 37 % 101 - 50) / 50;
    inputs[i] = (DLTensor){data, {kDLCPU, 0}, info->rank, info->dtype, shape, NULL, 0};
  }
  static double ours[kMostRounds], plain[kMostRounds], ratios[kMostRounds];
  for (int round = -1; round < rounds; ++round) {
    const double start = now_ms();
    DLManagedTensor* result = NULL;
    if (relaxc_run(session, NULL, inputs, num_inputs, &result, 1))
      return fprintf(stderr, "%s\n", relaxc_error_message()), 1;
    const double between = now_ms();
    read_all(bytes, size, threads);
    const double end = now_ms();
    result->deleter(result);
    if (round < 0) continue; /* it maps pages */
    ours[round] = between - start, plain[round] = end - between, ratios[round] = ours[round] / plain[round];
  }
  qsort(ours, (size_t)rounds, sizeof *ours, compare);
  qsort(plain, (size_t)rounds, sizeof *plain, compare);
  qsort(ratios, (size_t)rounds, sizeof *ratios, compare);
  const double gigabytes = (double)size * 1e-9;
  printf(
      "%s: %.2f GB, %d threads: run %.2f ms (%.1f GB/s), least %.2f; read %.2f ms (%.1f GB/s), least %.2f; run/read "
      "%.2f (of the least %.2f)\n",
      argv[1], gigabytes, threads, ours[rounds / 2], gigabytes / ours[rounds / 2] * 1e3, ours[0], plain[rounds / 2],
      gigabytes / plain[rounds / 2] * 1e3, plain[0], ratios[rounds / 2], ours[0] / plain[0]);
  relaxc_session_release(session);
  relaxc_program_release(program);
  return 0;
}
