// Reads scalar expressions from the syntax tree: operators, and literals, which take their dtype from the other
// operand. parse_access.cc reads buffers and their elements, parse_tir_call.cc calls of T.something.
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

// Converts two scalars to one dtype as TVM does: literals follow, narrow integers widen, integers become floats, and
// scalars are broadcast to vectors.
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

// Returns the number of items in a type, including those of nested tuples; stops counting above `most`.
int64_t count_items(const Type& type, int64_t most) {
  const TupleType* several = type.as<TupleType>();
  if (!several) return 1;
  int64_t count = 0;
  for (size_t i = 0; i < several->items.size() && count <= most; ++i)
    count += count_items(several->items[i], most - count);
  return count;
}

}  // namespace

// Makes a tuple of limited size. Nested tuples share their items, but every traversal of the type visits all of them.
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
