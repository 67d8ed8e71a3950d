// Computes the values of constants that Python assigns around a module.
#include <algorithm>
#include <cmath>
#include <ranges>

#include "ir/text/names.h"
#include "ir/text/parsing.h"

namespace relaxc::text {

namespace {

using PythonValue = std::optional<AttrValue>;
constexpr size_t kMostItems = 4096;  // of a constant, so that repeated doubling ends

size_t count_items_of(const AttrValue& value) {
  size_t count = 1;
  if (const AttrList* list = value.as<AttrList>()) {
    for (const AttrValue& item : *list) count += count_items_of(item);
  }
  if (const Attrs* entries = value.as<Attrs>()) {
    for (const auto& [key, item] : *entries) count += count_items_of(item);
  }
  if (const std::string* text = value.as<std::string>()) count += text->size() / 64;
  return count;
}

std::optional<double> real_of(const AttrValue& value) {
  if (const int64_t* whole = value.as<int64_t>()) return static_cast<double>(*whole);
  return value.as<double>() ? std::optional(*value.as<double>()) : std::nullopt;
}

bool is_plain_number(std::string_view text) {
  return text.size() <= 18 && text.find_first_not_of("0123456789_") == std::string_view::npos;
}

PythonValue arithmetic(std::string_view op, const AttrValue& a, const AttrValue& b) {
  const int64_t *x = a.as<int64_t>(), *y = b.as<int64_t>();
  const AttrList *p = a.as<AttrList>(), *q = b.as<AttrList>();
  if (op == "+" && p && q) {
    AttrList sum = *p;
    sum.insert(sum.end(), q->begin(), q->end());
    return sum;
  }
  if (op == "*" && (p || q) && (x || y)) {
    AttrList product;
    const AttrList& part = p ? *p : *q;
    for (int64_t i = 0, count = x ? *x : *y; i < count && product.size() + part.size() <= kMostItems && !part.empty();
         ++i)
      product.insert(product.end(), part.begin(), part.end());
    return product.size() == part.size() * static_cast<size_t>(std::max<int64_t>(x ? *x : *y, 0)) ? PythonValue(product)
                                                                                                  : std::nullopt;
  }
  const std::string *s = a.as<std::string>(), *t = b.as<std::string>();
  if (op == "+" && s && t) return *s + *t;
  bool compares = op == "==" || op == "!=";
  if (compares && ((s && t) || (a.as<bool>() && b.as<bool>()))) return (a == b) == (op == "==");
  std::optional<double> u = real_of(a), v = real_of(b);
  bool divides_by_zero = (op == "/" || op == "//" || op == "%") && v == 0;
  if (!u || !v || divides_by_zero) return std::nullopt;
  std::optional<BinaryOp> operation = operator_of(op);
  bool whole = x && y && op != "/" && (op != "**" || *y >= 0);
  if (operation && info(*operation).compares) {
    if (whole) return *fold_int(*operation, *x, *y, kInt64) != 0;
    return fold_comparison(*operation, *u, *v);
  }
  if (whole) {
    std::optional<int64_t> result = operation || op == "**" ? fold_whole(op, *x, *y) : std::nullopt;
    return result ? PythonValue(*result) : std::nullopt;
  }
  std::optional<double> result = fold_real(op, *u, *v);
  return result ? PythonValue(*result) : std::nullopt;
}

// Computes the builtin functions of Python, and those of its module math, that appear beside modules.
PythonValue called_function(std::string_view name, const AttrList& args) {
  const AttrValue* first = args.empty() ? nullptr : &args[0];
  const AttrList* list = first ? first->as<AttrList>() : nullptr;
  std::optional<double> real = first ? real_of(*first) : std::nullopt;
  bool one = args.size() == 1;
  if (name == "len" && one && list) return static_cast<int64_t>(list->size());
  if (name == "convert" && one) return *first;  // tvm.convert
  if (name == "tuple" || name == "list") {
    if (args.empty()) return AttrList();
    if (one && list) return *list;
  }
  if (name == "float" && one && real) return *real;
  bool in_range = real && std::abs(*real) < 1e18;
  if (name == "int" && one && in_range)
    return first->as<int64_t>() ? *first : AttrValue(static_cast<int64_t>(std::trunc(*real)));
  if (name == "abs" && one && in_range)
    return first->as<int64_t>() ? AttrValue(std::abs(*first->as<int64_t>())) : AttrValue(std::abs(*real));
  if (name == "sqrt" && one && real && *real >= 0) return std::sqrt(*real);
  if (name == "log2" && one && real && *real > 0) return std::log2(*real);
  if ((name == "ceil" || name == "floor") && one && in_range)
    return static_cast<int64_t>(name == "ceil" ? std::ceil(*real) : std::floor(*real));
  const AttrList& numbers = one && list ? *list : args;
  bool all_whole = !numbers.empty() && std::ranges::all_of(numbers, [](const AttrValue& n) { return n.as<int64_t>(); });
  if (!all_whole || (name != "min" && name != "max" && name != "prod" && name != "sum")) return std::nullopt;
  PythonValue result = numbers[0];
  for (const AttrValue& number : numbers | std::views::drop(1)) {
    bool less = result && *number.as<int64_t>() < *result->as<int64_t>();
    if (name == "min" || name == "max") {
      if (less == (name == "min")) result = number;
    } else if (result) {
      result = arithmetic(name == "sum" ? "+" : "*", *result, number);
    }
  }
  return result;
}

PythonValue item_of(const AttrValue& object, const AttrValue& index) {
  const AttrList* list = object.as<AttrList>();
  const Attrs* entries = object.as<Attrs>();
  const int64_t* number = index.as<int64_t>();
  const std::string* key = index.as<std::string>();
  if (entries && key && entries->has(*key)) return *entries->find(*key);
  if (!list || !number) return std::nullopt;
  int64_t size = std::ssize(*list), position = *number < 0 ? *number + size : *number;
  return position >= 0 && position < size ? PythonValue((*list)[static_cast<size_t>(position)]) : std::nullopt;
}

}  // namespace

// ---- Values of constants

std::optional<AttrValue> Parser::python_value(const Syntax& at) {
  if (is_name(at)) return copy_value(constants_, at.text);
  if (at.kind <= SyntaxKind::kConstant) return python_literal(at);
  if (is_list(at) || at.kind == SyntaxKind::kDict) return python_collection(at);
  if (is_call(at) || at.kind == SyntaxKind::kAttribute) return python_call(at);
  auto child = [&](size_t i) { return at.children[i] ? python_value(*at.children[i]) : std::nullopt; };
  PythonValue result;
  if (at.kind == SyntaxKind::kUnary) {
    PythonValue value = child(0);
    if (value && at.text == "-" && value->as<int64_t>()) result = arithmetic("-", AttrValue(int64_t{0}), *value);
    if (value && at.text == "-" && value->as<double>()) result = -*value->as<double>();
    if (value && at.text == "not" && value->as<bool>()) result = !*value->as<bool>();
  } else if (at.kind == SyntaxKind::kBinary || at.kind == SyntaxKind::kCompare) {
    PythonValue a = child(0), b = child(1);
    if (a && b) result = arithmetic(at.text, *a, *b);
  } else if (at.kind == SyntaxKind::kConditional) {
    PythonValue test = child(1);
    if (test && test->as<bool>()) result = child(*test->as<bool>() ? 0 : 2);
  } else if (at.kind == SyntaxKind::kSubscript && at.children.size() == 2) {
    PythonValue object = child(0), index = child(1);
    if (object && index) result = item_of(*object, *index);
  }
  return result && count_items_of(*result) <= kMostItems ? result : std::nullopt;
}

std::optional<AttrValue> Parser::python_literal(const Syntax& at) {
  if (at.kind == SyntaxKind::kString) return python_text(at);
  if (at.kind == SyntaxKind::kFloat) return literal_attr(at, false);
  if (at.kind == SyntaxKind::kInt) return is_plain_number(at.text) ? PythonValue(*int_literal(at)) : std::nullopt;
  if (at.text == "...") return std::nullopt;
  return at.text == "None" ? AttrValue() : AttrValue(at.text == "True");
}

std::optional<AttrValue> Parser::python_collection(const Syntax& at) {
  AttrList items;
  for (const Syntax* child : at.children) {
    PythonValue item = python_value(*child);
    if (!item || items.size() > kMostItems) return std::nullopt;
    items.push_back(*item);
  }
  if (at.kind != SyntaxKind::kDict) return AttrValue(std::move(items));
  Attrs entries;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (!items[i].as<std::string>()) return std::nullopt;
    entries.set(*items[i].as<std::string>(), items[i + 1]);
  }
  return AttrValue(std::move(entries));
}

// Reads calls such as len(shape) and math.sqrt(64), and names of modules: np.float32 is the name of a dtype.
std::optional<AttrValue> Parser::python_call(const Syntax& at) {
  const Syntax& named = head_of(at);
  bool dotted = named.kind == SyntaxKind::kAttribute && is_name(*named.children[0]);
  std::string_view library = dotted ? named.children[0]->text : "";
  bool is_array_library = library == "np" || library == "numpy" || library == "torch" || library == "tvm";
  if (!is_call(at)) {
    if (is_array_library && parse_dtype(at.text)) return std::string(at.text);
    return library == "math" && at.text == "pi" ? PythonValue(3.141592653589793) : std::nullopt;
  }
  const std::string root(library.empty() ? named.text : library);
  bool is_other = computed_.contains(root) || constants_.contains(root);
  bool converts = named.text == "convert" && spelling(named).starts_with("tvm.");
  if (!(is_name(named) || library == "math" || library == "np" || converts) || !at.keywords.empty() || is_other)
    return std::nullopt;
  AttrList args;
  for (const Syntax* operand : at.operands()) {
    PythonValue value = python_value(*operand);
    if (!value) return std::nullopt;
    args.push_back(*value);
  }
  return called_function(named.text, args);
}

// Returns the value of a string, also of f"x_{n}", whose names are constants.
std::optional<AttrValue> Parser::python_text(const Syntax& at) {
  size_t quote = std::min(at.text.find_first_of("\"'"), at.text.size());
  std::string_view prefix = at.text.substr(0, quote);
  std::string error, text = unquote(at.text, error);
  if (!error.empty()) return std::nullopt;
  if (prefix.find_first_of("fF") == std::string_view::npos) return text;
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '{') {
      result += text[i++];
      continue;
    }
    size_t end = text.find('}', i);
    if (end == std::string::npos) return std::nullopt;
    std::optional<AttrValue> value = copy_value(constants_, std::string_view(text).substr(i + 1, end - i - 1));
    const std::string* words = value ? value->as<std::string>() : nullptr;
    if (!value || (!words && !value->as<int64_t>())) return std::nullopt;
    result += words ? *words : to_string(*value);
    i = end + 1;
  }
  return result;
}

}  // namespace relaxc::text
