/* Runs: results, errors, values of all kinds, caches. */
#include "tests/api/checks.h"

#include <math.h>
#include <string.h>

void check_runs(void) {
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
  /* elements that would be written over one another */
  columns[1] = 0;
  EXPECT(relaxc_run_into(session, NULL, &strided, 1, &strided_out, 1) == RELAXC_USAGE);
  EXPECT(MESSAGE_HAS("output 0: the stride of dim 1 is 0"));
  /* results in the runtime's memory outlive the session */
  DLManagedTensor* result = NULL;
  shape[0] = 2;
  EXPECT(relaxc_run(session, NULL, &x, 1, &result, 1) == RELAXC_OK && result != NULL);
  relaxc_session_release(session);
  EXPECT(result->dl_tensor.ndim == 2 && result->dl_tensor.shape[0] == 2 && ((float*)result->dl_tensor.data)[3] == 8);
  result->deleter(result);
}

void check_errors(void) {
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

void check_values(void) {
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

void check_caches(void) {
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
