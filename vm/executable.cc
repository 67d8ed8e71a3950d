#include "vm/executable.h"

#include <algorithm>

#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"

namespace relaxc::vm {

std::string to_string(const ValueInfo& info) {
  std::string text = info.name.empty() ? "" : printable(info.name) + ": ";
  auto text_of = [](const DimInfo& dim) { return dim.text.empty() ? std::to_string(dim.value) : printable(dim.text); };
  if (info.kind == ValueKind::kTuple)
    return fmt::format("{}({})", text, joined(info.fields, [](const ValueInfo& field) { return to_string(field); }));
  if (info.kind == ValueKind::kInt || info.kind == ValueKind::kDouble) {
    text += info.dtype ? to_string(*info.dtype) : std::string(to_string(info.kind));
    return info.dims ? fmt::format("{} = {}", text, joined(*info.dims, text_of)) : text;
  }
  if (info.kind != ValueKind::kTensor && info.kind != ValueKind::kShape)
    return text + (info.kind == ValueKind::kNone ? "any value" : std::string(to_string(info.kind)));
  text += info.kind == ValueKind::kShape ? "shape" : info.dtype ? to_string(*info.dtype) : "any";
  if (!info.dims) return text + "[...]";
  return fmt::format("{}[{}]", text, joined(*info.dims, text_of));
}

const Function* Executable::find_function(std::string_view name) const {
  return find_item(functions, name, &Function::name);
}

const Function* Executable::default_function() const {
  if (const Function* main = find_function("main"); main && main->is_public) return main;
  auto is_public = [](const Function& function) { return function.is_public; };
  auto first = std::ranges::find_if(functions, is_public);
  bool is_only = first != functions.end() && std::none_of(first + 1, functions.end(), is_public);
  return is_only ? &*first : nullptr;
}

}  // namespace relaxc::vm
