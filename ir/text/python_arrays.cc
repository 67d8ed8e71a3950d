// Computes the arrays of numpy around a module of which R.const makes constants: np.zeros((4, 8), "float32"),
// np.arange(6).reshape(2, 3) * 2, np.array([[1, 2], [3, 4]]). Random numbers are drawn, too: others than in Python.
#include <algorithm>
#include <cmath>
#include <random>

#include "ir/text/parsing.h"
#include "ir/text/python_lines.h"

namespace relaxc::text {

namespace {

using Array = std::optional<Tensor>;
constexpr int64_t kMostElements = int64_t{1} << 24;
constexpr DType kFloat64{DTypeCode::kFloat, 64, 1};

Array filled(const std::vector<int64_t>& shape, DType dtype, const std::function<double(int64_t)>& value) {
  std::optional<int64_t> count = element_count(shape);
  if (!count || *count > kMostElements || dtype.is_handle() || dtype.lanes != 1) return std::nullopt;
  Tensor result = Tensor::empty(shape, dtype);
  for (int64_t i = 0; i < *count; ++i)
    dtype.is_float() ? result.set_double(i, value(i)) : result.set_int(i, static_cast<int64_t>(value(i)));
  return result;
}

Array as_dtype(const Tensor& array, DType dtype) {
  if (array.dtype() == dtype) return array;
  bool whole = !dtype.is_float() && !array.dtype().is_float();
  if (!whole) return filled(array.shape(), dtype, [&](int64_t i) { return array.as_double(i); });
  Tensor result = Tensor::empty(array.shape(), dtype);
  for (int64_t i = 0; i < array.size(); ++i)
    result.set_int(i, dtype.is_bool() ? array.as_int(i) != 0 : array.as_int(i));
  return result;
}

// A number of Python takes the dtype of the array beside it, but for a fraction beside integers.
Array as_number_beside(const Tensor& array, const Array& number) {
  const bool keeps = !number || (number->dtype().is_float() && !array.dtype().is_float());
  return keeps ? number : as_dtype(*number, array.dtype());
}

Array arithmetic_of(std::string_view op, const Tensor& a, const Tensor& b) {
  bool one = a.size() == 1 || b.size() == 1;
  if (!one && a.shape() != b.shape()) return std::nullopt;
  const Tensor& larger = a.size() == 1 && b.ndim() > 0 ? b : a;
  bool floats = a.dtype().is_float() || b.dtype().is_float();
  // An array without dims takes the dtype of the other.
  DType dtype = a.dtype() == b.dtype() ? a.dtype() : a.ndim() == 0 ? b.dtype() : b.ndim() == 0 ? a.dtype() : kFloat64;
  if (op == "/" || floats) dtype = dtype.is_float() ? dtype : kFloat64;
  if (dtype.is_float()) {
    auto value = [&](int64_t i) {
      return fold_real(op, a.as_double(a.size() == 1 ? 0 : i), b.as_double(b.size() == 1 ? 0 : i));
    };
    if (larger.size() > 0 && !value(0)) return std::nullopt;
    return filled(larger.shape(), dtype, [&](int64_t i) { return value(i).value_or(std::nan("")); });
  }
  Tensor result = Tensor::empty(larger.shape(), dtype);
  for (int64_t i = 0; i < larger.size(); ++i) {
    std::optional<int64_t> value = fold_whole(op, a.as_int(a.size() == 1 ? 0 : i), b.as_int(b.size() == 1 ? 0 : i));
    if (!value) return std::nullopt;
    result.set_int(i, *value);
  }
  return result;
}

}  // namespace

// Returns whether Python computes an array of numpy: np.zeros(4).astype("int8") + 1.
bool is_array_of_numpy(const Syntax& at) {
  if (at.kind == SyntaxKind::kBinary) return is_array_of_numpy(*at.children[0]) || is_array_of_numpy(*at.children[1]);
  if (at.kind == SyntaxKind::kUnary) return is_array_of_numpy(*at.children[0]);
  if (!is_call(at) || at.children[0]->kind != SyntaxKind::kAttribute) return false;
  const Syntax* root = at.children[0]->children[0];
  while (root->kind == SyntaxKind::kAttribute) root = root->children[0];
  return is_name(*root) ? root->text == "np" || root->text == "numpy" : is_array_of_numpy(*root);
}

// Keeps w = np.zeros(4) and w = relax.const(...), of which definitions may make constants. Returns whether it is one.
bool Parser::array_line(const Line& line) {
  if (line.kind != LineKind::kAssign || !line.value || !is_name(*line.target)) return false;
  const Syntax& value = *with_arrays(line).value;
  bool of_arrays = is_array_of_numpy(value) || callee_path(value) == "R.const";
  for_each(&value, [&](const Syntax& at) { of_arrays = of_arrays || (is_name(at) && arrays_.contains(at.text)); });
  if (!of_arrays) return false;
  std::string key = fmt::format("{}<{}>", line.target->text, arrays_.size());
  arrays_.emplace(key, PythonArray{with_names(&value, {}, *python_tree_), line.line});
  array_names_.insert_or_assign(std::string(line.target->text), std::move(key));
  return true;
}

// Any other statement that names an array may change it, but for those that print or build.
void Parser::forget_arrays(const Line& line) {
  if (array_names_.empty()) return;
  bool prints = line.value && is_call(*line.value) && is_name(*line.value->children[0]) &&
                line.value->children[0]->text == "print";
  std::set<std::string_view> names;
  add_bound_names(line, names);
  for_each(line, [&](const Syntax& at) {
    if (is_name(at) && !prints) names.insert(at.text);
  });
  for (std::string_view name : names) {
    auto known = array_names_.find(name);
    if (known == array_names_.end()) continue;
    computed_.insert_or_assign(std::string(name), line.line);
    array_names_.erase(known);
  }
}

// Returns the statement with names of arrays in the form that means the array they have now.
const Line& Parser::with_arrays(const Line& line) {
  if (array_names_.empty()) return line;
  std::set<std::string_view> own;
  add_bound_names(line, own);
  if (line.kind != LineKind::kFunction) own.clear();  // x = x + 1 reads the x before it
  return replaced_line(line, [&](const Syntax& name) -> const Syntax* {
    const std::string* array = own.contains(name.text) ? nullptr : find_value(array_names_, name.text);
    if (!array) return nullptr;
    Syntax& made = tree_->node();
    static_cast<Place&>(made) = name;
    made.kind = SyntaxKind::kName;
    made.text = arrays_.find(*array)->first;
    return &made;
  });
}

const Line& Parser::replaced_line(const Line& line, const Meaning& meaning) {
  Line& result = tree_->line();
  result = line;
  for (const Syntax** part : {&result.annotation, &result.value, &result.extra}) *part = replaced(*part, meaning);
  bool is_element = result.target && result.target->kind == SyntaxKind::kSubscript;
  if (is_element) result.target = replaced(result.target, meaning);
  for (auto& [item, target] : result.items) item = replaced(item, meaning);
  for (Lines* lines : {&result.body, &result.otherwise}) {
    for (const Line*& inner : *lines) inner = &replaced_line(*inner, meaning);
  }
  return result;
}

// Returns the value of a number, a text, or a tuple of them, as which known values are written (python_run.h).
std::optional<AttrValue> Parser::python_value(const Syntax& at) {
  if (is_list(at)) {
    AttrList items;
    for (const Syntax* child : at.children) {
      std::optional<AttrValue> item = python_value(*child);
      if (!item) return std::nullopt;
      items.push_back(*item);
    }
    return AttrValue(std::move(items));
  }
  if (at.kind == SyntaxKind::kAttribute && is_name(*at.children[0]) && parse_dtype(at.text))
    return std::string(at.text);
  bool negates = at.kind == SyntaxKind::kUnary && at.text == "-";
  const Syntax& digits = negates ? *at.children[0] : at;
  bool is_literal = digits.kind == SyntaxKind::kInt || digits.kind == SyntaxKind::kFloat;
  if (at.kind == SyntaxKind::kString || is_literal) return literal_attr(at, false);
  bool is_flag = at.kind == SyntaxKind::kConstant && (at.text == "True" || at.text == "False");
  return is_flag ? std::optional(AttrValue(at.text == "True")) : std::nullopt;
}

// Returns the array that the expression of Python is; nullopt for one that this reader cannot compute.
std::optional<Tensor> Parser::python_array(const Syntax& at) {
  if (is_name(at)) {
    const PythonArray* known = find_value(arrays_, at.text);
    if (!known) return std::nullopt;
    std::erase(python_lines_, known->line);
    return python_array(*known->value);
  }
  if (at.kind == SyntaxKind::kUnary && at.text == "-") {
    Array operand = python_array(*at.children[0]);
    return operand ? arithmetic_of("*", *operand, *filled({}, operand->dtype(), [](int64_t) { return -1.0; }))
                   : operand;
  }
  if (at.kind == SyntaxKind::kBinary) {
    Array a = python_array(*at.children[0]), b = python_array(*at.children[1]);
    if (!a && !b) return std::nullopt;
    if (!a) a = as_number_beside(*b, python_number(*at.children[0]));
    if (!b) b = as_number_beside(*a, python_number(*at.children[1]));
    return a && b ? arithmetic_of(at.text, *a, *b) : std::nullopt;
  }
  if (!is_call(at) || at.children[0]->kind != SyntaxKind::kAttribute) return std::nullopt;
  const Syntax& callee = *at.children[0];
  std::string path = spelling(callee);
  if ((path == "tvm.nd.array" || path == "tvm.runtime.tensor") && positional(at) > 0)
    return python_array(*at.children[1]);
  const Syntax& named = *callee.children[0];
  const Syntax& library = named.kind == SyntaxKind::kAttribute ? *named.children[0] : named;  // np.random.rand
  if (is_name(library) && (library.text == "np" || library.text == "numpy"))
    return made_array(path.substr(library.text.size() + 1), at);
  Array owner = python_array(*callee.children[0]);
  if (!owner || callee.text == "copy" || callee.text == "numpy") return owner;
  if (callee.text == "reshape") return reshaped(*owner, at.operands());
  std::optional<DType> wanted = array_dtype(arg(at, 0, "dtype"), kFloat64);
  return callee.text == "astype" && wanted ? as_dtype(*owner, *wanted) : std::nullopt;
}

std::optional<Tensor> Parser::reshaped(const Tensor& array, std::span<const Syntax* const> dims) {
  std::optional<std::vector<int64_t>> shape = array_shape(dims);
  if (!shape) return std::nullopt;
  auto open = std::ranges::find(*shape, -1);
  if (open != shape->end()) {
    *open = 1;
    std::optional<int64_t> others = element_count(*shape);
    *open = others && *others > 0 ? array.size() / *others : 0;
  }
  if (element_count(*shape) != array.size()) return std::nullopt;
  return Tensor::copy_of(*shape, array.dtype(), array.raw());
}

// Returns a number of Python as an array without dims.
std::optional<Tensor> Parser::python_number(const Syntax& at) {
  std::optional<AttrValue> value = python_value(at);
  if (!value) return std::nullopt;
  const int64_t* whole = value->as<int64_t>();
  if (const double* real = value->as<double>()) return filled({}, kFloat64, [&](int64_t) { return *real; });
  return whole ? filled({}, kInt64, [&](int64_t) { return static_cast<double>(*whole); }) : std::nullopt;
}

std::optional<DType> Parser::array_dtype(const Syntax* at, DType otherwise) {
  if (is_none(at)) return otherwise;
  constexpr std::pair<std::string_view, DType> kOfPython[] = {
      {"float", kFloat64}, {"int", kInt64}, {"bool", kBool}, {"np.float64", kFloat64}, {"np.bool_", kBool}};
  if (const DType* python = row_of(kOfPython, spelling(*at))) return *python;
  std::optional<AttrValue> value = python_value(*at);
  const std::string* text = value ? value->as<std::string>() : nullptr;
  return text ? parse_dtype(*text) : std::nullopt;
}

// Reads (2, 3) or 2, 3 or 6.
std::optional<std::vector<int64_t>> Parser::array_shape(std::span<const Syntax* const> args) {
  std::vector<int64_t> result;
  for (const Syntax* arg : args) {
    std::optional<AttrValue> value = python_value(*arg);
    const AttrList* several = value ? value->as<AttrList>() : nullptr;
    for (const AttrValue& dim : several ? *several : AttrList{value.value_or(AttrValue())}) {
      if (!dim.as<int64_t>() || *dim.as<int64_t>() < -1) return std::nullopt;
      result.push_back(*dim.as<int64_t>());
    }
  }
  return result;
}

// Reads np.array([[1, 2], [3, 4]], dtype="int8").
std::optional<Tensor> Parser::listed_array(const Syntax& at) {
  if (positional(at) == 0) return std::nullopt;
  const Syntax* stated = arg(at, 1, "dtype");
  if (Array known = python_array(*at.children[1])) {
    std::optional<DType> dtype = array_dtype(stated, known->dtype());
    return dtype ? as_dtype(*known, *dtype) : std::nullopt;
  }
  std::optional<AttrValue> value = python_value(*at.children[1]);
  if (!value) return std::nullopt;
  std::vector<int64_t> shape;
  for (const AttrValue* level = &*value; const AttrList* list = level->as<AttrList>(); level = &(*list)[0]) {
    shape.push_back(std::ssize(*list));
    if (list->empty()) break;
  }
  std::vector<double> elements;
  bool real = false, is_even = true;
  std::function<void(const AttrValue&, size_t)> add = [&](const AttrValue& part, size_t depth) {
    const AttrList* list = part.as<AttrList>();
    const int64_t* whole = part.as<int64_t>();
    const bool* flag = part.as<bool>();
    is_even = is_even && (list != nullptr) == (depth < shape.size()) && (!list || std::ssize(*list) == shape[depth]) &&
              (list || whole || flag || part.as<double>());
    if (!is_even) return;
    for (const AttrValue& item : list ? *list : AttrList()) add(item, depth + 1);
    if (list) return;
    real = real || part.as<double>();
    elements.push_back(whole ? static_cast<double>(*whole) : flag ? *flag : *part.as<double>());
  };
  add(*value, 0);
  std::optional<DType> dtype = array_dtype(stated, real || elements.empty() ? kFloat64 : kInt64);
  if (!is_even || !dtype) return std::nullopt;
  return filled(shape, *dtype, [&](int64_t i) { return elements[static_cast<size_t>(i)]; });
}

// Reads the functions of numpy that make arrays.
std::optional<Tensor> Parser::made_array(const std::string& name, const Syntax& at) {
  auto is_one_of = [&](auto... names) { return ((name == names) || ...); };
  if (is_one_of("array", "asarray", "ascontiguousarray")) return listed_array(at);
  if (name.starts_with("random.")) return random_array(name.substr(7), at);
  if (name == "arange") return array_range(at);
  const Syntax* first = arg(at, 0, "shape");
  if (is_one_of("zeros", "empty", "ones", "full", "zeros_like", "ones_like", "full_like") && first) {
    bool like = name.ends_with("_like"), has_value = name.starts_with("full");
    Array of = like ? python_array(*first) : std::nullopt;
    std::optional<std::vector<int64_t>> shape = of ? of->shape() : array_shape(std::array{first});
    const Syntax* stated = has_value ? arg(at, 1, "fill_value") : nullptr;
    Array value = stated ? python_number(*stated) : std::nullopt;
    std::optional<DType> dtype = array_dtype(arg(at, has_value ? 2 : 1, "dtype"), of      ? of->dtype()
                                                                                  : value ? value->dtype()
                                                                                          : kFloat64);
    if (!shape || !dtype || like != of.has_value() || has_value != value.has_value()) return std::nullopt;
    double number = value ? value->as_double(0) : name.starts_with("ones") ? 1 : 0;
    return filled(*shape, *dtype, [&](int64_t) { return number; });
  }
  std::optional<DType> scalar = parse_dtype(name);  // np.float32(0.5)
  if (!scalar || positional(at) != 1) return std::nullopt;
  Array value = python_number(*at.children[1]);
  return value ? as_dtype(*value, *scalar) : std::nullopt;
}

std::optional<Tensor> Parser::array_range(const Syntax& at) {
  std::vector<Tensor> ends;
  for (const Syntax* operand : at.operands()) {
    Array end = python_number(*operand);
    if (!end) return std::nullopt;
    ends.push_back(*end);
  }
  if (ends.empty() || ends.size() > 3) return std::nullopt;
  bool real = std::ranges::any_of(ends, [](const Tensor& end) { return end.dtype().is_float(); });
  double first = ends.size() > 1 ? ends[0].as_double(0) : 0, last = ends[ends.size() > 1 ? 1 : 0].as_double(0);
  double step = ends.size() > 2 ? ends[2].as_double(0) : 1, count = std::ceil((last - first) / step);
  std::optional<DType> dtype = array_dtype(keyword(at, "dtype"), real ? kFloat64 : kInt64);
  if (!(count < static_cast<double>(kMostElements)) || !dtype) return std::nullopt;
  return filled({std::max<int64_t>(0, static_cast<int64_t>(count))}, *dtype,
                [&](int64_t i) { return first + step * static_cast<double>(i); });
}

// Draws numbers as numpy's functions do, though not the same ones: each is one that Python might have drawn.
std::optional<Tensor> Parser::random_array(const std::string& name, const Syntax& at) {
  constexpr std::string_view kNames[] = {"rand", "randn", "normal", "uniform", "random", "randint", "standard_normal"};
  if (std::ranges::find(kNames, name) == std::end(kNames)) return std::nullopt;
  bool by_dims = name.starts_with("rand") && name.size() <= 5, has_range = !by_dims && name.find("rand") == name.npos;
  has_range = (has_range || name == "randint") && name != "standard_normal";
  const Syntax* size = by_dims ? nullptr : arg(at, has_range ? 2 : 0, "size");
  std::optional<std::vector<int64_t>> shape = by_dims ? array_shape(at.operands())
                                              : size  ? array_shape(std::array{size})
                                                      : std::vector<int64_t>();
  std::optional<DType> dtype =
      array_dtype(name == "randint" ? arg(at, 3, "dtype") : nullptr, name == "randint" ? kInt64 : kFloat64);
  auto number = [&](size_t i, const char* key, double otherwise) {
    const Syntax* given = has_range ? arg(at, i, key) : nullptr;
    Array value = given ? python_number(*given) : std::nullopt;
    return value ? value->as_double(0) : otherwise;
  };
  if (!shape || !dtype) return std::nullopt;
  diagnostics_.warning(span(at), "np.random draws other numbers here than in Python");
  std::mt19937_64 random(static_cast<uint64_t>(at.line));
  bool is_normal = name.find("norm") != name.npos || name == "randn";
  double low = number(0, is_normal ? "loc" : "low", 0), high = number(1, is_normal ? "scale" : "high", 1);
  if (name == "randint" && is_none(arg(at, 1, "high"))) std::tie(low, high) = std::pair(0.0, low);
  std::normal_distribution<double> normal(low, is_normal ? high : 1);
  std::uniform_real_distribution<double> uniform(std::min(low, high), std::max(low, high));
  return filled(*shape, *dtype, [&](int64_t) {
    double drawn = is_normal ? normal(random) : uniform(random);
    return dtype->is_float() ? drawn : std::floor(drawn);
  });
}

}  // namespace relaxc::text
