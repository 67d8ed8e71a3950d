/* What a host compiles: options, types, constants, kernels, and what is wrong about them. */
#include "tests/api/checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The size of a struct of options: that of one of its versions, and what a library does not know is zero. */
void check_sizes(void) {
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
void check_names(void) {
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
  const char* same[] = {"n", "n"};
  const int64_t sizes[] = {1, 2};
  const relaxc_compile_options contradictions[] = {
      {.dim_names = same, .dim_values = sizes, .num_dims = 2},
      {.range_names = same, .range_least = sizes, .range_most = sizes, .num_ranges = 2},
  };
  for (size_t i = 0; i < sizeof contradictions / sizeof *contradictions; ++i) {
    relaxc_compile_options options = contradictions[i];
    options.size = sizeof options;
    relaxc_program* program = NULL;
    EXPECT(relaxc_compile_memory(TWICE, strlen(TWICE), "module.py", &options, &program) == RELAXC_USAGE);
    EXPECT(MESSAGE_HAS("dim 'n' has two "));
  }
}

/* Types of inputs that the text leaves open, and functions that are linked in. */
void check_types_and_links(const char* folder) {
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
void check_constants(const char* folder) {
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
void check_kernels(const char* folder) {
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

/* Values bound to params, and the options of what is tested. */
void check_bound_values(void) {
  const char* text =
      "@R.function\ndef main(x: R.Tensor((2,), \"float32\"), w: R.Tensor((2,), \"float32\")):\n"
      "    return R.multiply(x, w)\n";
  const char *names[] = {"w"}, *unknown[] = {"v"};
  float weights[] = {3, 0, 4, 0}, in[] = {1, 2}, out[2];
  int64_t shape[] = {2}, stride[] = {2};
  DLTensor w = floats(weights, 1, shape), x = floats(in, 1, shape), y = floats(out, 1, shape);
  w.strides = stride;
  relaxc_compile_options options = {.size = sizeof options, .bound_names = names, .bound = &w, .num_bound = 1};
  options.clamp_indices = options.strict = options.check_bounds = options.fast_int8 = 1;
  relaxc_program* program = NULL;
  EXPECT(relaxc_compile_memory(text, strlen(text), "m.py", &options, &program) == RELAXC_OK);
  weights[2] = 0; /* they were copied */
  EXPECT(relaxc_num_inputs(program, NULL) == 1);
  EXPECT(strcmp(relaxc_program_note(program, "made.gather"), "clamp") == 0);
  EXPECT(strcmp(relaxc_program_note(program, "made.check_bounds"), "yes") == 0);
  EXPECT(strcmp(relaxc_program_note(program, "made.fast_int8"), "yes") == 0);
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
void check_cut_off_library(const char* folder) {
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
