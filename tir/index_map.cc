#include "tir/index_map.h"

#include "ir/arith.h"
#include "ir/op.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/visit.h"
#include "support/joined.h"
#include "support/lists.h"

namespace relaxc {

namespace {

// Returns the parts of a list between the commas that are not in parentheses.
std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else if (c != ' ' || !parts.back().empty()) {
      parts.back() += c;
    }
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

struct Bounds {
  Expr least, most;
};
std::optional<Bounds> bounds_of(const Expr& e, const std::unordered_map<const void*, Bounds>& of_vars,
                                const Analyzer& facts) {
  if (as_int(e)) return Bounds{e, e};
  if (e.is<Var>()) return copy_value(of_vars, static_cast<const void*>(e.get()));
  const Binary* node = e.as<Binary>();
  auto a = node ? bounds_of(node->a, of_vars, facts) : std::nullopt;
  auto b = node ? bounds_of(node->b, of_vars, facts) : std::nullopt;
  if (!a || !b) return std::nullopt;
  std::optional<int64_t> factor = as_int(node->b);
  switch (node->op) {
    case BinaryOp::kAdd:
      return Bounds{a->least + b->least, a->most + b->most};
    case BinaryOp::kSub:
      return Bounds{a->least - b->most, a->most - b->least};
    case BinaryOp::kMul:
      if (!factor && as_int(node->a)) return bounds_of(node->b * node->a, of_vars, facts);
      if (!factor) return std::nullopt;
      return *factor >= 0 ? Bounds{a->least * *factor, a->most * *factor}
                          : Bounds{a->most * *factor, a->least * *factor};
    case BinaryOp::kFloorDiv:
      if (factor.value_or(0) < 1) return std::nullopt;
      return Bounds{floor_div(a->least, *factor), floor_div(a->most, *factor)};
    case BinaryOp::kFloorMod:
      if (factor.value_or(0) < 1) return std::nullopt;
      if (facts.can_prove(int_imm(0) <= a->least) && facts.can_prove(a->most < int_imm(*factor))) return a;
      return Bounds{int_imm(0), int_imm(*factor - 1)};
    default:
      return std::nullopt;
  }
}

}  // namespace

// The text of the map becomes a program that stores its results, which the reader of programs reads.
std::optional<Ref<Lambda>> read_index_map(const AttrValue& attr, const Span& span) {
  if (const Expr* map = attr.as<Expr>(); map && map->is<Lambda>()) return cast<Lambda>(*map);
  const Attrs* wrapped = attr.as<Attrs>();
  const AttrValue* value = wrapped ? wrapped->find("T.index_map") : nullptr;
  if (value && value->as<AttrList>()) value = &value->as<AttrList>()->front();
  const std::string* text = value ? value->as<std::string>() : nullptr;
  if (!text) return std::nullopt;
  size_t colon = text->find(':'), begin = text->find('(', colon);
  constexpr size_t kLambda = std::string_view("lambda").size();
  RELAXC_CHECK(text->starts_with("lambda") && begin != std::string::npos, "an index map in canonical form, got {}",
               *text);
  std::vector<std::string> names = split_list(std::string_view(*text).substr(kLambda, colon - kLambda));
  std::vector<std::string> results =
      split_list(std::string_view(*text).substr(begin + 1, text->rfind(')') - begin - 1));
  std::string program =
      fmt::format("@T.prim_func\ndef f(results: T.Buffer(({},), \"int64\")", std::max<size_t>(results.size(), 1));
  for (const std::string& name : names) program += fmt::format(", {}: T.int64", name);
  program += "):\n";
  for (size_t i = 0; i < results.size(); ++i)
    program += fmt::format("    results[{}] = T.cast({}, \"int64\")\n", i, results[i]);
  Diagnostics diagnostics;
  IRModule module = parse_module(program, "index_map", OpTable({}), diagnostics);
  const PrimFunc* function = module.functions.empty() ? nullptr : module.functions.begin()->second.as<PrimFunc>();
  if (!diagnostics.all().empty() || !function) fail(span, "the index map '{}' cannot be read", *text);
  Lambda map;
  map.params.assign(function->params.begin() + 1, function->params.end());
  walk(function->body, [&](const Ref<BufferStore>& node) { map.results.push_back(simplify(node->value)); });
  return make(std::move(map), object_type());
}

AttrValue index_map_attr(const Lambda& map) {
  std::string params = joined(map.params, [](const VarRef& param) { return param->name; }), results;
  for (const Expr& result : map.results) results += (results.empty() ? "" : ", ") + print_expr(result);
  if (map.results.size() == 1) results += ",";
  return Attrs{{"T.index_map", fmt::format("lambda {}: ({})", params, results)}};
}

std::vector<Expr> mapped(const Lambda& map, const std::vector<Expr>& positions) {
  VarMap values;
  for (size_t i = 0; i < map.params.size(); ++i) values.emplace(map.params[i].get(), positions[i]);
  return map_each(map.results, [&](const Expr& e) { return substitute(e, values); });
}

std::optional<std::vector<Expr>> mapped_shape(const Lambda& map, const std::vector<Expr>& shape) {
  Analyzer facts;
  facts.assume_dims(shape_type(shape));
  std::unordered_map<const void*, Bounds> of_vars;
  for (size_t i = 0; i < shape.size(); ++i)
    of_vars.emplace(map.params[i].get(), Bounds{int_imm(0), facts.simplify(shape[i] - 1)});
  std::vector<Expr> result;
  for (const Expr& e : map.results) {
    auto bounds = bounds_of(e, of_vars, facts);
    if (!bounds || !facts.can_prove(int_imm(0) <= bounds->least)) return std::nullopt;
    result.push_back(facts.simplify(bounds->most + 1));
  }
  return result;
}

}  // namespace relaxc
