// Reads numbers, strings, dtypes, and the values of attributes.
#include <charconv>
#include <limits>

#include "ir/text/parsing.h"

namespace relaxc::text {

std::string Parser::string(const Syntax& at) {
  if (at.kind != SyntaxKind::kString) fail(at, "expected a string");
  std::string_view prefix = at.text.substr(0, at.text.find_first_of("\"'"));
  if (prefix.find_first_of("fF") != std::string_view::npos && at.text.find('{') != std::string_view::npos)
    fail(at, "an f-string needs a Python interpreter; write out its text");
  std::string error, result = unquote(at.text, error);
  if (error == kNeverClosed) throw Failed();  // the lexer has reported it
  if (!error.empty()) fail(at, "{}", error);
  return result;
}
std::string Parser::name_of_target(const Syntax& at) {
  if (!is_name(at)) fail(at, "expected a name on the left of '='");
  return std::string(at.text);
}

namespace {

// Returns the text without the underscores between its digits.
std::string digits_of(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '_');
  return digits;
}

// Reads digits with underscores and 0x, 0b, 0o; nullopt when the value needs more than 64 bits.
std::optional<uint64_t> parse_digits(std::string_view text) {
  std::string digits = digits_of(text);
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && (digits[1] < '0' || digits[1] > '9')) {
    base = digits[1] == 'x' || digits[1] == 'X' ? 16 : digits[1] == 'o' ? 8 : 2;
    digits.erase(0, 2);
  }
  uint64_t value = 0;
  const char* last = digits.data() + digits.size();
  auto [end, error] = std::from_chars(digits.data(), last, value, base);
  return error == std::errc() && end == last ? std::optional(value) : std::nullopt;
}

// Reads a token of kind kFloat. As in Python, 1e999 is infinity and 1e-999 is zero.
double parse_float(std::string_view text) {
  std::string digits = digits_of(text);
  double value = 0;
  bool in_range = std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc();
  bool tiny = digits.find("e-") != std::string::npos || digits.find("E-") != std::string::npos;
  return in_range ? value : tiny ? 0.0 : std::numeric_limits<double>::infinity();
}

}  // namespace

std::optional<double> special_float(std::string_view text) {
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

// Reads an integer with its sign, T.int64(3) included; uint64 values are returned as their bits.
std::optional<int64_t> Parser::int_literal(const Syntax& at) {
  if (at.kind == SyntaxKind::kInt) {
    std::optional<uint64_t> value = parse_digits(at.text);
    if (!value) fail(at, "'{}' is not an integer of 64 bits", at.text);
    return static_cast<int64_t>(*value);
  }
  if (at.kind == SyntaxKind::kUnary && at.text == "-" && at.children[0]->kind == SyntaxKind::kInt) {
    uint64_t value = static_cast<uint64_t>(*int_literal(*at.children[0]));
    if (value > uint64_t{1} << 63) fail(at, "'-{}' is not an integer of 64 bits", at.children[0]->text);
    return static_cast<int64_t>(0 - value);
  }
  return std::nullopt;
}
int64_t Parser::constant_int(const Syntax& at) {
  if (auto value = int_literal(at)) return *value;
  AttrValue value = attr_value(at);
  if (const int64_t* number = value.as<int64_t>()) return *number;
  fail(at, "expected an integer constant");
}
bool Parser::constant_bool(const Syntax& at) {
  AttrValue value = attr_value(at);
  bool result = false;
  if (!from_attr(value, result)) fail(at, "expected True or False");
  return result;
}

// Returns the dtype of an element, scalar or tensor: of `A[i].dtype`, x.struct_info.dtype. nullopt for other syntax.
std::optional<DType> Parser::dtype_of_value(const Syntax& at) {
  const Syntax* root = &at;
  while (root->kind == SyntaxKind::kSubscript || root->kind == SyntaxKind::kAttribute) root = root->children[0];
  bool is_value = is_name(*root) ? lookup(root->text) != nullptr : is_call(*root) || root->kind == SyntaxKind::kBinary;
  if (!is_value) return std::nullopt;
  if (std::optional<Buffer> buffer = named_buffer(at)) return buffer_type(*buffer).dtype;
  bool is_type = at.kind == SyntaxKind::kAttribute && (at.text == "struct_info" || at.text == "ty");
  Type type = eval(is_type ? *at.children[0] : at).expr.type();
  const PrimType* scalar = type.as<PrimType>();
  return scalar ? std::optional(scalar->dtype) : tensor_dtype(type);
}

DType Parser::dtype(const Syntax& at) {
  bool is_property = at.kind == SyntaxKind::kAttribute && at.text == "dtype";
  if (auto owner = is_property ? named_buffer(*at.children[0]) : std::nullopt) return buffer_type(*owner).dtype;
  if (std::optional<DType> of_value = is_property ? dtype_of_value(*at.children[0]) : std::nullopt) return *of_value;
  std::string path = callee_path(at), name = dotted(at);
  if (at.computed != 0) refuse_computed(at, at.computed);
  std::string_view owner = at.kind == SyntaxKind::kAttribute ? at.children[0]->text : "";
  bool of_library = owner == "np" || owner == "numpy" || owner == "torch";  // np.float32
  if (auto parsed = of_library ? parse_dtype(at.text) : std::nullopt) return *parsed;
  bool called = path == "R.dtype" || path == "T.dtype";
  const Syntax& stated = called ? required(at, 0, "dtype") : at;
  bool is_name = !called && name.starts_with("T.");
  if (!is_name && stated.kind != SyntaxKind::kString) require_defined(stated);
  if (!is_name && stated.kind != SyntaxKind::kString) fail(at, "expected a dtype, such as \"float32\"");
  std::string text = is_name ? name.substr(2) : string(stated);
  if (auto parsed = parse_dtype(text)) return *parsed;
  constexpr std::pair<std::string_view, DType> kNatural[] = {
      {"float", kFloat32}, {"int", kInt32}, {"uint", {DTypeCode::kUInt, 32, 1}}};
  if (const DType* natural = row_of(kNatural, text)) return *natural;
  // Papers write "f32".
  bool is_short = bare_forms_ && text.size() > 1 && std::string_view("fiu").find(text[0]) != std::string_view::npos;
  auto parsed = is_short ? parse_dtype((text[0] == 'f'   ? "float"
                                        : text[0] == 'i' ? "int"
                                                         : "uint") +
                                       text.substr(1))
                         : std::nullopt;
  if (parsed) return *parsed;
  std::string near = nearest(text, {"float32", "float16", "float64", "bfloat16", "int8", "int16", "int32", "int64",
                                    "uint8", "uint16", "uint32", "uint64", "bool", "handle"});
  fail({at, near.empty() ? "" : string_literal(near)}, "unknown dtype '{}'", text);
}

// With `keep` (in attributes of programs, blocks and loops) numbers keep their dtypes, and expressions are allowed.
AttrValue Parser::attr_value(const Syntax& at, bool keep) {
  if (std::optional<AttrValue> value = literal_attr(at, keep)) return *value;
  bool computes = at.kind == SyntaxKind::kUnary || at.kind == SyntaxKind::kBinary;
  if (keep || computes) {
    std::optional<Buffer> buffer = named_buffer(at);
    Value value = buffer ? Value{*buffer} : eval(at);
    if (value.literal && value.expr.is<IntImm>()) return value.expr.as<IntImm>()->value;
    if (value.literal && value.exact) return *value.exact;
    if (keep && (value.expr.type().is<PrimType>() || value.expr.type().is<BufferType>())) return value.expr;
  }
  std::string path = spelling(at);
  if (path == "math.inf" || path == "math.nan")
    fail({at, fmt::format("float(\"{}\")", path.substr(5))}, "expected a constant value, got {}", path);
  require_defined(at);
  fail(at, "expected a constant value, got {}", path);
}

// Returns the value that the syntax alone determines; nullopt when it has to be computed or is not a constant.
std::optional<AttrValue> Parser::literal_attr(const Syntax& at, bool keep) {
  if (at.kind == SyntaxKind::kString) return string(at);
  if (at.kind == SyntaxKind::kDict) return attrs(at);
  if (at.kind == SyntaxKind::kUnary && at.text == "-") {
    if (auto value = int_literal(at)) return *value;
    const Syntax& operand = *at.children[0];
    AttrValue value = operand.kind == SyntaxKind::kFloat || is_call(operand) ? attr_value(operand) : AttrValue();
    return value.as<double>() ? std::optional<AttrValue>(-*value.as<double>()) : std::nullopt;
  }
  if (is_call(at)) return called_attr(at, keep);
  if (at.kind == SyntaxKind::kInt) {
    int64_t value = *int_literal(at);
    if (value < 0) fail(at, "'{}' does not fit in int64; as uint64 it is T.uint64({})", at.text, at.text);
    return value;
  }
  if (at.kind == SyntaxKind::kFloat) return parse_float(at.text);
  if (at.kind == SyntaxKind::kConstant && at.text != "...")
    return at.text == "None" ? AttrValue() : AttrValue(at.text == "True");
  if (!is_list(at)) return std::nullopt;
  return map_each(at.children, [&](const Syntax* item) { return attr_value(*item, keep); });
}

std::optional<AttrValue> Parser::called_attr(const Syntax& at, bool keep) {
  std::string name = called(at);
  if (name == "R.dtype" || name == "T.dtype") return dtype(at);
  if (name == "R.str" || name == "T.StringImm") return string(required(at, 0, "value"));
  if (name == "R.shape" || name == "R.prim_value") return attr_value(required(at, 0, "value"));
  // Closed terms as attributes: one entry under the constructor's name (see to_string of AttrValue).
  if (name == "T.target") return Attrs{{name, attr_value(required(at, 0, "target_config"))}};
  if (name == "T.index_map") return index_map(at);
  if (name == "float") return number_attr(required(at, 0, "value"), kFloat64);
  if (name == "T.FloatImm" || name == "T.IntImm")
    return number_attr(required(at, 1, "value"), dtype(required(at, 0, "dtype")));
  std::optional<DType> scalar = name.starts_with("T.") ? parse_dtype(name.substr(2)) : std::nullopt;
  if (!scalar) return std::nullopt;
  bool plain = *scalar == kInt32 || *scalar == kFloat32 || scalar->is_bool();
  if (keep && !plain) return std::nullopt;
  return number_attr(required(at, 0, "value"), *scalar);
}

// Returns the value of `T.float32(argument)` and of the same form with other dtypes.
AttrValue Parser::number_attr(const Syntax& argument, DType dtype) {
  if (argument.kind == SyntaxKind::kString) {
    std::string text = string(argument);
    if (auto special = special_float(text)) return *special;
    fail(argument, "'{}' is not a number", text);
  }
  AttrValue value = attr_value(argument);
  bool flag = false;
  if (dtype.is_bool() && from_attr(value, flag)) return flag;
  double number = 0;
  if (dtype.is_float() && from_attr(value, number)) return number;
  return value;
}

Attrs Parser::attrs(const Syntax& at) {
  if (at.kind != SyntaxKind::kDict) fail(at, "expected a dictionary");
  Attrs result;
  for (size_t i = 0; i + 1 < at.children.size(); i += 2) {
    std::string key = string(*at.children[i]);
    if (key.starts_with("tirx.")) key.erase(3, 1);  // later versions' name of the same
    if (result.has(key)) fail(*at.children[i], "key '{}' is given twice", key);
    result.set(key, attr_value(*at.children[i + 1], true));
  }
  return result;
}
Attrs Parser::annotations(const Syntax* at) {
  Attrs result;
  for (const auto& [key, value] : optional_attrs(at)) {
    const bool is_schedule = key.starts_with("pragma_") || key.starts_with("meta_schedule.");
    const Expr* typed = is_schedule ? value.as<Expr>() : nullptr;
    auto number = typed ? as_int(*typed) : std::nullopt;
    result.set(key, number && !dtype_of(*typed).is_bool() ? AttrValue(*number) : value);
  }
  return result;
}

Attrs read_dictionary(const Source& source) {
  static const OpTable kNoOps({});
  Diagnostics diagnostics;
  SyntaxTree tree;
  Parser parser(source.origin, kNoOps, diagnostics);
  Attrs result;
  if (const Syntax* at = parse_expression(source, tree, diagnostics))
    parser.guarded([&] { result = parser.attrs(*at); });
  diagnostics.throw_if_errors();
  return result;
}

void Parser::add_attrs(const Syntax& call, Attrs& to) {
  for (const auto& [key, value] : attrs(required(call, 0, "attrs"))) to.set(key, value);
}

}  // namespace relaxc::text
