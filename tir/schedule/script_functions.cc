#include "tir/schedule/script_functions.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "support/checked_math.h"
#include "support/lists.h"

namespace relaxc {

const ScriptOperation* find_script_operation(std::string_view symbol) {
  using D = double;
  static constexpr ScriptOperation kRows[] = {
      {"+", BinaryOp::kAdd, [](D a, D b) -> AttrValue { return a + b; }, checked_add},
      {"-", BinaryOp::kSub, [](D a, D b) -> AttrValue { return a - b; }, checked_sub},
      {"*", BinaryOp::kMul, [](D a, D b) -> AttrValue { return a * b; }, checked_mul},
      {"/", BinaryOp::kDiv, [](D a, D b) -> AttrValue { return a / b; }},
      {"//", BinaryOp::kFloorDiv, [](D a, D b) -> AttrValue { return std::floor(a / b); }},
      {"%", BinaryOp::kFloorMod, [](D a, D b) -> AttrValue { return a - std::floor(a / b) * b; }},
      {"<", BinaryOp::kLT, [](D a, D b) -> AttrValue { return a < b; }},
      {"<=", BinaryOp::kLE, [](D a, D b) -> AttrValue { return a <= b; }},
      {">", BinaryOp::kGT, [](D a, D b) -> AttrValue { return a > b; }},
      {">=", BinaryOp::kGE, [](D a, D b) -> AttrValue { return a >= b; }},
      {"==", BinaryOp::kEQ, [](D a, D b) -> AttrValue { return a == b; }},
      {"!=", BinaryOp::kNE, [](D a, D b) -> AttrValue { return a != b; }},
  };
  return find_item(kRows, symbol, &ScriptOperation::symbol);
}

std::optional<double> as_double(const AttrValue& number) {
  if (const int64_t* whole = number.as<int64_t>()) return static_cast<double>(*whole);
  return number.as<double>() ? std::optional(*number.as<double>()) : std::nullopt;
}
AttrValue known_number(const Expr& e) {
  auto number = as_int(e);
  if (!number) return e;
  return dtype_of(e).is_bool() ? AttrValue(*number != 0) : AttrValue(*number);
}

// One side may decide what the other leaves open.
AttrValue joined_conditions(bool is_and, const AttrValue& left, const AttrValue& right) {
  const bool *a = left.as<bool>(), *b = right.as<bool>();
  if (a) return *a == is_and ? right : left;
  if (b) return *b == is_and ? left : right;
  return known_number(simplify(binary(is_and ? BinaryOp::kAnd : BinaryOp::kOr, *left.as<Expr>(), *right.as<Expr>())));
}
AttrValue negated_condition(const AttrValue& condition) {
  const bool* known = condition.as<bool>();
  return known ? AttrValue(!*known) : known_number(simplify(!*condition.as<Expr>()));
}

namespace {

constexpr int64_t kMostItems = 1'000'000;

std::optional<AttrValue> range(const AttrList& arguments, std::string& error) {
  std::vector<int64_t> numbers;
  for (const AttrValue& argument : arguments) {
    if (const int64_t* number = argument.as<int64_t>()) numbers.push_back(*number);
  }
  const int64_t step = numbers.size() == 3 ? numbers[2] : 1;
  if (numbers.size() != arguments.size() || numbers.empty() || numbers.size() > 3 || step == 0) {
    error = "range takes whole numbers";
    return std::nullopt;
  }
  const int64_t first = numbers.size() > 1 ? numbers[0] : 0, last = numbers[numbers.size() > 1 ? 1 : 0];
  const bool is_long = std::max(first, last) > kMostItems || std::min(first, last) < -kMostItems;
  if (is_long) {
    error = "the range is too long";
    return std::nullopt;
  }
  AttrList list;
  for (int64_t i = first; step > 0 ? i < last : i > last; i += step) list.push_back(i);
  return list;
}

// Returns the rows that zip and enumerate make.
AttrList rows(const std::vector<const AttrList*>& lists, bool numbered) {
  size_t count = lists[0]->size();
  for (const AttrList* list : lists) count = std::min(count, list->size());
  AttrList result;
  for (size_t i = 0; i < count; ++i) {
    AttrList row;
    if (numbered) row.push_back(static_cast<int64_t>(i));
    for (const AttrList* list : lists) row.push_back((*list)[i]);
    result.emplace_back(std::move(row));
  }
  return result;
}

// Returns the least or largest of whole numbers.
std::optional<AttrValue> limit(bool is_least, const AttrList& values) {
  std::optional<int64_t> result;
  for (const AttrValue& value : values) {
    const int64_t* number = value.as<int64_t>();
    if (!number) return std::nullopt;
    result = !result ? *number : is_least ? std::min(*result, *number) : std::max(*result, *number);
  }
  return result ? std::optional<AttrValue>(*result) : std::nullopt;
}

}  // namespace

int64_t script_bound(int64_t number, int64_t size) {
  return std::clamp(number < 0 ? number + size : number, int64_t{0}, size);
}

std::optional<AttrValue> script_function(std::string_view name, const AttrList& arguments, std::string& error) {
  if (name == "print") return AttrValue();
  if (name == "range") return range(arguments, error);
  std::vector<const AttrList*> lists;
  std::deque<AttrList> letters;  // of texts: zip(loops, "ijk")
  for (const AttrValue& argument : arguments) {
    if (const AttrList* list = argument.as<AttrList>()) lists.push_back(list);
    const std::string* text = argument.as<std::string>();
    if (!text) continue;
    lists.push_back(&letters.emplace_back());
    for (char letter : *text) letters.back().emplace_back(std::string(1, letter));
  }
  const bool all = !lists.empty() && lists.size() == arguments.size();
  const AttrList* only = all && lists.size() == 1 ? lists[0] : nullptr;
  if (name == "zip" && all) return rows(lists, false);
  if (name == "min" || name == "max") return limit(name == "min", only ? *only : arguments);
  if (!only) return std::nullopt;
  if (name == "enumerate") return rows(lists, true);
  if (name == "len") return static_cast<int64_t>(only->size());
  if (name == "list" || name == "tuple") return *only;
  if (name != "reversed") return std::nullopt;
  AttrList result = *only;
  std::ranges::reverse(result);
  return result;
}

// ---- What sch.get returns

// By IterKind; TVM's numbers of them, and their names.
constexpr std::pair<std::string_view, int64_t> kIterTypes[] = {
    {"DataPar", 0}, {"CommReduce", 2}, {"Ordered", 3}, {"Opaque", 4}};

std::optional<AttrValue> script_iter_type(const text::Syntax& owner, std::string_view name) {
  const auto* row =
      owner.text == "IterVar" ? find_item(kIterTypes, name, &std::pair<std::string_view, int64_t>::first) : nullptr;
  return row ? std::optional<AttrValue>(row->second) : std::nullopt;
}

AttrValue script_object(const Stmt& stmt) {
  auto range = [](const Expr& min, const Expr& extent) {
    return Attrs{{"min", known_number(min)}, {"extent", known_number(extent)}};
  };
  auto variable = [](const VarRef& var) { return Attrs{{"name", var->name}}; };
  if (const For* loop = stmt.as<For>()) {
    Attrs result = range(loop->min, loop->extent);
    result.set("loop_var", variable(loop->var));
    return result;
  }
  const Block* block = stmt.as<Block>();
  if (!block) return {};
  AttrList axes;
  for (const IterVar& axis : block->iter_vars) {
    axes.emplace_back(Attrs{{"dom", range(axis.domain.min, axis.domain.extent)},
                            {"var", variable(axis.var)},
                            {"iter_type", kIterTypes[static_cast<size_t>(axis.kind)].second}});
  }
  return Attrs{{"name_hint", block->name}, {"iter_vars", std::move(axes)}};
}

std::optional<AttrValue> script_member(const AttrValue& object, std::string_view name) {
  const Attrs* attributes = object.as<Attrs>();
  const AttrValue* value = attributes ? attributes->find(name) : nullptr;
  return value ? std::optional(*value) : std::nullopt;
}

std::string_view script_members() {
  return "sch.get(loop).extent, .min and .loop_var.name, sch.get(block).name_hint and .iter_vars, of which each has "
         ".dom.extent, .dom.min, .var.name and .iter_type";
}

}  // namespace relaxc
