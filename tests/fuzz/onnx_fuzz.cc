// The fuzz target of ONNX models (./dev fuzz): an input is a ModelProto, mutations are of its fields, and now and then
// a new random graph takes its place. A model is imported; a quarter of those that are accepted go through all passes,
// the rest to tensor programs. Only CompileErrors may come out of that, without the text of an exception of the
// standard library.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "frontend/onnx/import.h"
#include "ops/ops.h"
#include "passes/runner.h"
#include "support/diagnostic.h"
#include "tests/fuzz/mutate_model.h"
#include "tests/onnx_graphs/generator.h"

namespace {

using namespace relaxc;

const OpTable& operators() {
  static const OpTable kTable = make_op_table();
  return kTable;
}

void compile(const uint8_t* data, size_t size) {
  ImportOptions options;
  options.limits = {.nodes = 300, .depth = 10, .tensor_bytes = 1 << 20, .model_bytes = 1 << 20};
  IRModule module =
      import_onnx_bytes({reinterpret_cast<const std::byte*>(data), size}, "fuzz.onnx", operators(), options);
  PassContext context(operators(), Target{});
  context.jobs = 1;
  bool all = std::hash<std::string_view>()({reinterpret_cast<const char*>(data), size}) % 4 == 0;
  run_passes(std::move(module), parse_passes(all ? "default" : "simplify,legalize"), context, {});
}

// Words of the messages of standard exceptions, which no message of ours contains.
void check_message(const std::string& text) {
  for (const char* word : {"std::", "vector::", "map::at", "basic_string", "_M_", "bad_", "stoi", "stoll"}) {
    if (text.find(word) == std::string::npos) continue;
    std::fprintf(stderr, "a foreign exception's text reaches the user: %s\n", text.c_str());
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    compile(data, size);
  } catch (const CompileError& error) {
    check_message(error.what());
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  static test::ModelMutator mutator;
  std::mt19937_64 random(seed);
  onnx::ModelProto model;
  if (random() % 16 == 0 || !model.ParseFromArray(data, static_cast<int>(size)))
    model = test::onnx_graphs::make_graph(random()).model;
  mutator.mutate(model, random);
  std::string result = model.SerializePartialAsString();
  if (result.size() > most) return size;
  std::memcpy(data, result.data(), result.size());
  return result.size();
}
