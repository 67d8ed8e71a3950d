// A backend: com.me::FancyGelu is computed by the C function of this file. operator.cc imports such nodes.
#include <relaxc/plugin.h>

#include <cmath>
#include <cstring>

using namespace relaxc;

// At run time: the bytes that compile() made, the dims of the input and of the result, and their elements.
extern "C" int32_t me_run(const double* program, const int64_t* dims, const float* x, float* y) {
  auto rank = static_cast<int64_t>(program[0]), nodes = static_cast<int64_t>(program[1]), size = int64_t{1};
  for (int64_t d = 0; d < rank; ++d) size *= dims[d];
  for (int64_t i = 0; i < size; ++i) {
    double value = x[i];
    for (int64_t n = 0; n < nodes; ++n) value *= program[2 + n] * (1 + std::erf(value * std::sqrt(0.5)));
    y[i] = static_cast<float>(value);
  }
  return 0;
}

static bool takes(const OpCall& op) { return op.name() == "relax.me.fancy_gelu" && op.dtype(0) == kFloat32; }

// A part is a chain of nodes, of which each reads the result of the one before.
static std::optional<std::vector<std::byte>> compile(const ExternalPart& part) {
  std::vector<double> program = {static_cast<double>(known_rank(part.inputs[0].type())),
                                 static_cast<double>(part.bindings.size())};
  for (const Binding& binding : part.bindings) {
    const AttrValue* alpha = binding.value.as<Call>()->attrs.find("alpha");
    program.push_back(alpha ? *alpha->as<double>() : 0.5);
  }
  auto bytes = std::as_bytes(std::span(program));
  return std::vector(bytes.begin(), bytes.end());
}

RELAXC_PLUGIN(tables) {
  tables.add(ExternalCompiler{.name = "me", .doc = "by C", .takes = takes, .compile = compile, .function = "me_run"});
  tables.add_library(tables.plugin());
}
