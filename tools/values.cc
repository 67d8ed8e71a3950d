#include "tools/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"
#include "tools/complex_text.h"
#include "vm/npy.h"

namespace relaxc::tools {

namespace {

constexpr int kDeepestValue = vm::kMaxTupleDepth;
constexpr std::string_view kRandom = "_";

class ValueParser {
 public:
  explicit ValueParser(std::string_view text) : text_(text), rest_(text) {}
  WrittenValue parse() {
    WrittenValue result = item(0, '(');
    if (!rest_.empty()) fail({}, "'{}': expected the end of the value before '{}'", text_, rest_);
    return result;
  }

 private:
  void trim() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }
  bool skip(char c) {
    trim();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // Returns whether a parenthesis begins here that holds a comma outside of brackets: (['b'], [1]), but not (n + 1)
  // * 2.
  bool is_tuple_ahead() const {
    int open = 0;
    char quote = 0;
    for (char c : rest_) {
      if (quote != 0) {
        quote = c == quote ? '\0' : quote;
        continue;
      }
      if (c == '\'' || c == '"') quote = c;
      open += (c == '(' || c == '[') - (c == ')' || c == ']');
      if (open == 0) return false;
      if (open == 1 && c == ',') return true;
    }
    return false;
  }
  // An item of a list is a number, a list, or the keys and values of a map. Another parenthesis in it belongs to an
  // expression.
  WrittenValue item(int depth, char around) {  // NOLINT: bounded
    if (depth > kDeepestValue)
      fail({}, "'{}': brackets are nested more than {} deep", text_.substr(0, 40), kDeepestValue);
    trim();
    std::string dtype = dtype_before_list();
    for (const char* pair : {"[]", "()"}) {
      const bool is_tuple = around == '[' ? is_tuple_ahead() : !begins_with_complex(rest_);
      if ((pair[0] == '(' && !is_tuple) || !skip(pair[0])) continue;
      WrittenValue result{pair[0], dtype};
      while (!skip(pair[1])) {
        if (!result.items.empty() && !skip(',')) fail({}, "'{}': expected ',' or '{}' at '{}'", text_, pair[1], rest_);
        if (!result.items.empty() && skip(pair[1])) break;  // (1,)
        result.items.push_back(item(depth + 1, pair[0]));
      }
      trim();
      return result;
    }
    return {0, atom(depth)};
  }
  // Takes the name of a dtype in front of a bracket.
  std::string dtype_before_list() {
    std::string name(rest_.substr(0, std::min(rest_.find('['), rest_.size())));
    if (name.size() == rest_.size() || !parse_dtype(name)) return "";
    rest_.remove_prefix(name.size());
    return name;
  }
  // An atom at the top is the whole text; inside of brackets it ends before the next comma or bracket of the list.
  // Parentheses in it belong to an expression.
  std::string atom(int depth) {
    size_t end = 0;
    int open = 0;
    char quote = !rest_.empty() && (rest_[0] == '\'' || rest_[0] == '"') ? rest_[0] : 0;
    if (quote) end = std::min(rest_.find(quote, 1), rest_.size() - 1) + 1;
    for (; depth > 0 && end < rest_.size(); ++end) {
      if (open == 0 && (rest_[end] == ',' || rest_[end] == ']' || rest_[end] == ')')) break;
      open += (rest_[end] == '(') - (rest_[end] == ')');
    }
    if (depth == 0) end = rest_.size();
    std::string_view result = rest_.substr(0, end);
    rest_.remove_prefix(end);
    while (result.ends_with(' ')) result.remove_suffix(1);
    if (result.empty()) fail({}, "'{}': expected a value, found '{}'", text_, rest_.empty() ? "the end" : rest_);
    return std::string(result);
  }

  std::string_view text_, rest_;
};

std::string unquoted(const std::string& text) {
  bool is_quoted = text.size() > 1 && (text[0] == '\'' || text[0] == '"') && text.back() == text[0];
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}
// Returns the types of a map's keys and values, which have a row for each key.
std::vector<vm::ValueInfo> entries_of(const vm::ValueInfo& map) {
  std::vector<vm::ValueInfo> infos = map.fields;
  for (vm::ValueInfo& info : infos) {
    if (info.dims) info.dims->insert(info.dims->begin(), vm::DimInfo{-1, "?"});
  }
  return infos;
}
Tensor random_strings(std::vector<int64_t> shape, std::mt19937_64& random) {
  constexpr std::string_view kWords[] = {"a", "b", "apple", "Banana", "", "42"};
  std::vector<std::string_view> texts(static_cast<size_t>(element_count(shape).value_or(0)));
  for (std::string_view& text : texts) text = kWords[random() % std::size(kWords)];
  return Tensor::strings(std::move(shape), texts);
}

bool is_random(const WrittenValue& given) { return given.open == 0 && given.text == kRandom && !given.tensor; }
bool is_file(const WrittenValue& given) {
  return given.open == 0 && (given.text.ends_with(".npy") || given.text.ends_with(".pb"));
}
std::optional<int64_t> plain_integer(const WrittenValue& given) {
  if (given.open != 0) return std::nullopt;
  return evaluate_dim(given.text, {});
}
// Returns the shape that nested lists have; a list inside of one must be as long as its neighbours.
bool find_shape(const WrittenValue& given, size_t depth, std::vector<int64_t>& shape) {  // NOLINT: bounded
  if (given.open == 0) return shape.size() == depth;
  if (shape.size() == depth) shape.push_back(std::ssize(given.items));
  if (shape.size() < depth || shape[depth] != std::ssize(given.items)) return false;
  bool is_first = true;
  for (const WrittenValue& item : given.items) {
    if (!is_first && item.open == 0 && shape.size() > depth + 1) return false;
    if (!find_shape(item, depth + 1, shape)) return false;
    is_first = false;
  }
  return true;
}
// Sets an element, and returns whether the number is in the range of the tensor's dtype.
bool set_in_range(const Tensor& tensor, int64_t i, double number) {
  tensor.set_double(i, number);
  return !tensor.dtype().is_float() || !std::isfinite(number) || std::isfinite(tensor.as_double(i));
}
// Returns the nearest number of the scalar's dtype; nullopt where it is beyond the range.
std::optional<double> rounded(double number, const vm::ValueInfo& info) {
  Tensor tensor = Tensor::empty({}, info.dtype.value_or(kFloat64));
  return set_in_range(tensor, 0, number) ? std::optional(tensor.as_double(0)) : std::nullopt;
}
void collect_atoms(const WrittenValue& given, std::vector<const WrittenValue*>& atoms) {  // NOLINT: bounded
  if (given.open == 0) return atoms.push_back(&given);
  for (const WrittenValue& item : given.items) collect_atoms(item, atoms);
}

}  // namespace

WrittenValue parse_value(std::string_view text) { return ValueParser(text).parse(); }
WrittenValue written_value(vm::Value value) {
  if (const auto* tensor = value.get_if<Tensor>()) return {0, "", {}, *tensor};
  return {0, "", {}, {}, std::move(value)};
}

std::vector<vm::Value> InputMaker::make(const std::vector<vm::ValueInfo>& inputs, std::vector<WrittenValue> given) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    input_ = printable(inputs[i].name);
    learn(given[i], inputs[i]);
  }
  dims_.solve();
  std::vector<vm::Value> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    input_ = printable(inputs[i].name);
    values.push_back(build(given[i], inputs[i]));
  }
  return values;
}

static void check_reads_pb(const std::string& path, bool reads) {  // NOLINT: of a sentence
  if (!reads)
    fail({}, "'{}' is a message of ONNX, which relaxc reads and this program does not; give a .npy file", path);
}

// Reads the files, and learns dims from what is given.
void InputMaker::learn(WrittenValue& given, const vm::ValueInfo& info) {  // NOLINT: bounded
  if (is_random(given)) return need(info);
  bool is_container = info.is_optional || info.kind == vm::ValueKind::kSequence || info.kind == vm::ValueKind::kMap;
  if (is_container && is_file(given) && given.text.ends_with(".pb")) {
    check_reads_pb(given.text, readers_.value_pb != nullptr);
    given.value = readers_.value_pb(given.text, info);
    return;
  }
  const bool is_image = readers_.picture && given.open == 0 && !given.tensor && is_picture(given.text);
  if (is_file(given)) given.tensor = read_file(given.text, info);
  if (is_image) given.tensor = readers_.picture(given.text, info, notes_);
  std::vector<int64_t> shape;
  if (given.tensor) shape = given.tensor->shape();
  if (!given.tensor && info.kind == vm::ValueKind::kTensor) find_shape(given, 0, shape);
  if (info.kind == vm::ValueKind::kTensor && info.dims && info.dims->size() == shape.size()) {
    for (size_t d = 0; d < shape.size(); ++d) dims_.learn((*info.dims)[d], shape[d]);
  }
  if (info.kind == vm::ValueKind::kShape && info.dims && info.dims->size() == given.items.size()) {
    for (size_t d = 0; d < given.items.size(); ++d) {
      if (auto number = plain_integer(given.items[d])) dims_.learn((*info.dims)[d], *number);
    }
  }
  auto number = plain_integer(given);
  if (number && info.kind == vm::ValueKind::kInt && info.dims) dims_.learn(info.dims->front(), *number);
  if (number && is_dim(info)) dims_.learn({-1, info.name}, *number);
  if (info.kind == vm::ValueKind::kTuple && given.items.size() == info.fields.size()) {
    for (size_t i = 0; i < given.items.size(); ++i) learn(given.items[i], info.fields[i]);
  }
  if (info.kind == vm::ValueKind::kSequence) {
    for (WrittenValue& item : given.items) learn(item, info.fields[0]);
  }
  if (info.kind == vm::ValueKind::kMap && given.items.size() == 2) {
    for (size_t i = 0; i < 2; ++i) learn(given.items[i], entries_of(info)[i]);
  }
  if (info.kind == vm::ValueKind::kNone) {
    for (WrittenValue& item : given.items) learn(item, info);
  }
}

bool is_picture(const std::string& path) {
  constexpr const char* kEndings[] = {".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm"};
  std::string name = path;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::any_of(kEndings, [&](const char* ending) { return name.ends_with(ending); });
}

static std::string element_text(const Tensor& tensor, int64_t i);

Tensor with_dtype(const Tensor& tensor, DType dtype, const std::string& input, std::vector<std::string>& notes) {
  const DType from = tensor.dtype();
  if (from == dtype || from.is_string() || dtype.is_string() || from.is_complex() > dtype.is_complex()) return tensor;
  Tensor result = Tensor::empty(tensor.shape(), dtype);
  const Tensor numbers = parts_of(tensor), converted = parts_of(result);
  const int64_t parts = from.is_complex() ? 2 : 1, step = dtype.is_complex() && parts == 1 ? 2 : 1;
  auto refuse = [&](int64_t i, const char* why) {
    fail({}, "input '{}': element {} is {}, which is {} {}", input, i / parts, element_text(tensor, i / parts), why,
         to_string(dtype));
  };
  for (int64_t i = 0; i < numbers.size(); ++i) {
    const double number = numbers.as_double(i);
    if (step == 2) converted.set_double(2 * i + 1, 0);
    if (converted.dtype().is_float()) {
      if (!set_in_range(converted, step * i, number)) refuse(i, "beyond the range of");
      continue;
    }
    constexpr double kMost = 9.2e18;  // so that the conversion to an integer is defined
    const bool is_near = number >= -kMost && number <= kMost;
    if (is_near) result.set_int(i, from.is_float() ? static_cast<int64_t>(number) : tensor.as_int(i));
    if (!is_near || result.as_double(i) != number) refuse(i, "not a value of");
  }
  notes.push_back(fmt::format("input '{}': {} is converted to {}", input, to_string(from), to_string(dtype)));
  return result;
}

// Reads a .pb or .npy file. The latter is often of another dtype than the model's, as NumPy's default is float64.
Tensor InputMaker::read_file(const std::string& path, const vm::ValueInfo& info) {
  if (path.ends_with(".pb")) {
    check_reads_pb(path, readers_.tensor_pb != nullptr);
    return readers_.tensor_pb(path, info.dtype);
  }
  Tensor tensor = read_npy(path, info.dtype, &notes_);
  return info.dtype ? with_dtype(tensor, *info.dtype, input_, notes_) : tensor;
}

void InputMaker::need(const vm::ValueInfo& info) {  // NOLINT: bounded
  for (const vm::DimInfo& dim : info.dims.value_or(std::vector<vm::DimInfo>{})) dims_.need(dim);
  if (is_dim(info) && !info.dims) dims_.need({-1, info.name});
  for (const vm::ValueInfo& field : info.fields) need(field);
}

vm::Value InputMaker::build(const WrittenValue& given, const vm::ValueInfo& info) {  // NOLINT: bounded
  if (is_random(given)) return random_value(info);
  if (given.value) return *given.value;
  if (info.is_optional && given.open == 0 && given.text == "None") return {};
  switch (info.kind) {
    case vm::ValueKind::kTensor:
      return given.tensor ? *given.tensor : listed_tensor(given, info);
    case vm::ValueKind::kShape: {
      if (given.open == 0) fail({}, "input '{}': expected a shape such as [1, n], got '{}'", input_, given.text);
      return map_each(given.items, [&](const WrittenValue& item) { return integer(item); });
    }
    case vm::ValueKind::kInt:
      return integer(given);
    case vm::ValueKind::kDouble:
      if (auto value = rounded(number(given), info)) return *value;
      fail({}, "input '{}': {} is beyond the range of {}", input_, given.text, to_string(*info.dtype));
    case vm::ValueKind::kTuple: {
      if (given.open == 0 || given.items.size() != info.fields.size())
        fail({}, "input '{}': expected a tuple of {} items such as (x.npy, 3), with _ for a random item", input_,
             info.fields.size());
      std::vector<vm::Value> fields;
      for (size_t i = 0; i < info.fields.size(); ++i) fields.push_back(build(given.items[i], info.fields[i]));
      return vm::Tuple(std::move(fields));
    }
    case vm::ValueKind::kSequence: {
      if (given.open != '[' || !given.text.empty())
        fail({}, "input '{}': expected a sequence such as [x.npy, [1, 2]]{}", input_,
             readers_.value_pb ? ", or a file (.pb)" : "");
      auto item = [&](const WrittenValue& part) { return build(part, info.fields[0]); };
      return vm::Sequence{vm::Tuple(map_each(given.items, item))};
    }
    case vm::ValueKind::kMap: {
      if (given.open != '(' || given.items.size() != 2)
        fail({}, "input '{}': expected keys and values of a map such as ([1, 2], [0.5, 1]){}", input_,
             readers_.value_pb ? ", or a file (.pb)" : "");
      std::vector<vm::ValueInfo> infos = entries_of(info);
      return vm::Map::of(build(given.items[0], infos[0]).tensor(), build(given.items[1], infos[1]).tensor());
    }
    case vm::ValueKind::kClosure:
      fail({}, "input '{}' is a function, which a command cannot give", input_);
    case vm::ValueKind::kNone:
    case vm::ValueKind::kString:
    case vm::ValueKind::kStorage:
      return untyped(given);
  }
  return {};
}

// Reads a value for an input of unknown type, as it looks.
vm::Value InputMaker::untyped(const WrittenValue& given) {  // NOLINT: bounded
  if (given.tensor) return *given.tensor;
  if (given.open == '(')
    return vm::Tuple(map_each(given.items, [&](const WrittenValue& item) { return untyped(item); }));
  if (given.open == '[' && !given.text.empty()) return listed_tensor(given, {});
  if (given.open == '[') return map_each(given.items, [&](const WrittenValue& item) { return integer(item); });
  const std::string& text = given.text;
  if (text == "None") return {};
  if (unquoted(text) != text) return unquoted(text);
  std::optional<int64_t> integer = as_integer(given);
  return integer ? vm::Value(*integer) : vm::Value(number(given));
}

vm::Value InputMaker::random_value(const vm::ValueInfo& info) {  // NOLINT: bounded
  std::uniform_real_distribution<double> real(-1, 1);
  std::uniform_int_distribution<int64_t> bit(0, 1), integer(integers_.least, integers_.most);
  auto dims = [&] {
    if (!info.dims) fail({}, "input '{0}' has no declared rank; give it with --input {0}=...", input_);
    return map_each(*info.dims, [&](const vm::DimInfo& dim) { return dims_.value(dim); });
  };
  switch (info.kind) {
    case vm::ValueKind::kTensor: {
      DType dtype = info.dtype.value_or(kFloat32);
      if (dtype.is_string()) return random_strings(dims(), random_);
      Tensor tensor = Tensor::empty(dims(), dtype);
      if (dtype.is_int() && dtype.bits == 1) bit = std::uniform_int_distribution<int64_t>(-1, 0);
      const bool is_of_bits = dtype.is_bool() || dtype.bits <= 2;  // which hold no more
      const Tensor numbers = parts_of(tensor);
      for (int64_t i = 0; i < numbers.size(); ++i)
        numbers.dtype().is_float() ? numbers.set_double(i, real(random_))
                                   : numbers.set_int(i, is_of_bits ? bit(random_) : integer(random_));
      return tensor;
    }
    case vm::ValueKind::kShape:
      return dims();
    case vm::ValueKind::kInt:
      if (info.dims) return dims().front();
      if (info.dtype && info.dtype->is_bool()) return bit(random_);
      return is_dim(info) ? dims_.value({-1, info.name}) : 1;
    case vm::ValueKind::kDouble:
      return rounded(real(random_), info).value_or(0);
    case vm::ValueKind::kSequence: {
      std::vector<vm::Value> items = {random_value(info.fields[0])};
      // Two items of each level would be too many where sequences are nested deeply.
      if (info.fields[0].kind != vm::ValueKind::kSequence) items.push_back(random_value(info.fields[0]));
      return vm::Sequence{vm::Tuple(std::move(items))};
    }
    case vm::ValueKind::kTuple:
      return vm::Tuple(map_each(info.fields, [&](const vm::ValueInfo& field) { return random_value(field); }));
    default:
      fail({}, "input '{0}' ({1}) cannot be random; give it with --input {0}=VALUE", input_, to_string(info));
  }
}

Tensor InputMaker::listed_tensor(const WrittenValue& given, const vm::ValueInfo& info) const {
  std::vector<int64_t> shape;
  std::vector<const WrittenValue*> atoms;
  auto dtype = (given.open != 0 && !given.text.empty() ? parse_dtype(given.text) : info.dtype).value_or(kFloat32);
  bool is_beyond = false, is_complex = dtype.is_complex() && as_complex(given.text, is_beyond);
  if (given.open == 0 && !dtype.is_string() && !is_complex && !as_number(given))
    fail({},
         "input '{}': expected a file (.npy{} or an image; .npz for all inputs) or elements such as [[1, 2], [3, 4]], "
         "got '{}'{}",
         input_, readers_.tensor_pb ? ", .pb" : "", given.text,
         given.text.ends_with(".npz") ? "; an archive gives all inputs: --input FILE.npz" : "");
  if (!find_shape(given, 0, shape)) fail({}, "input '{}': lists inside of a list differ in length", input_);
  collect_atoms(given, atoms);
  if (dtype.is_string()) {
    std::vector<std::string> texts = map_each(atoms, [](const WrittenValue* atom) { return unquoted(atom->text); });
    return Tensor::strings(std::move(shape), texts);
  }
  Tensor tensor = Tensor::empty(std::move(shape), dtype);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const WrittenValue& atom = *atoms[static_cast<size_t>(i)];
    auto set_float = [&](const Tensor& of, int64_t at, double number) {
      if (!set_in_range(of, at, number))
        fail({}, "input '{}': {} is beyond the range of {}", input_, atom.text, to_string(dtype));
    };
    if (dtype.is_complex()) {
      const auto number = as_complex(atom.text, is_beyond);
      if (is_beyond) fail({}, "input '{}': {} is beyond the range of float64", input_, atom.text);
      if (!number) fail({}, "input '{}': expected a complex number such as 1.5-2j, got '{}'", input_, atom.text);
      set_float(parts_of(tensor), 2 * i, number->real());
      set_float(parts_of(tensor), 2 * i + 1, number->imag());
      continue;
    }
    if (tensor.dtype().is_float()) {
      set_float(tensor, i, number(atom));
      continue;
    }
    const int64_t value = integer(atom);
    if (tensor.set_int(i, value); tensor.as_int(i) != value)
      fail({}, "input '{}': {} is not a value of {}", input_, value, to_string(tensor.dtype()));
  }
  return tensor;
}

std::optional<int64_t> InputMaker::as_integer(const WrittenValue& given) const {
  if (given.tensor) {
    const bool is_integer = !given.tensor->dtype().is_float() && !given.tensor->dtype().is_complex();
    return given.tensor->size() == 1 && is_integer ? std::optional(given.tensor->as_int(0)) : std::nullopt;
  }
  if (given.open != 0) return std::nullopt;
  if (given.text == "True" || given.text == "true") return 1;
  if (given.text == "False" || given.text == "false") return 0;
  return evaluate_dim(given.text, dims_.known());
}
std::optional<double> InputMaker::as_number(const WrittenValue& given) const {
  if (given.tensor && given.tensor->size() == 1 && !given.tensor->dtype().is_complex())
    return given.tensor->as_double(0);
  const char* end = given.text.c_str();
  const std::optional<double> value = leading_number(end);
  const bool is_read = given.open == 0 && *end == 0 && end != given.text.c_str();
  if (is_read && !value) fail({}, "input '{}': {} is beyond the range of float64", input_, given.text);
  return is_read ? value : std::optional<double>(as_integer(given));
}

int64_t InputMaker::integer(const WrittenValue& given) const {
  auto value = as_integer(given);
  if (!value) fail({}, "input '{}': expected an integer or a dim such as n + 1, got '{}'", input_, given.text);
  return *value;
}

double InputMaker::number(const WrittenValue& given) const {
  auto value = as_number(given);
  if (!value) fail({}, "input '{}': expected a number, got '{}'", input_, given.text);
  return *value;
}

std::vector<NamedValue> flat_results(const vm::Value& result, const std::vector<vm::ValueInfo>& outputs) {
  std::vector<NamedValue> values;
  auto flatten = [&](auto& self, const vm::Value& value) -> void {
    if (const auto* tuple = value.get_if<vm::Tuple>()) {
      for (const vm::Value& field : tuple->fields()) self(self, field);
      return;
    }
    size_t i = values.size();
    bool is_declared = i < outputs.size();
    values.push_back({is_declared ? outputs[i].name : fmt::format("output_{}", i), value,
                      is_declared ? outputs[i].dtype : std::nullopt, is_declared && outputs[i].is_optional});
  };
  flatten(flatten, result);
  return values;
}

std::optional<Tensor> as_tensor(const NamedValue& named) {
  const vm::Value& value = named.value;
  if (const auto* tensor = value.get_if<Tensor>()) return *tensor;
  if (const auto* shape = value.get_if<vm::Shape>())
    return Tensor::copy_of({std::ssize(*shape)}, kInt64, shape->data());
  bool is_integer = value.kind() == vm::ValueKind::kInt;
  if (!is_integer && value.kind() != vm::ValueKind::kDouble) return std::nullopt;
  Tensor tensor = Tensor::empty({}, named.dtype.value_or(is_integer ? kInt64 : kFloat64));
  is_integer ? tensor.set_int(0, value.integer()) : tensor.set_double(0, value.number());
  return tensor;
}

constexpr int64_t kMostShown = 6;  // elements of a tensor, items of a sequence, entries of a map

static std::string short_text(const Tensor& tensor, int64_t i) {  // NOLINT: bounded
  if (tensor.dtype().is_complex()) return complex_text(tensor, i, short_text);
  if (tensor.dtype().is_string()) return fmt::format("'{}'", printable(std::string(tensor.string(i))));
  if (!tensor.dtype().is_float()) return fmt::format("{}", tensor.as_int(i));
  const double value = tensor.as_double(i);
  return std::isnan(value) ? "nan" : fmt::format("{:.6g}", value);  // the sign of a NaN means nothing
}
// Returns "0.1, 0.2, ...": the first ones of `count` parts.
template <class F>
static std::string first_ones(int64_t count, F text_of) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < std::min(count, kMostShown); ++i) texts.push_back(text_of(i));
  return joined(texts) + (count > kMostShown ? ", ..." : "");
}
// Returns "[0.1, 0.2, ...]": elements from `first` on.
static std::string some_elements(const Tensor& tensor, int64_t first, int64_t count) {
  return fmt::format("[{}]", first_ones(count, [&](int64_t i) { return short_text(tensor, first + i); }));
}
static std::string summary_of_tensor(const Tensor& tensor) {
  std::string text = describe(tensor);
  if (tensor.size() == 0) return text + "  empty";
  const bool has_order = !tensor.dtype().is_string() && !tensor.dtype().is_complex();
  if (!has_order) return fmt::format("{}  {}", text, some_elements(tensor, 0, tensor.size()));
  double min = INFINITY, max = -INFINITY, sum = 0, count = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    double value = tensor.as_double(i);
    if (std::isnan(value)) continue;
    min = std::min(min, value);
    max = std::max(max, value);
    sum += value;
    ++count;
  }
  if (count > 0) text += fmt::format("  min {:.6g}  max {:.6g}  mean {:.6g}", min, max, sum / count);
  if (int64_t nans = tensor.size() - static_cast<int64_t>(count)) text += fmt::format("  {} NaN", nans);
  return fmt::format("{}  {}", text, some_elements(tensor, 0, tensor.size()));
}
// Returns "map from string[2] to float32[2]  {'a': 0.5, 'b': 1}".
static std::string summary_of_map(const vm::Map& map) {
  const Tensor &keys = map.keys(), &values = map.values();
  const int64_t count = keys.size(), row = count > 0 ? values.size() / count : 0;
  auto entry = [&](int64_t i) {
    const bool is_single = values.shape().size() == 1;
    return fmt::format("{}: {}", short_text(keys, i),
                       is_single ? short_text(values, i) : some_elements(values, i * row, row));
  };
  return fmt::format("{}  {{{}}}", printable(describe(vm::Value(map))), first_ones(count, entry));
}
// Items of a sequence stand in lines of their own, which begin with the indent.
static std::string summary_of_value(const vm::Value& value, const std::string& indent) {  // NOLINT: bounded
  if (const auto* tensor = value.get_if<Tensor>()) return summary_of_tensor(*tensor);
  if (const auto* map = value.get_if<vm::Map>()) return summary_of_map(*map);
  const auto* sequence = value.get_if<vm::Sequence>();
  constexpr size_t kDeepest = 4;  // the indent of the innermost sequence whose items are shown
  if (!sequence || indent.size() > kDeepest) return printable(describe(value));
  const std::span<const vm::Value> items = sequence->items.fields();
  std::string text = fmt::format("sequence of {}", items.size());
  for (size_t i = 0; i < std::min<size_t>(items.size(), kMostShown); ++i)
    text += fmt::format("\n{}[{}] {}", indent, i, summary_of_value(items[i], indent + "  "));
  if (items.size() > kMostShown) text += fmt::format("\n{}... {} more", indent, items.size() - kMostShown);
  return text;
}

static std::string element_text(const Tensor& tensor, int64_t i) {  // NOLINT: bounded
  DType dtype = tensor.dtype();
  if (dtype.is_complex()) return complex_text(tensor, i, element_text);
  if (dtype.is_string()) return fmt::format("'{}'", printable(std::string(tensor.string(i)), std::string::npos));
  if (dtype.is_bool()) return tensor.as_int(i) ? "True" : "False";
  if (!dtype.is_float()) return fmt::format("{}", tensor.as_int(i));
  return dtype == kFloat64 ? fmt::format("{}", tensor.as_double(i))
                           : fmt::format("{}", static_cast<float>(tensor.as_double(i)));
}
// Returns the elements of the dims from `dim` on, the first of which is element `first`.
static std::string elements_text(const Tensor& tensor, size_t dim, int64_t first) {  // NOLINT: bounded
  if (dim == tensor.shape().size()) return element_text(tensor, first);
  int64_t stride = element_count(std::span(tensor.shape()).subspan(dim + 1)).value_or(0);
  std::vector<std::string> items;
  for (int64_t i = 0; i < tensor.shape()[dim]; ++i) items.push_back(elements_text(tensor, dim + 1, first + i * stride));
  return fmt::format("[{}]", joined(items));
}
std::string elements_text(const Tensor& tensor) { return elements_text(tensor, 0, 0); }

std::string largest_elements(const NamedValue& named, int64_t count, const std::vector<std::string>& labels) {
  const auto* tensor = named.value.get_if<Tensor>();
  const bool has_order = tensor && !tensor->dtype().is_string() && !tensor->dtype().is_complex();
  if (!has_order || tensor->shape().empty() || tensor->size() == 0) return "";
  const int64_t row_size = tensor->shape().back();
  std::string text;
  for (int64_t row = 0; row < tensor->size() / row_size; ++row) {
    std::vector<std::pair<double, int64_t>> elements;  // by size, and then by position
    for (int64_t i = 0; i < row_size; ++i) {
      const double element = tensor->as_double(row * row_size + i);
      if (!std::isnan(element)) elements.emplace_back(-element, i);
    }
    const auto shown = std::min<size_t>(elements.size(), static_cast<size_t>(count));
    std::ranges::partial_sort(elements, elements.begin() + static_cast<std::ptrdiff_t>(shown));
    if (row > 0) text += "\n";
    for (size_t k = 0; k < shown; ++k) {
      const int64_t i = elements[k].second;
      const std::string label = i < std::ssize(labels) ? "  " + printable(labels[static_cast<size_t>(i)]) : "";
      text += fmt::format("{:>8}  {:>12}{}\n", i, short_text(*tensor, row * row_size + i), label);
    }
  }
  return text;
}

std::string summary(const NamedValue& named) {
  std::string name = printable(named.name);
  const auto* number = named.value.get_if<int64_t>();
  if (number && named.dtype && named.dtype->is_bool()) return fmt::format("{}: {}", name, *number ? "True" : "False");
  return fmt::format("{}: {}", name, summary_of_value(named.value, "  "));
}

}  // namespace relaxc::tools
