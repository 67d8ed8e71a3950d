// Scalar expressions from the syntax tree: literals that take their dtype from the other operand, operators, buffers.
// Calls of T.something: parse_tir_call.cc.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/arith.h"
#include "ir/intrinsics.h"
#include "ir/text/parsing.h"
#include "support/checked_math.h"

namespace relaxc::text {

namespace {

struct OperatorRow {
  std::string_view symbol;
  BinaryOp op;
};
constexpr OperatorRow kOperators[] = {
    {"+", BinaryOp::kAdd},        {"-", BinaryOp::kSub},         {"*", BinaryOp::kMul},
    {"/", BinaryOp::kDiv},        {"//", BinaryOp::kFloorDiv},   {"%", BinaryOp::kFloorMod},
    {"<<", BinaryOp::kShiftLeft}, {">>", BinaryOp::kShiftRight}, {"&", BinaryOp::kBitAnd},
    {"|", BinaryOp::kBitOr},      {"^", BinaryOp::kBitXor},      {"==", BinaryOp::kEQ},
    {"!=", BinaryOp::kNE},        {"<", BinaryOp::kLT},          {"<=", BinaryOp::kLE},
    {">", BinaryOp::kGT},         {">=", BinaryOp::kGE},         {"and", BinaryOp::kAnd},
    {"or", BinaryOp::kOr},
};
bool is_scalar(const Expr& expr) { return expr.type().is<PrimType>(); }

}  // namespace

bool fits(int64_t value, DType dtype) {
  if (dtype.is_bool()) return value == 0 || value == 1;
  if (dtype.bits >= 64) return true;
  int64_t most = dtype.is_uint() ? (int64_t{1} << dtype.bits) - 1 : (int64_t{1} << (dtype.bits - 1)) - 1;
  int64_t least = dtype.is_uint() ? 0 : -(int64_t{1} << (dtype.bits - 1));
  return value >= least && value <= most;
}

std::optional<int64_t> scalable_lanes(const Expr& count) {
  if (op_name(count) == "tir.vscale") return -1;
  const Binary* product = count.as<Binary>();
  if (!product || product->op != BinaryOp::kMul) return std::nullopt;
  auto left = as_int(product->a), right = as_int(product->b);
  if (left && op_name(product->b) == "tir.vscale") return -*left;
  if (right && op_name(product->a) == "tir.vscale") return -*right;
  return std::nullopt;
}

std::optional<BinaryOp> operator_of(std::string_view symbol) {
  for (const OperatorRow& row : kOperators) {
    if (row.symbol == symbol) return row.op;
  }
  return std::nullopt;
}

Expr Parser::adapt(Value value, DType dtype, const Syntax& at) {
  if (!is_scalar(value.expr)) fail(at, "expected a scalar");
  if (!value.literal) return value.expr;
  DType element = dtype.element();
  std::optional<Expr> result;
  if (const IntImm* imm = value.expr.as<IntImm>()) {
    if (element.is_float()) {
      result = float_imm(static_cast<double>(imm->value), element, value.expr.span());
    } else if (element.is_integral() || element.is_bool()) {
      if (!fits(imm->value, element)) fail(at, "{} does not fit in {}", imm->value, to_string(element));
      result = int_imm(imm->value, element, value.expr.span());
    }
  } else if (const FloatImm* imm = value.expr.as<FloatImm>()) {
    if (element.is_float()) result = float_imm(value.exact.value_or(imm->value), element, value.expr.span());
  }
  if (!result) fail(at, "expected {}, got {}", to_string(dtype), to_string(dtype_of(value.expr)));
  return dtype.lanes == 1 ? *result : broadcast(*result, dtype.lanes, value.expr.span());
}

Expr Parser::scalar(const Syntax& at, std::optional<DType> wanted) {
  Value value = eval(at);
  if (!is_scalar(value.expr)) {
    const Var* var = value.expr.as<Var>();
    if (var && value.expr.type().is<BufferType>())
      fail(at, "expected a scalar, got buffer '{}'; index it: {}[...]", var->name, var->name);
    fail(at, "expected a scalar");
  }
  return wanted ? adapt(std::move(value), *wanted, at) : value.expr;
}

Expr Parser::condition(const Syntax& at) {
  Expr value = scalar(at);
  if (!dtype_of(value).is_bool()) fail(at, "expected a condition, got {}", to_string(dtype_of(value)));
  return value;
}

// Brings two scalars to one dtype as TVM does: literals follow, narrow integers widen, integers become floats, scalars
// fill vectors.
void Parser::match_operands(Value& a, Value& b, const Syntax& at) {
  if (!is_scalar(a.expr) || !is_scalar(b.expr)) fail(at, "expected scalars on both sides");
  DType x = dtype_of(a.expr), y = dtype_of(b.expr);
  if (x == y) {
    return;
  }
  auto widens_float = [](const Value& literal, DType other) {
    return literal.expr.is<FloatImm>() && !other.is_float();
  };
  if (a.literal && !b.literal && !widens_float(a, y)) {
    a = {adapt(a, y, at)};
    return;
  }
  if (b.literal && !a.literal && !widens_float(b, x)) {
    b = {adapt(b, x, at)};
    return;
  }
  auto number = [](DType dtype) { return dtype.is_integral() || dtype.is_float(); };
  bool both_bool = x.is_bool() && y.is_bool();
  if ((!number(x) || !number(y)) && !both_bool)
    fail(at, "operands have different dtypes: {} and {}", to_string(x), to_string(y));
  if (x.lanes != y.lanes) {
    if (x.lanes != 1 && y.lanes != 1) fail(at, "operands have different lanes: {} and {}", to_string(x), to_string(y));
    Value& narrow = x.lanes == 1 ? a : b;
    narrow = {broadcast(narrow.expr, std::max(x.lanes, y.lanes), span(at))};
    x = dtype_of(a.expr);
    y = dtype_of(b.expr);
  }
  auto rank = [](DType dtype) { return (dtype.is_float() ? 1000 : 0) + dtype.bits * 2 + dtype.is_int(); };
  DType common = rank(x) >= rank(y) ? x : y;
  bool literal = a.literal && b.literal;
  a = {cast_to(a.expr, common, span(at)), literal};
  b = {cast_to(b.expr, common, span(at)), literal};
}

Value Parser::number(const Syntax& at) {
  AttrValue value = attr_value(at);
  if (const double* real = value.as<double>()) return literal(*real, at);
  return literal(*value.as<int64_t>(), at);
}
Value Parser::literal(int64_t value, const Syntax& at) {
  DType dtype = default_int_ == kInt32 && !fits(value, kInt32) ? kInt64 : default_int_;
  return {int_imm(value, dtype, span(at)), true};
}
Value Parser::literal(double value, const Syntax& at) { return {float_imm(value, kFloat32, span(at)), true, value}; }

std::optional<Value> Parser::fold_literals(std::string_view op, const Value& a, const Value& b, const Syntax& at) {
  const IntImm* x = a.literal ? a.expr.as<IntImm>() : nullptr;
  const IntImm* y = b.literal ? b.expr.as<IntImm>() : nullptr;
  std::optional<double> u = x ? static_cast<double>(x->value) : a.literal ? a.exact : std::nullopt;
  std::optional<double> v = y ? static_cast<double>(y->value) : b.literal ? b.exact : std::nullopt;
  if (!u || !v) return std::nullopt;
  auto no_value = [&] {
    auto text = [](const IntImm* whole, double real) {
      return whole ? fmt::format("{}", whole->value) : fmt::format("{}", real);
    };
    fail(at, "{} {} {} has no value", text(x, *u), op, text(y, *v));
  };
  std::optional<BinaryOp> operation = operator_of(op);
  bool divides = op == "/" || op == "//" || op == "%";
  if (divides && *v == 0) no_value();
  if (operation && info(*operation).compares) {
    auto compare = [&](auto p, auto q) {
      return op == "=="   ? p == q
             : op == "!=" ? p != q
             : op == "<"  ? p < q
             : op == "<=" ? p <= q
             : op == ">"  ? p > q
                          : p >= q;
    };
    return Value{bool_imm(x && y ? compare(x->value, y->value) : compare(*u, *v), span(at))};
  }
  if (op == "/") return literal(*u / *v, at);
  if (op == "**" && (!x || !y || y->value < 0)) return literal(std::pow(*u, *v), at);
  if (x && y) {
    std::optional<int64_t> result;
    if (op == "**") {
      result = 1;
      for (int64_t i = 0; result && i < y->value; ++i) {
        if (x->value == 0 || x->value == 1) {
          result = x->value;
          break;
        }
        result = checked_mul(*result, x->value);
      }
    } else if (op == "+") {
      result = checked_add(x->value, y->value);
    } else if (op == "-") {
      result = checked_sub(x->value, y->value);
    } else if (op == "*") {
      result = checked_mul(x->value, y->value);
    } else if (op == "<<") {
      if (y->value >= 0 && y->value < 63) result = checked_mul(x->value, int64_t{1} << y->value);
    } else if (operation) {
      result = fold_int(*operation, x->value, y->value, kInt64);
    }
    if (!result) no_value();
    return literal(*result, at);
  }
  if (op == "+") return literal(*u + *v, at);
  if (op == "-") return literal(*u - *v, at);
  if (op == "*") return literal(*u * *v, at);
  if (op == "//") return literal(std::floor(*u / *v), at);
  if (op == "%") return literal(*u - std::floor(*u / *v) * *v, at);
  return std::nullopt;
}

Value Parser::eval(const Syntax& at) {
  switch (at.kind) {
    case SyntaxKind::kName: {
      Expr value = name(at);
      const Entity* entity = lookup(at.text);
      Entity::Form form = entity ? entity->form : Entity::Form::kValue;  // no entity: a function's bare name
      if (form == Entity::Form::kCell) return {relaxc::load(cast<Var>(value), {int_imm(0, kInt32)}, span(at))};
      if (form == Entity::Form::kPointer) return {buffer_data(cast<Var>(value), span(at))};
      return {value};
    }
    case SyntaxKind::kInt:
    case SyntaxKind::kFloat:
      return number(at);
    case SyntaxKind::kString:
      return {string_imm(string(at), span(at))};
    case SyntaxKind::kConstant:
      if (at.text == "True" || at.text == "False") return {bool_imm(at.text == "True", span(at))};
      fail(at, "{} is no value here", at.text);
    case SyntaxKind::kTuple:
    case SyntaxKind::kList: {
      if (!in_graph_) fail(at, "a tuple is no scalar");
      std::vector<Expr> items;
      for (const Syntax* item : at.children) items.push_back(as_argument(*item));
      return {bounded_tuple(std::move(items), at)};
    }
    case SyntaxKind::kDict:
    case SyntaxKind::kSlice:
    case SyntaxKind::kStarred:
      fail(at, "expected an expression");
    case SyntaxKind::kLambda:
      fail(at, "a lambda stands in T.comm_reducer and T.index_map only");
    case SyntaxKind::kAttribute: {
      if (const std::string* callee = function_name(at)) return {global_var(*callee, declared_.at(*callee))};
      if (auto value = buffer_property(at)) return *value;
      if (auto value = tensor_property(at)) return *value;
      std::string path = dotted(at);
      if (is_type_name(path)) fail(at, "'{}' is a type; expected a value", path);
      if (!path.empty()) fail(at, "'{}' is no value; call it", path);
      if (at.children[0]->kind == SyntaxKind::kName && at.children[0]->text != "math") name(*at.children[0]);
      fail(at, "'.{}' is not known here", at.text);
    }
    case SyntaxKind::kSubscript:
      return subscript(at);
    case SyntaxKind::kCall:
      return call(at);
    case SyntaxKind::kUnary:
      return unary(at);
    case SyntaxKind::kBinary:
    case SyntaxKind::kCompare:
    case SyntaxKind::kBool:
      return binary(at);
    case SyntaxKind::kConditional:
      return conditional(at);
  }
  fail(at, "expected an expression");
}

namespace {

// How many items a type has, tuples in tuples counted through; gives up above `most`.
int64_t count_items(const Type& type, int64_t most) {
  const TupleType* several = type.as<TupleType>();
  if (!several) return 1;
  int64_t count = 0;
  for (size_t i = 0; i < several->items.size() && count <= most; ++i)
    count += count_items(several->items[i], most - count);
  return count;
}

}  // namespace

// Tuples of tuples share what they hold, but everything that looks at types goes through all of it.
Expr Parser::bounded_tuple(std::vector<Expr> items, const Syntax& at) {
  constexpr int64_t kMost = 1 << 16;
  Expr result = tuple(std::move(items), span(at));
  if (count_items(result.type(), kMost) > kMost)
    fail(at, "a tuple of more than {} items, those of its items counted", kMost);
  return result;
}

Value Parser::unary(const Syntax& at) {
  if (at.text == "-") {
    if (auto whole = int_literal(at)) {
      DType dtype = default_int_ == kInt32 && !fits(*whole, kInt32) ? kInt64 : default_int_;
      return {int_imm(*whole, dtype, span(at)), true};
    }
    if (at.children[0]->kind == SyntaxKind::kFloat) return number(at);
  }
  Value value = eval(*at.children[0]);
  if (at.text == "+") return value;
  if (in_graph_ && !is_scalar(value.expr)) {
    if (at.text == "-") {
      Call call{op_ref("relax.negative"), {leaf(value, at)}, {}, {}};
      return typed_call(std::move(call), at);
    }
    fail(at, "'{}' of a tensor; use R.logical_not or R.bitwise_not", at.text);
  }
  if (!is_scalar(value.expr)) fail(at, "expected a scalar after '{}'", at.text);
  DType dtype = dtype_of(value.expr);
  if (at.text == "not") {
    if (!dtype.is_bool()) fail(at, "expected a condition after 'not', got {}", to_string(dtype));
    return {not_(value.expr, span(at))};
  }
  if (at.text == "~") {
    if (dtype.is_bool()) return {not_(value.expr, span(at))};
    return {intrinsic("tir.bitwise_not", {value.expr}, dtype, span(at))};
  }
  if (dtype.is_bool() || dtype.is_handle()) fail(at, "'-' of {}", to_string(dtype));
  if (auto folded = fold_literals("*", value, literal(int64_t{-1}, at), at)) return *folded;
  Expr minus_one = scalar_imm(-1, dtype);
  return {relaxc::binary(BinaryOp::kMul, value.expr, minus_one, span(at)), value.literal};
}

Value Parser::binary(BinaryOp op, Value a, Value b, const Syntax& at, bool fold) {
  match_operands(a, b, at);
  DType dtype = dtype_of(a.expr);
  bool logic = op == BinaryOp::kAnd || op == BinaryOp::kOr;
  if (logic && !dtype.is_bool()) fail(at, "'{}' of {}, expected bool", info(op).symbol, to_string(dtype));
  bool equality = op == BinaryOp::kEQ || op == BinaryOp::kNE;
  if (dtype.is_handle() && !equality) fail(at, "'{}' of handles", info(op).name);
  bool bits = op == BinaryOp::kBitAnd || op == BinaryOp::kBitOr || op == BinaryOp::kBitXor ||
              op == BinaryOp::kShiftLeft || op == BinaryOp::kShiftRight;
  if (bits && dtype.is_float()) fail(at, "'{}' of {}, expected integers", info(op).name, to_string(dtype));
  const IntImm* x = a.expr.as<IntImm>();
  const IntImm* y = b.expr.as<IntImm>();
  if (fold && x && y) {
    auto value = fold_int(op, x->value, y->value, dtype);
    if (!value) fail(at, "{} {} {} has no value", x->value, info(op).symbol, y->value);
    DType result = info(op).compares ? kBool : dtype;
    return {int_imm(*value, result, span(at)), a.literal && b.literal && !info(op).compares};
  }
  return {relaxc::binary(op, a.expr, b.expr, span(at)), a.literal && b.literal};
}

Value Parser::binary(const Syntax& at) {
  Value a = eval(*at.children[0]), b = eval(*at.children[1]);
  if (auto folded = fold_literals(at.text, a, b, at)) return *folded;
  if (in_graph_ && (!is_scalar(a.expr) || !is_scalar(b.expr))) return tensor_operator(at.text, a, b, at);
  std::optional<BinaryOp> op = operator_of(at.text);
  if (!op) fail_with_hint(at, fmt::format("'{}' of scalars", at.text), at.text == "**" ? "T.pow" : "");
  if (*op == BinaryOp::kDiv) {
    if (!is_scalar(a.expr) || !is_scalar(b.expr)) fail(at, "expected scalars on both sides of '/'");
    if (!dtype_of(a.expr).is_float() && !dtype_of(b.expr).is_float())
      fail_with_hint(at, "'/' of integers is ambiguous; use `//` or T.truncdiv", "//");
  }
  return binary(*op, a, b, at, true);
}

Value Parser::conditional(const Syntax& at) {
  Expr test = condition(*at.children[1]);
  Value a = eval(*at.children[0]), b = eval(*at.children[2]);
  match_operands(a, b, at);
  return {intrinsic("tir.if_then_else", {test, a.expr, b.expr}, dtype_of(a.expr), span(at))};
}

// ---- Buffers

std::optional<Buffer> Parser::named_buffer(const Syntax& at) {
  if (at.kind == SyntaxKind::kName) {
    const Entity* entity = lookup(at.text);
    bool names = entity && entity->expr && entity->expr->type().is<BufferType>();
    return names ? std::optional(cast<Var>(*entity->expr)) : std::nullopt;
  }
  bool data = at.kind == SyntaxKind::kAttribute && at.text == "data";
  return data ? named_buffer(*at.children[0]) : std::nullopt;
}

// A.data, A.elem_offset, A.shape[i], A.strides[i]; A.dtype stands where a dtype is expected.
std::optional<Value> Parser::buffer_property(const Syntax& at) {
  bool indexed = at.kind == SyntaxKind::kSubscript && at.children[0]->kind == SyntaxKind::kAttribute;
  const Syntax& access = indexed ? *at.children[0] : at;
  if (access.kind != SyntaxKind::kAttribute) return std::nullopt;
  std::optional<Buffer> owner = named_buffer(*access.children[0]);
  if (!owner) return std::nullopt;
  const BufferType& type = buffer_type(*owner);
  if (indexed && (access.text == "shape" || access.text == "strides")) {
    const std::vector<Expr>& numbers = access.text == "shape" ? type.shape : type.strides;
    int64_t index = constant_int(*at.children[1]), count = static_cast<int64_t>(numbers.size());
    if (index < 0) index += count;
    if (index < 0 || index >= count)
      fail(at, "index {} of the {} {} of buffer '{}'", constant_int(*at.children[1]), count, access.text,
           (*owner)->name);
    return Value{numbers[static_cast<size_t>(index)]};
  }
  if (indexed) return std::nullopt;
  if (access.text == "data") return Value{type.data.value_or(buffer_data(*owner, span(at)))};
  if (access.text == "elem_offset") {
    if (type.elem_offset) return Value{*type.elem_offset};
    if (type.offset_factor == 0) return Value{int_imm(0, kInt32)};
    return Value{intrinsic(kBufferElemOffset, {*owner}, kInt32, span(at))};
  }
  return std::nullopt;
}

// x.ndim, x.shape[i], x.strides[i], x.dtype.bits of a tensor: what it turns out to have when the program runs.
std::optional<Value> Parser::tensor_property(const Syntax& at) {
  constexpr std::pair<std::string_view, const char*> kProperties[] = {
      {"bits", "relax.inspect.tensor_dtype_bits"},         {"code", "relax.inspect.tensor_dtype_code"},
      {"lanes", "relax.inspect.tensor_dtype_lanes"},       {"ndim", "relax.inspect.tensor_ndim"},
      {"shape", "relax.inspect.tensor_shape_i"},           {"strides", "relax.inspect.tensor_stride_i"},
      {"byte_offset", "relax.inspect.tensor_byte_offset"}, {"elem_offset", "relax.inspect.tensor_elem_offset"}};
  bool indexed = at.kind == SyntaxKind::kSubscript;
  const Syntax& access = indexed ? *at.children[0] : at;
  if (!in_graph_ || access.kind != SyntaxKind::kAttribute) return std::nullopt;
  bool of_dtype = access.text == "bits" || access.text == "code" || access.text == "lanes";
  const Syntax* owner = access.children[0];
  if (of_dtype) owner = owner->kind == SyntaxKind::kAttribute && owner->text == "dtype" ? owner->children[0] : nullptr;
  const Entity* entity = owner && owner->kind == SyntaxKind::kName ? lookup(owner->text) : nullptr;
  if (!entity || !entity->expr || !entity->expr->type().is<TensorType>()) return std::nullopt;
  bool takes_axis = access.text == "shape" || access.text == "strides";
  if (takes_axis != indexed) return std::nullopt;
  for (const auto& [name, op] : kProperties) {
    if (access.text != name) continue;
    Call call{op_ref(op), {*entity->expr}, {}, {}};
    if (indexed) call.args.push_back(scalar(*at.children[1], kInt64));
    return typed_call(std::move(call), at);
  }
  return std::nullopt;
}

Buffer Parser::buffer(const Syntax& at) {
  if (auto named = named_buffer(at)) return *named;
  Expr value = expr(at);
  if (!value.is<Var>() || !value.type().is<BufferType>()) fail(at, "expected a buffer");
  return cast<Var>(value);
}

// The extent of [min, end) such that the printer's spelling of the end reads back as it was.
Expr Parser::extent_of(const Expr& min, const Expr& end, const Syntax& at) {
  auto first = as_int(min), last = as_int(end);
  if (first == 0) return end;
  if (first && last) {
    return int_imm(*last - *first, dtype_of(end), span(at));
  }
  const Binary* sum = end.as<Binary>();
  if (sum && sum->op == BinaryOp::kAdd && structural_equal(sum->a, min)) return sum->b;
  return simplify(end - min);
}

namespace {

bool is_position(const Expr& e) { return dtype_of(e).is_integral() && dtype_of(e).lanes == 1; }

}  // namespace

Range Parser::slice(const Syntax& at) {
  if (at.kind != SyntaxKind::kSlice) {
    Expr index = scalar(at);
    if (!is_position(index)) fail(at, "expected an integer, got {}", to_string(dtype_of(index)));
    return {index, int_imm(1, dtype_of(index))};
  }
  if (!at.children[1]) fail(at, "expected the end of the range");
  Value min = at.children[0] ? eval(*at.children[0]) : Value{int_imm(0, default_int_), true},
        end = eval(*at.children[1]);
  match_operands(min, end, at);
  if (!is_position(min.expr)) fail(at, "expected integers, got {}", to_string(dtype_of(min.expr)));
  return {min.expr, extent_of(min.expr, end.expr, at)};
}

namespace {

// The items between the brackets; A[()] has none, A[(i, j)] has two.
std::vector<const Syntax*> index_items(const Syntax& at) {
  std::vector<const Syntax*> items(at.children.begin() + 1, at.children.end());
  if (items.size() == 1 && items[0]->kind == SyntaxKind::kTuple)
    items.assign(items[0]->children.begin(), items[0]->children.end());
  return items;
}

}  // namespace

std::vector<Range> Parser::ranges(const Buffer& buffer, const Syntax& at) {
  std::vector<const Syntax*> items = index_items(at);
  const BufferType& type = buffer_type(buffer);
  if (items.size() != type.shape.size())
    fail(at, "buffer '{}' has {} dims, got {} ranges", buffer->name, type.shape.size(), items.size());
  std::vector<Range> result;
  for (size_t d = 0; d < items.size(); ++d) {
    bool whole = items[d]->kind == SyntaxKind::kSlice && !items[d]->children[0] && !items[d]->children[1];
    result.push_back(whole ? Range{int_imm(0, dtype_of(type.shape[d])), type.shape[d]} : slice(*items[d]));
  }
  return result;
}

std::vector<Expr> Parser::indices(const Buffer& buffer, const Syntax& at) {
  std::vector<const Syntax*> items = index_items(at);
  const BufferType& type = buffer_type(buffer);
  if (items.size() != type.shape.size())
    fail(at, "buffer '{}' has {} dims, got {} indices", buffer->name, type.shape.size(), items.size());
  std::vector<Expr> result;
  for (size_t d = 0; d < items.size(); ++d) {
    const Syntax& item = *items[d];
    Expr index = int_imm(0);
    if (item.kind == SyntaxKind::kSlice) {
      Range range = slice(item);
      if (auto scalable = scalable_lanes(range.extent); scalable && !item.children[2]) {
        result.push_back(ramp(range.min, int_imm(1, dtype_of(range.min)), *scalable, span(item)));
        continue;
      }
      auto count = as_int(range.extent);
      int64_t stride = item.children[2] ? constant_int(*item.children[2]) : 1;
      if (!count || stride == 0 || *count % stride != 0 || *count / stride < 1 || *count / stride > 4096)
        fail(item, "expected a slice of a constant number of elements");
      int64_t lanes = *count / stride;
      index = lanes == 1 ? range.min : ramp(range.min, int_imm(stride, dtype_of(range.min)), lanes, span(item));
    } else {
      index = scalar(item);
    }
    if (!dtype_of(index).is_integral()) fail(item, "expected an integer index, got {}", to_string(dtype_of(index)));
    if (dtype_of(index).lanes > 1 && d + 1 < items.size()) fail(item, "only the last index may be a vector");
    result.push_back(index);
  }
  return result;
}

void Parser::widen_last(std::vector<Expr>& indices, int lanes, const Span& span) {
  if (lanes < 2 || indices.empty() || dtype_of(indices.back()).lanes != 1) return;
  indices.back() = ramp(indices.back(), int_imm(1, dtype_of(indices.back())), lanes, span);
}

Value Parser::load(const Buffer& buffer, const Syntax& at) {
  return {relaxc::load(buffer, indices(buffer, at), span(at))};
}

Value Parser::subscript(const Syntax& at) {
  // metadata["relax.expr.Constant"][0]: what the printer leaves in place of a large constant.
  const Syntax* root = &at;
  while (root->kind == SyntaxKind::kSubscript) root = root->children[0];
  if (root->kind == SyntaxKind::kName && root->text == "metadata" && !lookup("metadata")) return metadata_constant(at);
  if (auto property = buffer_property(at)) return *property;
  if (auto property = tensor_property(at)) return *property;
  if (auto named = named_buffer(*at.children[0])) return load(*named, at);
  Value object = eval(*at.children[0]);
  if (object.expr.type().is<BufferType>()) return load(cast<Var>(object.expr), at);
  if (const TupleType* type = object.expr.type().as<TupleType>(); type || in_graph_) {
    if (at.children.size() != 2) fail(at, "expected one index");
    if (const Tuple* known = in_graph_ ? nullptr : object.expr.as<Tuple>()) {
      int64_t index = constant_int(*at.children[1]), size = static_cast<int64_t>(known->items.size());
      if (index < 0 || index >= size) fail(at, "index {} of a tuple of {}", index, size);
      return {known->items[static_cast<size_t>(index)]};
    }
    return tuple_item(in_graph_ ? leaf(object, at) : object.expr, *at.children[1], at);
  }
  fail(at, "expected a buffer before '['");
}

Value Parser::tuple_item(const Expr& whole, const Syntax& index_at, const Syntax& at) {
  int64_t index = constant_int(index_at);
  const TupleType* type = whole.type().as<TupleType>();
  if (!type && !whole.type().is<ObjectType>()) fail(at, "only tuples have items");
  int64_t size = type ? static_cast<int64_t>(type->items.size()) : std::numeric_limits<int32_t>::max();
  if (index < 0 || index >= size) fail(at, "index {} of a tuple of {}", index, size);
  return {tuple_get(whole, index, span(at))};
}

// ---- Calls

Value Parser::call(const Syntax& at) {
  const Syntax& callee = *at.children[0];
  for (size_t i = 1; i < at.children.size(); ++i) {
    if (at.children[i]->kind == SyntaxKind::kStarred) fail(*at.children[i], "starred arguments have no meaning here");
  }
  if (const std::string* function = callee.kind == SyntaxKind::kAttribute ? function_name(callee) : nullptr) {
    if (!in_graph_) return program_call(*function, at);
    return function_call(global_var(*function, declared_.at(*function)), at);
  }
  std::string path = called(at);
  if (path == "float") {
    AttrValue value = attr_value(at);
    return {float_imm(*value.as<double>(), kFloat32, span(at)), true};
  }
  if (path.starts_with("T.")) return tir_call(path.substr(2), at);
  if (path.starts_with("R.") || path == "I.Op") {
    if (!in_graph_) fail(at, "'{}' belongs to graph functions, not to a tensor program", path);
    return relax_call(path, at);
  }
  if (callee.kind == SyntaxKind::kAttribute) return method_call(at);
  Value target = eval(callee);
  bool callable = target.expr.type().is<FuncType>() || target.expr.type().is<ObjectType>();
  if (in_graph_ && callable) return function_call(leaf(target, callee), at);
  fail(callee, "this is no function");
}

Value Parser::method_call(const Syntax& at) {
  const Syntax& callee = *at.children[0];
  std::optional<Buffer> owner = named_buffer(*callee.children[0]);
  if (owner && callee.text == "access_ptr") return access_ptr(*owner, at);
  Value object = owner ? Value{*owner} : eval(*callee.children[0]);
  if (callee.text == "astype" && in_graph_ && !is_scalar(object.expr)) {
    Call call{op_ref("relax.astype"), {leaf(object, callee)}, {}, {}};
    call.attrs.set("dtype", dtype(required(at, 0, "dtype")));
    return typed_call(std::move(call), at);
  }
  if (callee.text == "astype" && is_scalar(object.expr)) {
    DType wanted = dtype(required(at, 0, "dtype"));
    return {cast_to(object.expr, wanted.with_lanes(dtype_of(object.expr).lanes), span(at))};
  }
  if (!object.expr.type().is<BufferType>() || callee.text != "vload")
    fail_with_hint(callee, fmt::format("unknown method '{}'", callee.text),
                   nearest(callee.text, {"access_ptr", "astype", "vload", "vstore"}).value_or(""));
  check_keywords(at, {"indices", "dtype", "predicate"});
  Buffer source = cast<Var>(object.expr);
  // The list of indices reads as a subscript.
  Syntax index_list(SyntaxKind::kSubscript, at.line, at.column, at.length);
  index_list.children.push_back(callee.children[0]);
  for (const Syntax* item : items(required(at, 0, "indices"))) index_list.children.push_back(item);
  BufferLoad payload{source, indices(source, index_list), std::nullopt};
  DType element = buffer_type(source).dtype;
  // A dtype with more lanes than the index makes the load one of consecutive elements.
  const Syntax* stated = arg(at, 1, "dtype");
  if (stated) widen_last(payload.indices, dtype(*stated).lanes / element.lanes, span(at));
  DType result =
      element.with_lanes(element.lanes * (payload.indices.empty() ? 1 : dtype_of(payload.indices.back()).lanes));
  if (const Syntax* mask = arg(at, 2, "predicate")) payload.predicate = condition(*mask);
  if (stated && dtype(*stated) != result)
    fail(*stated, "the load gives {}, not {}", to_string(result), to_string(dtype(*stated)));
  return {make(std::move(payload), prim_type(result), span(at))};
}

}  // namespace relaxc::text
