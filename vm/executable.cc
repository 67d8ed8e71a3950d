#include "vm/executable.h"

#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"

namespace relaxc::vm {

std::string to_string(const ValueInfo& info) {
  std::string text = info.name.empty() ? "" : printable(info.name) + ": ";
  if (info.kind != ValueKind::kTensor && info.kind != ValueKind::kShape)
    return text + std::string(to_string(info.kind));
  text += info.kind == ValueKind::kShape ? "shape" : info.dtype ? to_string(*info.dtype) : "any";
  if (!info.dims) return text + "[...]";
  auto text_of = [](const DimInfo& dim) { return dim.text.empty() ? std::to_string(dim.value) : printable(dim.text); };
  return fmt::format("{}[{}]", text, joined(*info.dims, text_of));
}

const Function* Executable::find_function(std::string_view name) const {
  return find_item(functions, name, &Function::name);
}

}  // namespace relaxc::vm
