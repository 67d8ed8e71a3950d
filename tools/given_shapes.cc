#include "tools/given_shapes.h"

#include <set>

#include "codegen/text_file.h"
#include "frontend/onnx/summary.h"
#include "support/library_file.h"

namespace relaxc::tools {

static bool is_onnx(const std::string& model) {
  return !is_library_file(model) && !is_text_file(split_text_path(model).file);
}

CompileSettings with_given_defaults(const std::string& model, const CompileSettings& settings,
                                    const InputOptions& inputs) {
  CompileSettings result = settings;
  if (!is_onnx(model) || (inputs.named.empty() && inputs.positional.empty())) return result;
  try {
    const std::set<std::string> defaults = onnx_defaults(model);
    if (defaults.empty()) return result;
    for (const auto& [name, type] : types_of_inputs(inputs, onnx_inputs(model), "")) {
      if (defaults.contains(name)) result.types.emplace(name, type);
    }
  } catch (const CompileError&) {  // the compilation, or the run, says what is wrong
  }
  return result;
}

std::optional<CompileSettings> settings_for_inputs(const std::string& model, const CompileSettings& settings,
                                                   const InputOptions& inputs, const std::string& folder) {
  if (!is_onnx(model)) return std::nullopt;
  CompileSettings narrow = settings;
  for (const auto& [name, type] : types_of_inputs(inputs, onnx_inputs(model), folder))
    narrow.types.insert_or_assign(name, type);
  for (const auto& [name, value] : parse_dims(inputs.dims)) narrow.dims.insert_or_assign(name, value);
  bool says_more = narrow.types.size() > settings.types.size() || narrow.dims.size() > settings.dims.size();
  return says_more ? std::optional(std::move(narrow)) : std::nullopt;
}

void note_given_shapes(const std::string& why) {
  print_note("note: this run is compiled for the shapes of its inputs; for all shapes: {}\n",
             why.substr(0, why.find('\n')));
}

}  // namespace relaxc::tools
