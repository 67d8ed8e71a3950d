/* What a host in C may do, and what it may do wrong. A failure prints its line; the exit code counts them. */
#include "api/relaxc.h"

#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures = 0;
#define EXPECT(condition)                                                                  \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      fprintf(stderr, "line %d: %s [%s]\n", __LINE__, #condition, relaxc_error_message()); \
      ++failures;                                                                          \
    }                                                                                      \
  } while (0)
#define MESSAGE_HAS(text) (strstr(relaxc_error_message(), text) != NULL)

static relaxc_program* compiled(const char* text) {
  relaxc_program* program = NULL;
  EXPECT(relaxc_compile_memory(text, strlen(text), "module.py", NULL, &program) == RELAXC_OK);
  return program;
}
static relaxc_session* session_of(relaxc_program* program, const relaxc_session_options* options) {
  relaxc_session* session = NULL;
  EXPECT(relaxc_session_new(program, options, &session) == RELAXC_OK);
  return session;
}
static DLTensor floats(float* data, int32_t rank, int64_t* shape) {
  DLTensor tensor = {data, {kDLCPU, 0}, rank, {kDLFloat, 32, 1}, shape, NULL, 0};
  return tensor;
}

#define TWICE "@R.function\ndef main(x: R.Tensor((\"n\", 2), \"float32\")):\n    return R.add(x, x)\n"

static void check_declarations(void) {
  relaxc_program* program = compiled(
      "@R.function\ndef main(x: R.Tensor((\"n\", \"n * 2\"), \"float32\"), k: R.Prim(\"int64\")):\n"
      "    return (R.add(x, x), R.shape_of(x))\n");
  EXPECT(relaxc_num_functions(program) == 1 && strcmp(relaxc_function_name(program, 0), "main") == 0);
  EXPECT(relaxc_function_name(program, 1) == NULL);
  EXPECT(relaxc_num_inputs(program, NULL) == 2 && relaxc_num_outputs(program, "main") == 2);
  const relaxc_value_info* x = relaxc_input(program, NULL, 0);
  EXPECT(strcmp(x->name, "x") == 0 && strcmp(x->type, "float32[n, n * 2]") == 0);
  EXPECT(x->kind == RELAXC_TENSOR && x->has_dtype && x->dtype.code == kDLFloat && x->dtype.bits == 32);
  EXPECT(x->rank == 2 && x->dims[0].value == -1 && strcmp(x->dims[0].text, "n") == 0);
  EXPECT(strcmp(x->dims[1].text, "n * 2") == 0);
  EXPECT(relaxc_input(program, NULL, 1)->kind == RELAXC_INT);
  EXPECT(relaxc_output(program, NULL, 1)->kind == RELAXC_SHAPE);
  EXPECT(relaxc_input(program, NULL, 2) == NULL && MESSAGE_HAS("input 2 does not exist: there are 2"));
  EXPECT(relaxc_num_inputs(program, "other") == -1 && MESSAGE_HAS("function 'other' does not exist"));
  EXPECT(relaxc_program_note(program, "no such key") == NULL);
  int32_t notes = 0;
  while (relaxc_program_note_key(program, notes)) ++notes;
  EXPECT(notes > 0 && relaxc_program_note(program, relaxc_program_note_key(program, notes - 1)) != NULL);
  EXPECT(relaxc_program_note_key(program, -1) == NULL && relaxc_program_note_key(NULL, 0) == NULL);
  relaxc_program_release(program);
}

/* The size of a struct of options: that of one of its versions, and what a library does not know is zero. */
static void check_sizes(void) {
  struct {
    relaxc_compile_options known;
    char later[8192];
  } options;
  memset(&options, 0, sizeof options);
  relaxc_program* program = NULL;
  const size_t known = sizeof options.known;
  const size_t cut[] = {0,         1,         8,        12,      16, offsetof(relaxc_compile_options, range_names) - 8,
                        known - 1, known - 4, 1u << 20, SIZE_MAX};
  for (size_t i = 0; i < sizeof cut / sizeof *cut; ++i) {
    options.known.size = cut[i];
    EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "module.py", &options.known, &program) == RELAXC_USAGE);
    EXPECT(MESSAGE_HAS("size of relaxc_compile_options is ") && MESSAGE_HAS("use sizeof(relaxc_compile_options)"));
  }
  const size_t right[] = {offsetof(relaxc_compile_options, range_names),
                          offsetof(relaxc_compile_options, precision),
                          offsetof(relaxc_compile_options, in_place),
                          offsetof(relaxc_compile_options, type_names),
                          known,
                          known + 8};
  for (size_t i = 0; i < sizeof right / sizeof *right; ++i) {
    options.known.size = right[i];
    EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "module.py", &options.known, &program) == RELAXC_OK);
    relaxc_program_release(program);
  }
  options.later[7] = 1;
  EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "module.py", &options.known, &program) == RELAXC_USAGE);
  EXPECT(MESSAGE_HAS("has a value that is not zero behind the members that this library knows"));
}

/* A name that does not exist is the host's to mend, whatever it is the name of. */
static void check_names(void) {
  const char* name[] = {"nosuch"};
  const char* type[] = {"float32[2]"};
  const char* form[] = {"float[2"};
  const char* input[] = {"x"};
  const int64_t size = 1;
  const relaxc_compile_options wrong[] = {
      {.target = "nosuch"},
      {.target = "triple=aarch64-linux-gnu,cpu=nosuch"},
      {.target = "x86-64,+nosuch"},
      {.passes = "simplify,nosuch"},
      {.function = "nosuch"},
      {.precision = "nosuch"},
      {.dim_names = name, .dim_values = &size, .num_dims = 1},
      {.range_names = name, .range_least = &size, .range_most = &size, .num_ranges = 1},
      {.type_names = name, .types = type, .num_types = 1},
      {.type_names = input, .types = form, .num_types = 1},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    relaxc_compile_options options = wrong[i];
    options.size = sizeof options;
    relaxc_program* program = NULL;
    EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "module.py", &options, &program) == RELAXC_USAGE);
    EXPECT(relaxc_error_count() == 1 && (MESSAGE_HAS("nosuch") || MESSAGE_HAS("'float[2': expected a type")));
  }
}

/* Types of inputs that the text leaves open, and functions that are linked in. */
static void check_types_and_links(const char* folder) {
  const char* open = "@R.function\ndef main(x: R.Tensor(ndim=2), y: R.Tensor(ndim=2)):\n    return R.add(x, y)\n";
  const char* names[] = {"x", "y"};
  const char* types[] = {"float64[n, 3]", "float64[n, 3]"};
  relaxc_compile_options options = {.size = sizeof options, .type_names = names, .types = types, .num_types = 2};
  relaxc_program* program = NULL;
  EXPECT(relaxc_compile_memory(open, strlen(open), "open.py", &options, &program) == RELAXC_OK);
  EXPECT(program && strcmp(relaxc_input(program, NULL, 1)->type, "float64[n, 3]") == 0);
  relaxc_program_release(program);
  options.types = NULL;
  EXPECT(relaxc_compile_memory(open, strlen(open), "open.py", &options, &program) == RELAXC_USAGE);
  EXPECT(MESSAGE_HAS("types: there are 2, at a null pointer"));
  const char* hole[] = {"float64[n, 3]", NULL};
  options.types = hole;
  EXPECT(relaxc_compile_memory(open, strlen(open), "open.py", &options, &program) == RELAXC_USAGE);
  EXPECT(MESSAGE_HAS("types: item 1 (counted from 0) is a null pointer"));

  char source[4096], object[4096], command[16384];
  snprintf(source, sizeof source, "%s/linked.c", folder);
  snprintf(object, sizeof object, "%s/linked.o", folder);
  FILE* out = fopen(source, "w");
  fputs(
      "float of_host(float); int plus(const float* x, float* y) { return *y = of_host(*x), 0; }\n"
      "#ifdef MORE\nint of_other(void); int more(void) { return of_other(); }\n#endif\n",
      out);
  fclose(out);
  snprintf(command, sizeof command, "cc -c -fPIC '%s' -o '%s'", source, object);
  EXPECT(system(command) == 0);
  const char* calls =
      "@I.ir_module\nclass Module:\n"
      "    @T.prim_func\n    def each(x: T.Buffer((3,), \"float32\"), y: T.Buffer((3,), \"float32\")):\n"
      "        for i in range(3):\n            T.evaluate(T.call_extern(\"int32\", \"plus\", T.address_of(x[i]), "
      "T.address_of(y[i])))\n"
      "    @R.function\n    def main(x: R.Tensor((3,), \"float32\")):\n"
      "        return R.call_tir(Module.each, (x,), out_sinfo=R.Tensor((3,), \"float32\"))\n";
  const char* linked[] = {object};
  options = (relaxc_compile_options){.size = sizeof options, .linked = linked, .num_linked = 1};
  EXPECT(relaxc_compile_memory(calls, strlen(calls), "calls.py", &options, &program) == RELAXC_OK);
  relaxc_session* session = session_of(program, NULL);
  float in[3] = {1, 2, 3}, result[3] = {0};
  int64_t shape[1] = {3};
  DLTensor x = floats(in, 1, shape), y = floats(result, 1, shape);
  EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) == RELAXC_OK && result[2] == 30);
  relaxc_session_release(session);
  relaxc_program_release(program);
  /* a function that this program does not have */
  snprintf(command, sizeof command, "cc -c -fPIC -DMORE '%s' -o '%s'", source, object);
  EXPECT(system(command) == 0);
  EXPECT(relaxc_compile_memory(calls, strlen(calls), "calls.py", &options, &program) == RELAXC_INVALID);
  EXPECT(MESSAGE_HAS("linked.o' needs 'of_other'") && MESSAGE_HAS("(--host-symbols of_other)"));
  const char* host_symbols[] = {"of_*"};
  options.host_symbols = host_symbols;
  options.num_host_symbols = 1;
  EXPECT(relaxc_compile_memory(calls, strlen(calls), "calls.py", &options, &program) == RELAXC_INVALID);
  EXPECT(MESSAGE_HAS("needs 'of_other', which neither the artifact nor this program has"));
}
/* Of this program, which shows its symbols. */
__attribute__((visibility("default"))) float of_host(float x);
float of_host(float x) { return 10 * x; }

/* A module as text, with its constants or without. */
static void check_constants(const char* folder) {
  const char* text =
      "@R.function\ndef main(x: R.Tensor((2,), \"float32\")):\n    return R.add(x, R.const([1, 2], \"float32\"))\n";
  char file[4096];
  snprintf(file, sizeof file, "%s/constants.safetensors", folder);
  relaxc_compile_options options = {.size = sizeof options, .passes = ""};
  char* printed = NULL;
  EXPECT(relaxc_module_text(text, strlen(text), "m.py", &options, &printed) == RELAXC_OK);
  EXPECT(strstr(printed, "R.const([1.0, 2.0], \"float32\")") && !strstr(printed, "metadata"));
  relaxc_string_release(printed);
  options.inline_elements = -1;
  EXPECT(relaxc_module_text(text, strlen(text), "m.py", &options, &printed) == RELAXC_OK);
  EXPECT(strstr(printed, "this text cannot be read back"));
  relaxc_string_release(printed);
  options.constants = file;
  EXPECT(relaxc_module_text(text, strlen(text), "m.py", &options, &printed) == RELAXC_OK);
  EXPECT(strstr(printed, "metadata = I.load_safetensors(\"constants.safetensors\")"));
  EXPECT(access(file, R_OK) == 0);
  relaxc_string_release(printed);
  options.constants = "/no/such/folder/c.safetensors";
  EXPECT(relaxc_module_text(text, strlen(text), "m.py", &options, &printed) == RELAXC_WRITE_FAILED && !printed);
  options.inline_elements = -2;
  EXPECT(relaxc_module_text(text, strlen(text), "m.py", &options, &printed) == RELAXC_USAGE);
  EXPECT(MESSAGE_HAS("inline_elements is -2"));
}

static char warnings[4096];
static void keep_warnings(void* user, relaxc_log_level level, const char* line) {
  (void)user;
  if (level == RELAXC_LOG_WARNING) strncat(warnings, line, sizeof warnings - strlen(warnings) - 1);
}

/* Files of kernels: what is said of them is logged, and what is no text is one error. */
static void check_kernels(const char* folder) {
  char file[4096];
  const char* kernels[] = {file};
  relaxc_compile_options options = {.size = sizeof options, .kernels = kernels, .num_kernels = 1, .log = keep_warnings};
  snprintf(file, sizeof file, "%s/race.py", folder);
  FILE* out = fopen(file, "w");
  fputs(
      "@S.implements(\"add\")\n@T.prim_func\n"
      "def mine(x: T.Buffer((\"n\", 2), \"float32\"), w: T.Buffer((\"n\", 2), \"float32\"), "
      "y: T.Buffer((\"n\", 2), \"float32\")):\n"
      "    for l in T.parallel(n):\n        y[0, 0] = x[l, 0] + w[l, 0]\n",
      out);
  fclose(out);
  relaxc_program* program = NULL;
  EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "module.py", &options, &program) == RELAXC_OK);
  EXPECT(strstr(warnings, "several iterations of T.parallel loop 'l' write y[0, 0]") != NULL);
  relaxc_program_release(program);
  snprintf(file, sizeof file, "%s/libnone.so", folder);
  out = fopen(file, "w");
  fputs("\177ELF is no library", out);
  fclose(out);
  EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "module.py", &options, &program) != RELAXC_OK);
  EXPECT(MESSAGE_HAS("libnone.so") && !MESSAGE_HAS("character"));
  snprintf(file, sizeof file, "%s/bytes.py", folder);
  out = fopen(file, "w");
  fwrite("\x93NUMPY\x01\x00\x01\x02\x03", 1, 11, out);
  fclose(out);
  EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "module.py", &options, &program) != RELAXC_OK);
  EXPECT(MESSAGE_HAS("expected kernels or schedules as text, or a library of C kernels"));
}

static void check_runs(void) {
  relaxc_program* program = compiled(TWICE);
  relaxc_session* session = session_of(program, NULL);
  relaxc_program_release(program); /* the session keeps it */
  float in[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, out[12] = {0};
  int64_t shape[2] = {3, 2};
  DLTensor x = floats(in, 2, shape), y = floats(out, 2, shape);
  EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) == RELAXC_OK && out[0] == 2 && out[5] == 12 && out[6] == 0);
  shape[0] = 6;
  EXPECT(relaxc_run_into(session, "main", &x, 1, &y, 1) == RELAXC_OK && out[11] == 24);
  /* every second row backwards: strides, and a first element inside of the memory */
  int64_t rows[2] = {3, 2}, backwards[2] = {-4, 1};
  DLTensor strided = floats(in, 2, rows);
  strided.strides = backwards;
  strided.byte_offset = 10 * sizeof(float);
  DLTensor strided_out = floats(out, 2, rows);
  int64_t columns[2] = {1, 3};
  strided_out.strides = columns;
  memset(out, 0, sizeof out);
  EXPECT(relaxc_run_into(session, NULL, &strided, 1, &strided_out, 1) == RELAXC_OK);
  EXPECT(out[0] == 22 && out[3] == 24 && out[1] == 14 && out[2] == 6 && out[5] == 8 && out[6] == 0);
  /* results in the runtime's memory outlive the session */
  DLManagedTensor* result = NULL;
  shape[0] = 2;
  EXPECT(relaxc_run(session, NULL, &x, 1, &result, 1) == RELAXC_OK && result != NULL);
  relaxc_session_release(session);
  EXPECT(result->dl_tensor.ndim == 2 && result->dl_tensor.shape[0] == 2 && ((float*)result->dl_tensor.data)[3] == 8);
  result->deleter(result);
}

static void check_errors(void) {
  relaxc_program* program = compiled(TWICE);
  relaxc_session* session = session_of(program, NULL);
  float in[6] = {0}, out[6] = {0};
  int64_t shape[2] = {2, 3}, fitting[2] = {3, 2}, negative[2] = {-1, 2};
  DLTensor x = floats(in, 2, shape), y = floats(out, 2, fitting);
  EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) == RELAXC_RUN_FAILED && MESSAGE_HAS("input 'x': dim 1 is 3"));
  DLTensor two[2] = {y, y};
  EXPECT(relaxc_run_into(session, NULL, two, 2, &y, 1) == RELAXC_USAGE && MESSAGE_HAS("takes 1 inputs, got 2"));
  EXPECT(relaxc_run_into(session, NULL, &y, INT32_MAX, &y, 1) == RELAXC_USAGE);
  EXPECT(relaxc_run_into(session, "other", &y, 1, &y, 1) == RELAXC_USAGE && MESSAGE_HAS("'other' does not exist"));
  EXPECT(relaxc_run_into(session, NULL, &y, 1, two, 2) == RELAXC_USAGE && MESSAGE_HAS("1 results, got places for 2"));
  DLTensor deep = y;
  deep.ndim = 1000000;
  EXPECT(relaxc_run_into(session, NULL, &deep, 1, &y, 1) == RELAXC_RUN_FAILED && MESSAGE_HAS("input 'x': rank"));
  EXPECT(relaxc_run_into(session, NULL, NULL, 1, &y, 1) == RELAXC_USAGE);
  EXPECT(relaxc_run_into(NULL, NULL, &y, 1, &y, 1) == RELAXC_USAGE && MESSAGE_HAS("session is a null pointer"));
  x.shape = negative;
  EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) != RELAXC_OK);
  EXPECT(MESSAGE_HAS("input 0 (counted from 0) 'x': dim 0 of a tensor is -"));
  x.shape = fitting;
  x.dtype.bits = 33;
  EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) != RELAXC_OK && MESSAGE_HAS("bits 33"));
  EXPECT(MESSAGE_HAS("input 0 (counted from 0) 'x': "));
  x.dtype.bits = 64;
  x.shape = fitting;
  x.data = NULL;
  EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) == RELAXC_USAGE && MESSAGE_HAS("null pointer"));
  x = floats(in, 2, fitting);
  x.device.device_type = kDLCUDA;
  EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) == RELAXC_USAGE && MESSAGE_HAS("device type 2"));
  EXPECT(MESSAGE_HAS("input 0 (counted from 0) 'x': it is on device type"));
  DLManagedTensor* results[2] = {&(DLManagedTensor){.deleter = NULL}, NULL};
  EXPECT(relaxc_run(session, NULL, &y, 1, results, 2) == RELAXC_USAGE && results[0] == NULL);
  relaxc_session_release(session);
  relaxc_program_release(program);

  relaxc_program* none = (relaxc_program*)16;
  EXPECT(relaxc_load("/nowhere/model.so", NULL, &none) == RELAXC_INVALID && none == NULL);
  EXPECT(MESSAGE_HAS("/nowhere/model.so"));
  EXPECT(relaxc_load_memory("no artifact", 11, NULL, &none) == RELAXC_INVALID);
  EXPECT(MESSAGE_HAS("the artifact in the caller's memory: error: not an artifact: it is text"));
  EXPECT(relaxc_load(NULL, NULL, &none) == RELAXC_USAGE);
  relaxc_load_options bad = {.size = 1};
  EXPECT(relaxc_load("x", &bad, &none) == RELAXC_USAGE && MESSAGE_HAS("sizeof(relaxc_load_options)"));
  const char* wrong = "@R.function\ndef main(x: R.Tensor((2,), \"float32\")):\n    return R.ad(x, x)\n";
  EXPECT(relaxc_compile_memory(wrong, strlen(wrong), "wrong.py", NULL, &none) == RELAXC_INVALID && none == NULL);
  relaxc_error_place place;
  EXPECT(relaxc_error_count() >= 1 && relaxc_error_at(0, &place) && !relaxc_error_at(relaxc_error_count(), &place));
  EXPECT(strcmp(place.file, "wrong.py") == 0 && place.line == 3 && place.column == 12 && place.node == NULL);
  EXPECT(relaxc_compile_memory("no model", 8, "model.onnx", NULL, &none) == RELAXC_INVALID);
  EXPECT(MESSAGE_HAS("model.onnx: error: not an ONNX model"));
  relaxc_compile_options options = {.size = sizeof options};
  options.target = "no-such-target";
  EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "m.py", &options, &none) == RELAXC_USAGE);
  EXPECT(MESSAGE_HAS("no-such-target"));
  options = (relaxc_compile_options){.size = sizeof options, .num_dims = 1};
  EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "m.py", &options, &none) == RELAXC_USAGE);
  EXPECT(MESSAGE_HAS("dim_names: there are 1, at a null pointer"));
  options = (relaxc_compile_options){.size = sizeof options, .opt_level = -1}; /* level 0 */
  EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "m.py", &options, &none) == RELAXC_OK);
  relaxc_program_release(none);
  options = (relaxc_compile_options){.size = sizeof options, .opt_level = 9};
  EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "m.py", &options, &none) == RELAXC_USAGE);
  options = (relaxc_compile_options){.size = sizeof options, .winograd_error = NAN};
  EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "m.py", &options, &none) == RELAXC_USAGE);
  EXPECT(MESSAGE_HAS("winograd_error is nan, expected a finite number"));
  EXPECT(relaxc_compile_memory("a(", 2, "m.py", NULL, &none) == RELAXC_INVALID);
  EXPECT(MESSAGE_HAS("was never closed"));
  options = (relaxc_compile_options){.size = sizeof options, .precision = "half"};
  EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "m.py", &options, &none) == RELAXC_USAGE);
  EXPECT(MESSAGE_HAS("there is no precision 'half'; expected one of fp32, bf16, fp16, mixed"));
  options = (relaxc_compile_options){.size = sizeof options, .num_threads = -1};
  EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "m.py", &options, &none) == RELAXC_USAGE);
  EXPECT(relaxc_compile_memory(NULL, 0, "m.onnx", NULL, &none) == RELAXC_INVALID);
  EXPECT(relaxc_compile_memory(NULL, 100000000, "m.onnx", NULL, &none) == RELAXC_USAGE);
  const int32_t cancelled = 1;
  options = (relaxc_compile_options){.size = sizeof options, .cancelled = &cancelled};
  EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "m.py", &options, &none) == RELAXC_CANCELLED && none == NULL);
  relaxc_program_release(NULL);
  relaxc_session_release(NULL);
  relaxc_any_release(NULL);
}

static void check_files(const char* folder) {
  char path[4096], cache[4096];
  snprintf(path, sizeof path, "%s/twice.so", folder);
  snprintf(cache, sizeof cache, "%s/cache", folder);
  relaxc_program* program = compiled(TWICE);
  EXPECT(relaxc_program_save(program, "/no/such/folder/model.so") == RELAXC_WRITE_FAILED);
  EXPECT(MESSAGE_HAS("/no/such/folder"));
  EXPECT(relaxc_program_save(program, "/dev/full") == RELAXC_WRITE_FAILED && MESSAGE_HAS("No space left"));
  EXPECT(relaxc_compile_to_file("/no/such/model.py", NULL, "/no/such/folder/model.so") == RELAXC_INVALID);
  EXPECT(relaxc_program_save(program, path) == RELAXC_OK);
  relaxc_program_release(program);
  EXPECT(relaxc_load(path, NULL, &program) == RELAXC_OK);
  FILE* file = fopen(path, "rb");
  EXPECT(file != NULL && fseek(file, 0, SEEK_END) == 0);
  size_t size = (size_t)ftell(file);
  rewind(file);
  char* bytes = malloc(size);
  EXPECT(fread(bytes, 1, size, file) == size);
  fclose(file);
  relaxc_program* copy = NULL;
  EXPECT(relaxc_load_memory(bytes, size, NULL, &copy) == RELAXC_OK);
  bytes[size / 2] ^= 1;
  relaxc_program* damaged = NULL;
  EXPECT(relaxc_load_memory(bytes, size, NULL, &damaged) == RELAXC_INVALID && damaged == NULL);
  EXPECT(MESSAGE_HAS("the artifact in the caller's memory: error: ") && !MESSAGE_HAS("/proc/"));
  bytes[size / 2] ^= 1;
  bytes[1] ^= 1; /* not a shared object */
  const relaxc_load_options trusting = {.size = sizeof trusting, .trust_contents = 1};
  EXPECT(relaxc_load_memory(bytes, size, &trusting, &damaged) == RELAXC_INVALID && damaged == NULL);
  EXPECT(MESSAGE_HAS("the artifact in the caller's memory: error: the machine code does not load: "));
  EXPECT(!MESSAGE_HAS("/proc/"));
  free(bytes);
  float in[2] = {1, 2}, out[2] = {0};
  int64_t shape[2] = {1, 2};
  DLTensor x = floats(in, 2, shape), y = floats(out, 2, shape);
  relaxc_session* session = session_of(copy, NULL);
  EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) == RELAXC_OK && out[1] == 4);
  relaxc_session_release(session);
  EXPECT(relaxc_program_retain(copy) == copy);
  relaxc_program_release(copy);
  relaxc_program_release(copy);
  relaxc_program_release(program);
  /* from a file, twice: the second one comes from the cache */
  snprintf(path, sizeof path, "%s/twice.py", folder);
  file = fopen(path, "w");
  fputs(TWICE, file);
  fclose(file);
  relaxc_compile_options options = {.size = sizeof options};
  options.cache = cache;
  for (int i = 0; i < 2; ++i) {
    EXPECT(relaxc_compile(path, &options, &program) == RELAXC_OK);
    EXPECT(strcmp(relaxc_input(program, NULL, 0)->type, "float32[n, 2]") == 0);
    relaxc_program_release(program);
  }
  const char* names[] = {"n"};
  const int64_t values[] = {5};
  options.dim_names = names;
  options.dim_values = values;
  options.num_dims = 1;
  EXPECT(relaxc_compile(path, &options, &program) == RELAXC_OK);
  EXPECT(strcmp(relaxc_input(program, NULL, 0)->type, "float32[5, 2]") == 0);
  relaxc_program_release(program);
  relaxc_compile_options ranged = {.size = sizeof ranged};
  const int64_t least[] = {1}, most[] = {8}, below[] = {0};
  ranged.range_names = names;
  ranged.range_least = least;
  ranged.range_most = most;
  ranged.num_ranges = 1;
  EXPECT(relaxc_compile(path, &ranged, &program) == RELAXC_OK);
  EXPECT(relaxc_input(program, NULL, 0)->dims[0].least == 1 && relaxc_input(program, NULL, 0)->dims[0].most == 8);
  EXPECT(relaxc_input(program, NULL, 0)->dims[1].least == 0 &&
         relaxc_input(program, NULL, 0)->dims[1].most == INT64_MAX);
  relaxc_program_release(program);
  ranged.range_most = below;
  EXPECT(relaxc_compile(path, &ranged, &program) == RELAXC_USAGE && MESSAGE_HAS("dim 'n' may be 1 to 0"));
  char artifact[4096];
  snprintf(artifact, sizeof artifact, "%s/fixed.so", folder);
  EXPECT(relaxc_compile_to_file(path, &options, artifact) == RELAXC_OK);
  EXPECT(relaxc_load(artifact, NULL, &program) == RELAXC_OK);
  relaxc_program_release(program);
  char* text = NULL;
  options.passes = "simplify";
  EXPECT(relaxc_module_text(NULL, 0, path, &options, &text) == RELAXC_OK && strstr(text, "R.Tensor((5, 2)") != NULL);
  relaxc_string_release(text);
  const char* product =
      "@R.function\ndef main(x: R.Tensor((2, 2), \"float32\")):\n"
      "    return R.matmul(x, R.const([[1, 2], [3, 4]], \"float32\"))\n";
  relaxc_compile_options narrow = {.size = sizeof narrow, .target = "cpu=znver5", .passes = "lower_precision"};
  narrow.precision = "bf16";
  EXPECT(relaxc_module_text(product, strlen(product), "p.py", &narrow, &text) == RELAXC_OK);
  EXPECT(strstr(text, "\"bfloat16\"") != NULL);
  relaxc_string_release(text);
}

static int notes = 0;
static void count_note(void* user, relaxc_log_level level, const char* message) {
  (void)user, (void)level;
  fprintf(stderr, "%s\n", message);
  ++notes;
}
/* Programs from a cache, all of them kept, while the compiler opens and closes their files: each has its own code. */
static void check_many_programs(const char* folder) {
  static const char* const operators[] = {"add", "subtract", "multiply", "maximum"};
  static const float expected[] = {5, -1, 6, 3};
  enum { kPrograms = 4 };
  relaxc_program* programs[kPrograms] = {NULL};
  char path[4096], cache[4096];
  snprintf(cache, sizeof cache, "%s/many", folder);
  relaxc_compile_options options = {.size = sizeof options, .cache = cache, .log = count_note};
  for (int i = 0; i < kPrograms; ++i) {
    snprintf(path, sizeof path, "%s/%s.py", folder, operators[i]);
    FILE* file = fopen(path, "w");
    fprintf(file,
            "@R.function\ndef main(x: R.Tensor((2,), \"float32\"), y: R.Tensor((2,), \"float32\")):\n"
            "    return R.%s(x, y)\n",
            operators[i]);
    fclose(file);
    EXPECT(relaxc_compile(path, &options, &programs[i]) == RELAXC_OK);
    relaxc_program* other = NULL;
    EXPECT(relaxc_compile(path, &options, &other) == RELAXC_OK);
    relaxc_program_release(other);
    relaxc_program_release(compiled(TWICE));
  }
  EXPECT(notes == 0); /* such as that an artifact is not kept, for a kernel is missing in it */
  for (int i = 0; i < kPrograms; ++i) {
    float x[2] = {2, 2}, y[2] = {3, 3}, out[2] = {0};
    int64_t shape[1] = {2};
    DLTensor inputs[2] = {floats(x, 1, shape), floats(y, 1, shape)}, output = floats(out, 1, shape);
    relaxc_session* session = session_of(programs[i], NULL);
    EXPECT(relaxc_run_into(session, NULL, inputs, 2, &output, 1) == RELAXC_OK && out[1] == expected[i]);
    relaxc_session_release(session);
    relaxc_program_release(programs[i]);
  }
}

static void check_values(void) {
  relaxc_program* program = compiled(
      "@R.function\ndef main(s: R.Sequence(R.Tensor((2,), \"float32\")), k: R.Prim(\"int64\"),\n"
      "         o: R.Optional(R.Tensor((2,), \"float32\")), t: R.Tensor((2,), \"string\"),\n"
      "         p: R.Tuple(R.Tensor((2,), \"int64\"), R.Prim(\"float64\"))):\n"
      "    return (s, k, o, t, p)\n");
  relaxc_session* session = session_of(program, NULL);
  float data[2] = {1, 2};
  int64_t numbers[2] = {7, 8}, shape[1] = {2};
  DLTensor x = floats(data, 1, shape), n = x;
  n.data = numbers;
  n.dtype = (DLDataType){kDLInt, 64, 1};
  const char* words[2] = {"one", "zwei"};
  relaxc_any *item, *inputs[5], *number, *half, *outputs[6];
  EXPECT(relaxc_any_tensor(&x, &item) == RELAXC_OK);
  const relaxc_any* items[2] = {item, item};
  EXPECT(relaxc_any_of(RELAXC_SEQUENCE, items, 2, &inputs[0]) == RELAXC_OK);
  EXPECT(relaxc_any_int(-3, &inputs[1]) == RELAXC_OK);
  EXPECT(relaxc_any_none(&inputs[2]) == RELAXC_OK);
  EXPECT(relaxc_any_strings(words, NULL, shape, 1, &inputs[3]) == RELAXC_OK);
  EXPECT(relaxc_any_tensor(&n, &number) == RELAXC_OK && relaxc_any_double(0.5, &half) == RELAXC_OK);
  const relaxc_any* fields[2] = {number, half};
  EXPECT(relaxc_any_of(RELAXC_TUPLE, fields, 2, &inputs[4]) == RELAXC_OK);
  EXPECT(relaxc_run_values(session, NULL, (const relaxc_any* const*)inputs, 5, outputs, 6) == RELAXC_OK);
  int32_t count = 0, rank = 0;
  int64_t integer = 0;
  double real = 0;
  EXPECT(relaxc_any_kind(outputs[0]) == RELAXC_SEQUENCE && relaxc_any_num_items(outputs[0], &count) == RELAXC_OK);
  EXPECT(count == 2);
  relaxc_any* part = NULL;
  DLManagedTensor* tensor = NULL;
  EXPECT(relaxc_any_item(outputs[0], 1, &part) == RELAXC_OK && relaxc_any_get_tensor(part, &tensor) == RELAXC_OK);
  EXPECT(((float*)tensor->dl_tensor.data)[1] == 2);
  tensor->deleter(tensor);
  EXPECT(strcmp(relaxc_any_describe(part), "float32[2]") == 0);
  relaxc_any_release(part);
  EXPECT(relaxc_any_item(outputs[0], 2, &part) == RELAXC_USAGE && part == NULL);
  EXPECT(relaxc_any_item(outputs[0], 0, NULL) == RELAXC_USAGE && MESSAGE_HAS("item is a null pointer"));
  relaxc_any* seven = NULL;
  EXPECT(relaxc_any_int(7, &seven) == RELAXC_OK && relaxc_any_get_double(seven, &real) == RELAXC_USAGE);
  EXPECT(MESSAGE_HAS("the value is 7 (int), expected a double; read it by relaxc_any_get_int"));
  relaxc_any_release(seven);
  EXPECT(relaxc_any_get_int(outputs[1], &integer) == RELAXC_OK && integer == -3);
  EXPECT(relaxc_any_get_double(outputs[1], &real) == RELAXC_USAGE);
  EXPECT(relaxc_any_kind(outputs[2]) == RELAXC_NONE);
  const char* text = NULL;
  size_t length = 0;
  EXPECT(relaxc_any_get_string(outputs[3], 1, &text, &length) == RELAXC_OK && length == 4 && !memcmp(text, "zwei", 4));
  EXPECT(relaxc_any_get_string(outputs[3], 2, &text, &length) == RELAXC_USAGE);
  const int64_t* dims = NULL;
  DLDataType dtype;
  EXPECT(relaxc_any_get_shape(outputs[3], &dims, &rank, &dtype) == RELAXC_OK && rank == 1 && dims[0] == 2);
  EXPECT(dtype.code == RELAXC_STRING_CODE && relaxc_any_get_tensor(outputs[3], &tensor) != RELAXC_OK);
  EXPECT(relaxc_any_get_double(outputs[5], &real) == RELAXC_OK && real == 0.5);
  for (int i = 0; i < 6; ++i) relaxc_any_release(outputs[i]);
  for (int i = 0; i < 5; ++i) relaxc_any_release(inputs[i]);
  relaxc_any_release(item);
  relaxc_any_release(number);
  relaxc_any_release(half);
  relaxc_session_release(session);
  relaxc_program_release(program);
}

/* A cache of two numbers for each token, of which the host has room for five. */
static void count_release(DLManagedTensor* tensor) { ++*(int*)tensor->manager_ctx; }
static void check_caches(void) {
  const char* text =
      "@R.function\ndef main(x: R.Tensor((\"length\", 2), \"float32\"), past: R.Tensor((\"tokens\", 2), "
      "\"float32\")):\n"
      "    R.func_attr({\"input_names\": [\"x\", \"past_0\"], \"output_names\": [\"total\", \"present_0\"]})\n"
      "    with R.dataflow():\n        present = R.concat((past, x), axis=0)\n"
      "        total = R.sum(present, axis=[0])\n        R.output(total, present)\n    return (total, present)\n";
  relaxc_compile_options options = {.size = sizeof options, .in_place = 1};
  relaxc_program* program = NULL;
  EXPECT(relaxc_compile_memory(text, strlen(text), "module.py", &options, &program) == RELAXC_OK);
  EXPECT(relaxc_num_caches(program, NULL) == 1 && relaxc_num_caches(program, "other") == -1);
  relaxc_cache_info cache;
  EXPECT(relaxc_cache(program, NULL, 1, &cache) == RELAXC_USAGE && MESSAGE_HAS("cache 1 does not exist: there are 1"));
  EXPECT(relaxc_cache(program, NULL, 0, &cache) == RELAXC_OK);
  EXPECT(cache.input == 1 && cache.output == 1 && cache.length == 2 && cache.axis == 0);
  EXPECT(strcmp(relaxc_input(program, NULL, cache.length)->name, "tokens") == 0);
  relaxc_session* session = session_of(program, NULL);
  float memory[10] = {0}, data[2] = {3, 4};
  int64_t room[2] = {5, 2}, one[2] = {1, 2};
  int releases = 0;
  DLManagedTensor lent = {floats(memory, 2, room), &releases, count_release};
  DLTensor x = floats(data, 2, one);
  relaxc_any *inputs[3], *outputs[2];
  EXPECT(relaxc_any_tensor(&x, &inputs[0]) == RELAXC_OK && relaxc_any_dlpack(&lent, &inputs[1]) == RELAXC_OK);
  for (int64_t past = 0; past < 5; ++past) {
    DLManagedTensor *total = NULL, *present = NULL;
    EXPECT(relaxc_any_int(past, &inputs[2]) == RELAXC_OK);
    EXPECT(relaxc_run_values(session, NULL, (const relaxc_any* const*)inputs, 3, outputs, 2) == RELAXC_OK);
    EXPECT(relaxc_any_get_tensor(outputs[0], &total) == RELAXC_OK &&
           relaxc_any_get_tensor(outputs[1], &present) == RELAXC_OK);
    EXPECT(((float*)total->dl_tensor.data)[1] == 4 * (float)(past + 1) && present->dl_tensor.data == memory);
    EXPECT(memory[2 * past] == 3 && (past == 4 || memory[2 * past + 2] == 0));
    total->deleter(total);
    present->deleter(present);
    for (int i = 0; i < 2; ++i) relaxc_any_release(outputs[i]);
    relaxc_any_release(inputs[2]);
  }
  relaxc_any_release(inputs[1]);
  int64_t columns[2] = {1, 5};
  lent.dl_tensor.strides = columns;
  EXPECT(relaxc_any_dlpack(&lent, &inputs[1]) == RELAXC_OK && relaxc_any_int(0, &inputs[2]) == RELAXC_OK);
  EXPECT(relaxc_run_values(session, NULL, (const relaxc_any* const*)inputs, 3, outputs, 2) == RELAXC_USAGE);
  EXPECT(MESSAGE_HAS("input 'past_0' is extended in place, and its tensor has strides"));
  for (int i = 0; i < 3; ++i) relaxc_any_release(inputs[i]);
  relaxc_session_release(session);
  EXPECT(releases == 2);
  relaxc_program_release(program);
  options.in_place = 2;
  EXPECT(relaxc_compile_memory(text, strlen(text), "module.py", &options, &program) == RELAXC_USAGE);
  options.in_place = 1;
  EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "module.py", &options, &program) == RELAXC_INVALID &&
         MESSAGE_HAS("there is no cache to extend in place"));
}

/* ---- What a host brings */

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

static void check_host_parts(void) {
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
static void check_strided_memory(void) {
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
static void check_records(void) {
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
static void check_wrong_pools(void) {
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
static void check_shared_session(void) {
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

/* Values bound to params, and the options of what is tested. */
static void check_bound_values(void) {
  const char* text =
      "@R.function\ndef main(x: R.Tensor((2,), \"float32\"), w: R.Tensor((2,), \"float32\")):\n"
      "    return R.multiply(x, w)\n";
  const char *names[] = {"w"}, *unknown[] = {"v"};
  float weights[] = {3, 0, 4, 0}, in[] = {1, 2}, out[2];
  int64_t shape[] = {2}, stride[] = {2};
  DLTensor w = floats(weights, 1, shape), x = floats(in, 1, shape), y = floats(out, 1, shape);
  w.strides = stride;
  relaxc_compile_options options = {.size = sizeof options, .bound_names = names, .bound = &w, .num_bound = 1};
  options.clamp_indices = options.strict = options.check_bounds = 1;
  relaxc_program* program = NULL;
  EXPECT(relaxc_compile_memory(text, strlen(text), "m.py", &options, &program) == RELAXC_OK);
  weights[2] = 0; /* they were copied */
  EXPECT(relaxc_num_inputs(program, NULL) == 1);
  EXPECT(strcmp(relaxc_program_note(program, "made.gather"), "clamp") == 0);
  EXPECT(strcmp(relaxc_program_note(program, "made.check_bounds"), "yes") == 0);
  relaxc_session* session = session_of(program, NULL);
  EXPECT(relaxc_run_into(session, NULL, &x, 1, &y, 1) == RELAXC_OK && out[0] == 3 && out[1] == 8);
  relaxc_session_release(session);
  relaxc_program_release(program);
  options.bound_names = unknown;
  EXPECT(relaxc_compile_memory(text, strlen(text), "m.py", &options, &program) != RELAXC_OK && MESSAGE_HAS("'v'"));
  options = (relaxc_compile_options){.size = sizeof options, .check_bounds = 2};
  EXPECT(relaxc_compile_memory(text, strlen(text), "m.py", &options, &program) == RELAXC_USAGE);
  EXPECT(MESSAGE_HAS("check_bounds is 2, expected 0 or 1"));
  options = (relaxc_compile_options){.size = sizeof options, .num_threads = 1025};
  EXPECT(relaxc_compile_memory(text, strlen(text), "m.py", &options, &program) == RELAXC_USAGE);
  EXPECT(MESSAGE_HAS("num_threads is 1025, expected 1 to 1024, or 0 for all cores"));
  const relaxc_load_options trust = {.size = sizeof trust, .trust_contents = 7};
  EXPECT(relaxc_load("none.so", &trust, &program) == RELAXC_USAGE &&
         MESSAGE_HAS("trust_contents is 7, expected 0 or 1"));
}

/* A library of kernels that was cut off, which the dynamic linker would map beyond its end. */
static void check_cut_off_library(const char* folder) {
  char path[4096], command[16384];
  snprintf(path, sizeof path, "%s/cut_off.so", folder);
  snprintf(command, sizeof command, "head -c 3000 /bin/ls > '%s'", path);
  EXPECT(system(command) == 0);
  const char* kernels[] = {path};
  const relaxc_compile_options options = {.size = sizeof options, .kernels = kernels, .num_kernels = 1};
  relaxc_program* program = NULL;
  EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "m.py", &options, &program) == RELAXC_INVALID);
  EXPECT(MESSAGE_HAS("cut_off.so") && MESSAGE_HAS("was cut off: it has 3000 bytes"));
}

static void* no_memory(void* user, size_t bytes, size_t alignment) {
  return (void)user, (void)bytes, (void)alignment, NULL;
}
static void check_short_memory(void) {
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

static int signals = 0;
static void count_signal(int signal) { signals += signal == SIGUSR1; }
static void check_signals(void) {
  EXPECT(raise(SIGUSR1) == 0 && signals == 1); /* the handler of before the first compilation */
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
static void check_threads(void) {
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
static void check_forks(void) {
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
  if (failures == 0) printf("all right\n");
  return failures < 100 ? failures : 99;
}
