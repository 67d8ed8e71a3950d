// The classes and functions of tvm.relax.frontend.nn and of argparse, in Python. Internal to ir/text/.
#pragma once
#include <string_view>

namespace relaxc::text {

// Each is one function whose body defines them; the parts know each other's names. `R` stands for the operators of
// graphs; what python_nn.cc does is called as `begin_function`, `function_param`, `end_function`, `attributes`.
extern const std::string_view kNnLibrary, kNnLayers, kNnOperators, kScriptLibrary;

}  // namespace relaxc::text
