// A backend: com.me::FancyGelu is computed by the C function of this file. operator.cc imports such nodes.
#include <relaxc/plugin.h>

#include <cmath>
#include <cstring>

using namespace relaxc;

// At run time: the bytes that compile() made, the dims of the input and of the result, and their elements.
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

// A part is nodes of which each reads the result of another one. Returns the program, or why there is none.
static std::variant<std::vector<std::byte>, std::string> compile(const ExternalPart& part) {
  if (part.outputs.size() > 1) return "it is not a chain";
  if (tensor_dtype(part.inputs[0].type()) != kFloat32) return "the input is not float32";
  std::vector<double> program = {static_cast<double>(known_rank(part.inputs[0].type())),
                                 static_cast<double>(part.matches.size())};
  for (const ExternalMatch& node : part.matches) {
    const AttrValue* alpha = node.match.attrs.find("alpha");
    program.push_back(alpha ? *alpha->as<double>() : 0.5);
  }
  auto bytes = std::as_bytes(std::span(program));
  return std::vector(bytes.begin(), bytes.end());
}

RELAXC_PLUGIN(tables) {
  tables.add(ExternalCompiler{
      .name = "me", .doc = "by C", .patterns = {{"me.fancy_gelu"}}, .compile = compile, .function = "me_run"});
  tables.add_library(tables.plugin());
}
