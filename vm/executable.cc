#include "vm/executable.h"

#include <fmt/ranges.h>

#include "support/printable.h"

namespace relaxc::vm {

std::string to_string(const ValueInfo& info) {
  std::string text = info.name.empty() ? "" : printable(info.name) + ": ";
  if (info.kind != ValueKind::kTensor && info.kind != ValueKind::kShape)
    return text + std::string(to_string(info.kind));
  if (info.kind == ValueKind::kShape) {
    text += "shape";
  } else {
    text += info.dtype ? to_string(*info.dtype) : "any";
  }
  if (!info.dims) return text + "[...]";
  std::vector<std::string> dims;
  for (const DimInfo& dim : *info.dims)
    dims.push_back(dim.text.empty() ? std::to_string(dim.value) : printable(dim.text));
  return fmt::format("{}[{}]", text, fmt::join(dims, ", "));
}

std::optional<FunctionIndex> Executable::find_function(std::string_view name) const {
  for (size_t i = 0; i < functions.size(); ++i) {
    if (functions[i].name == name) return FunctionIndex{static_cast<int64_t>(i)};
  }
  return std::nullopt;
}

}  // namespace relaxc::vm
