// The functions of Python, and of its modules math and numpy, that appear around modules.
#include <algorithm>
#include <cmath>
#include <ranges>

#include "ir/text/python_value.h"

namespace relaxc::text {

namespace {

using Kind = PythonValue::Kind;
using Args = std::vector<PythonValue>;

PythonResult whole_of(double value) {
  constexpr double kMost = 1e18;
  return std::abs(value) < kMost ? PythonResult(python_int(static_cast<int64_t>(value))) : std::nullopt;
}

PythonResult of_number(std::string_view name, const PythonValue& value, bool is_numpy) {
  double real = value.is_whole() ? static_cast<double>(value.whole) : value.real;
  if (name == "float") return python_float(real);
  if (name == "int") return value.is_whole() ? python_int(value.whole) : whole_of(std::trunc(real));
  if (name == "abs")
    return value.is_whole() && value.whole < 0 ? unary_value("-", value)
           : value.is_whole()                  ? python_int(value.whole)
                                               : python_float(std::abs(real));
  if (name == "sqrt" && real >= 0) return python_float(std::sqrt(real));
  if (name == "log2" && real > 0) return python_float(std::log2(real));
  if (name == "log" && real > 0) return python_float(std::log(real));
  if (name == "exp") return python_float(std::exp(real));
  if (name != "ceil" && name != "floor") return std::nullopt;
  double result = name == "ceil" ? std::ceil(real) : std::floor(real);
  if (is_numpy) return python_float(result);
  return value.is_whole() ? python_int(value.whole) : whole_of(result);
}

// Computes min, max, sum and prod.
PythonResult reduced(std::string_view name, const Args& values, PythonHeap& heap) {
  bool folds = name == "sum" || name == "prod";
  if (values.empty() && !folds) return std::nullopt;
  PythonValue result = folds ? python_int(name == "prod") : values[0];
  for (const PythonValue& value : values) {
    if (folds) {
      PythonResult now = arithmetic(name == "sum" ? "+" : "*", result, value, heap);
      if (!now || !value.is_number()) return std::nullopt;
      result = *now;
    } else {
      std::optional<bool> better = compare(name == "min" ? "<" : ">", value, result, heap);
      if (!better) return std::nullopt;
      if (*better) result = value;
    }
  }
  return result;
}

PythonResult of_range(const Args& args, PythonHeap& heap) {
  if (!std::ranges::all_of(args, &PythonValue::is_whole) || args.size() > 3) return std::nullopt;
  PythonValue start = args.size() > 1 ? args[0] : python_int(0), step = args.size() > 2 ? args[2] : python_int(1);
  if (step.whole == 0) return std::nullopt;
  return heap.list(Kind::kRange, {start, args[args.size() > 1 ? 1 : 0], step});
}

// Computes itertools.product: the rows of which each has an item of each sequence.
PythonResult product_of(const Args& args, PythonHeap& heap) {
  std::vector<Args> rows = {{}};
  for (const PythonValue& arg : args) {
    auto values = iterate(arg, heap);
    if (!values) return std::nullopt;
    std::vector<Args> longer;
    for (const Args& row : rows) {
      for (const PythonValue& value : *values) {
        heap.spend(row.size() + 1);
        longer.push_back(row);
        longer.back().push_back(value);
      }
    }
    rows = std::move(longer);
  }
  Args result;
  for (Args& row : rows) result.push_back(heap.list(Kind::kTuple, std::move(row)));
  return heap.list(Kind::kList, std::move(result));
}

// Computes functions of sequences that return sequences.
PythonResult of_sequences(std::string_view name, const Args& args, PythonHeap& heap) {
  std::vector<Args> lists;
  for (const PythonValue& arg : args) {
    auto values = iterate(arg, heap);
    if (!values) return std::nullopt;
    lists.push_back(std::move(*values));
  }
  if (lists.empty()) return std::nullopt;
  Args result = lists[0];
  if (name == "zip" || name == "enumerate") {
    size_t count = std::ranges::min_element(lists, {}, &Args::size)->size();
    result.clear();
    for (size_t i = 0; i < count; ++i) {
      Args row;
      if (name == "enumerate") row.push_back(python_int(static_cast<int64_t>(i)));
      for (const Args& list : lists) row.push_back(list[i]);
      result.push_back(heap.list(Kind::kTuple, std::move(row)));
    }
    return name == "zip" || lists.size() == 1 ? PythonResult(heap.list(Kind::kList, std::move(result))) : std::nullopt;
  }
  if (args.size() != 1) return std::nullopt;
  if (name == "reversed") std::ranges::reverse(result);
  if (name == "any" || name == "all") {
    for (const PythonValue& value : result) {
      std::optional<bool> test = truth_of(value);
      if (!test) return std::nullopt;
      if (*test == (name == "any")) return python_bool(*test);
    }
    return python_bool(name == "all");
  }
  if (name == "sorted") {
    bool same = std::ranges::all_of(result, [&](const PythonValue& v) { return v.is_whole(); }) ||
                std::ranges::all_of(result, [&](const PythonValue& v) { return v.is(Kind::kString); });
    if (!same) return std::nullopt;
    std::ranges::stable_sort(result,
                             [&](const PythonValue& a, const PythonValue& b) { return *compare("<", a, b, heap); });
  }
  return heap.list(name == "tuple" ? Kind::kTuple : Kind::kList, std::move(result));
}

}  // namespace

PythonResult call_builtin(std::string_view path, const Args& args, PythonHeap& heap) {
  size_t dot = path.rfind('.');
  std::string_view owner = dot == path.npos ? "" : path.substr(0, dot), name = path.substr(dot + 1);
  bool of_python = owner.empty(), of_math = owner == "math", of_numpy = owner == "numpy";
  bool one = args.size() == 1;
  bool is_same = is_one_of(name, {"convert", "get_const_tuple", "get_const_int", "get_const_float", "simplify"});
  if (is_same && one && owner.starts_with("tvm")) return args[0];
  if (!of_python && !of_math && !of_numpy && owner != "itertools") return std::nullopt;
  if (of_python && is_one_of(name, {"tuple", "list"}) && args.empty())
    return heap.list(name == "tuple" ? Kind::kTuple : Kind::kList, {});
  if (args.empty()) return std::nullopt;
  const PythonValue& first = args[0];
  bool of_builtins = is_one_of(name, {"float", "int"});
  bool is_scalar = is_one_of(name, {"float", "int", "abs", "sqrt", "log2", "log", "exp", "ceil", "floor"});
  bool fits_owner = of_builtins ? of_python : name == "abs" ? !of_math : !of_python;
  if (is_scalar && fits_owner && one && first.is_number()) return of_number(name, first, of_numpy);
  if (of_python && name == "float" && one && first.is(Kind::kString) && first.text == "inf")
    return python_float(std::numeric_limits<double>::infinity());
  if (of_python && of_builtins && one && first.is(Kind::kString)) {
    std::optional<int64_t> whole = whole_number(first.text);
    if (whole) return name == "int" ? python_int(*whole) : python_float(static_cast<double>(*whole));
  }
  bool reduces = of_python ? is_one_of(name, {"min", "max", "sum"}) : name == "prod";
  if (reduces) {
    auto values = one ? iterate(first, heap) : std::optional(args);
    return values && (one || of_python) ? reduced(name, *values, heap) : std::nullopt;
  }
  if (path == "itertools.product") return product_of(args, heap);
  if (!of_python) return std::nullopt;
  if (name == "range") return of_range(args, heap);
  if (name == "len" && one) {
    auto values = iterate(first, heap);
    return values ? PythonResult(python_int(std::ssize(*values))) : std::nullopt;
  }
  if (name == "bool" && one) {
    std::optional<bool> test = truth_of(first);
    return test ? PythonResult(python_bool(*test)) : std::nullopt;
  }
  if (name == "str" && one) {
    std::optional<std::string> text = text_of(first);
    return text ? PythonResult(heap.string(*text)) : std::nullopt;
  }
  if (name == "set" && one) {
    auto values = iterate(first, heap);
    if (!values) return std::nullopt;
    Args distinct;
    for (const PythonValue& value : *values) {
      std::optional<bool> has = compare("in", value, heap.list(Kind::kList, distinct), heap);
      if (!has) return std::nullopt;
      if (!*has) distinct.push_back(value);
    }
    return heap.list(Kind::kList, std::move(distinct));
  }
  if (is_one_of(name, {"zip", "enumerate", "reversed", "any", "all", "sorted", "tuple", "list"}))
    return of_sequences(name, args, heap);
  return std::nullopt;
}

}  // namespace relaxc::text
