#include "codegen/value_info.h"

#include <cctype>
#include <map>

#include "ir/arith.h"
#include "ir/attr_names.h"
#include "ir/text/names.h"
#include "ir/text/printer.h"
#include "ir/visit.h"
#include "support/lists.h"

namespace relaxc::codegen {

namespace {

// A name that an expression could not hold, such as a model's "batch size", stands in quotes.
std::string quoted(const std::string& name) {
  std::string text = "'";
  for (char c : name) text += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return text + "'";
}
bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Returns the expression with the names that its dims have in the model, which the printer makes words of.
std::string text_of(const Expr& dim) {
  if (const Var* var = dim.as<Var>())  // it may have a name that texts reserve, such as T
    return text::identifier(var->name) == var->name ? var->name : quoted(var->name);
  std::map<std::string, std::string> names;
  walk(dim, [&](const Ref<Var>& var) {
    if (text::identifier(var->name) != var->name) names.emplace(print_expr(var), quoted(var->name));
  });
  const std::string printed = print_expr(dim);
  if (names.empty()) return printed;
  std::string result;
  for (size_t i = 0; i < printed.size();) {
    size_t end = i;
    while (end < printed.size() && is_word_char(printed[end])) ++end;
    std::string word = printed.substr(i, std::max<size_t>(end - i, 1));
    const std::string* name = find_value(names, word);
    result += name ? *name : word;
    i += word.size();
  }
  return result;
}

vm::DimInfo dim_info(const Expr& dim, const DimRanges& ranges) {
  if (auto number = as_int(dim)) return {*number, ""};
  vm::DimInfo info{-1, text_of(dim)};
  const Var* var = dim.as<Var>();
  if (const DimRange* range = var ? find_value(ranges, var->name) : nullptr)
    info.least = range->least, info.most = range->most;
  return info;
}

}  // namespace

vm::ValueInfo value_info(std::string name, const Type& type, const DimRanges& ranges) {
  vm::ValueInfo info;
  info.name = std::move(name);
  info.dtype = tensor_dtype(type);
  if (type.is<ObjectType>()) info.kind = vm::ValueKind::kNone;
  if (type.is<ShapeType>()) info.kind = vm::ValueKind::kShape;
  if (type.is<FuncType>()) info.kind = vm::ValueKind::kClosure;
  if (const PrimType* scalar = type.as<PrimType>()) {
    info.kind = scalar->dtype.is_float() ? vm::ValueKind::kDouble : vm::ValueKind::kInt;
    info.dtype = scalar->dtype;
    if (scalar->value) info.dims = {dim_info(*scalar->value, ranges)};
  }
  if (const OptionalType* optional = type.as<OptionalType>()) {
    info = value_info(info.name, optional->item, ranges);
    info.is_optional = true;
  }
  if (const SequenceType* sequence = type.as<SequenceType>()) {
    info.kind = vm::ValueKind::kSequence;
    info.fields = {value_info("", sequence->item, ranges)};
  }
  if (const MapType* map = type.as<MapType>()) {
    info.kind = vm::ValueKind::kMap;
    info.fields = {value_info("", tensor_type({}, map->key)), value_info("", map->value, ranges)};
  }
  if (const TupleType* tuple = type.as<TupleType>()) {
    info.kind = vm::ValueKind::kTuple;
    info.fields = map_each(tuple->items, [&](const Type& item) { return value_info("", item, ranges); });
  }
  if (const std::vector<Expr>* shape = known_shape(type)) {
    info.dims = map_each(*shape, [&](const Expr& dim) { return dim_info(dim, ranges); });
  } else if (int64_t rank = known_rank(type); rank >= 0) {
    info.dims = std::vector<vm::DimInfo>(static_cast<size_t>(rank), {-1, "?"});  // dims without a name
  }
  return info;
}

void note_work(vm::KernelInfo& kernel, const Attrs& attrs) {
  if (const AttrValue* work = attrs.find(attr_names::kWork)) {
    kernel.operations = work->as<Attrs>()->get_string("operations", "");
    from_attr(*work->as<Attrs>()->find("accesses"), kernel.accesses);
  }
  kernel.rule = attrs.get_string(attr_names::kRule, "");
}

}  // namespace relaxc::codegen
