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

static std::variant<std::vector<std::byte>, std::string> compile(const ExternalPart& part) {
  std::vector<double> program = {static_cast<double>(known_rank(part.inputs[0].type())),
                                 static_cast<double>(part.matches.size())};
  VarRef value = part.inputs[0];
  for (const ExternalMatch& each : part.matches) {
    if (!same_node(each.match.operands[0], value) || part.outputs.size() > 1) return "it computes chains only";
    const AttrValue* alpha = each.match.attrs.find("alpha");
    program.push_back(alpha ? *alpha->as<double>() : 0.5);
    value = each.match.results[0];
  }
  auto bytes = std::as_bytes(std::span(program));
  return std::vector(bytes.begin(), bytes.end());
}

RELAXC_PLUGIN(tables) {
  ExternalPattern gelu{"@S.pattern\ndef gelu(x: R.Tensor(dtype=\"float32\")):\n    return R.me.fancy_gelu(x)\n"};
  tables.add(ExternalCompiler{"me", "by C", {gelu}, compile, "me_run"});
  tables.add_library(tables.plugin());
}
