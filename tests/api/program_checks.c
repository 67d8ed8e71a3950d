/* Programs: what they declare, files, many at once. */
#include "tests/api/checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void check_declarations(void) {
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

void check_files(const char* folder) {
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
void check_many_programs(const char* folder) {
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
