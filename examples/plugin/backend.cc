// A backend: com.me::FancyGelu is computed by the C function of this file. operator.cc imports such nodes.
#include <relaxc/plugin.h>

#include <cmath>

using namespace relaxc;

// At run time: the bytes that compile() made, the dims of the input and of the result, and the two tensors.
extern "C" int32_t me_run(const double* program, const int64_t* dims, float* const* tensors) {
  auto rank = static_cast<int64_t>(program[0]), nodes = static_cast<int64_t>(program[1]), size = int64_t{1};
  for (int64_t d = 0; d < rank; ++d) size *= dims[d];
  for (int64_t i = 0; i < size; ++i) {
    double value = tensors[0][i];
    for (int64_t n = 0; n < nodes; ++n) value *= program[2 + n] * (1 + std::erf(value * std::sqrt(0.5)));
    tensors[1][i] = static_cast<float>(value);
  }
  return 0;
}

static std::optional<std::string> problem_of(const PatternMatch& match) {
  return tensor_dtype(match.operands[0].type()) == kFloat32 ? std::nullopt : std::optional("it is not in float32");
}

// A part is a list of nodes that are connected. Here one reads the result of the one before.
static std::variant<std::vector<std::byte>, std::string> compile(const ExternalPart& part) {
  if (part.outputs.size() > 1) return "its nodes are not a chain";
  std::vector<double> program = {double(known_rank(part.inputs[0].type())), double(part.matches.size())};
  for (const ExternalMatch& node : part.matches) {
    const AttrValue* alpha = node.match.attrs.find("alpha");
    if (!from_attr(alpha ? *alpha : AttrValue(0.5), program.emplace_back())) return "alpha is not a number";
  }
  auto bytes = std::as_bytes(std::span(program));
  return std::vector(bytes.begin(), bytes.end());
}

RELAXC_PLUGIN(tables) {
  tables.add(ExternalCompiler{"me", "FancyGelu by C", {{"me.fancy_gelu", problem_of}}, compile, "me_run"});
  tables.add_library(tables.plugin());
}
