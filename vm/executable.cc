#include "vm/executable.h"

#include <algorithm>

#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"

namespace relaxc::vm {

static std::string text_of_some(const ValueInfo& info) {  // NOLINT: bounded
  auto text_of = [](const DimInfo& dim) { return dim.text.empty() ? std::to_string(dim.value) : printable(dim.text); };
  std::string fields = joined(info.fields, type_text);
  switch (info.kind) {
    case ValueKind::kNone:
      return "any value";
    case ValueKind::kTuple:
      return formatted("({})", fields);
    case ValueKind::kSequence:
    case ValueKind::kMap:
      return formatted("{}({})", to_string(info.kind), fields);
    case ValueKind::kInt:
    case ValueKind::kDouble: {
      std::string text = info.dtype ? to_string(*info.dtype) : std::string(to_string(info.kind));
      return info.dims ? formatted("{} = {}", text, joined(*info.dims, text_of)) : text;
    }
    case ValueKind::kTensor:
    case ValueKind::kShape: {
      std::string text = info.kind == ValueKind::kShape ? "shape" : info.dtype ? to_string(*info.dtype) : "any";
      return formatted("{}[{}]", text, info.dims ? joined(*info.dims, text_of) : "...");
    }
    case ValueKind::kString:
    case ValueKind::kStorage:
    case ValueKind::kClosure:
      return std::string(to_string(info.kind));
  }
  return {};
}

std::string type_text(const ValueInfo& info) {
  return info.is_optional ? formatted("optional({})", text_of_some(info)) : text_of_some(info);
}

std::string to_string(const ValueInfo& info) {
  return (info.name.empty() ? "" : printable(info.name) + ": ") + type_text(info);
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
