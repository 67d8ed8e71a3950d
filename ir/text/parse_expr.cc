// Reads scalar expressions from the syntax tree: operators, and literals, which take their dtype from the other
// operand. parse_access.cc reads buffers and their elements, parse_tir_call.cc calls of T.something.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/arith.h"
#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "ir/text/parsing.h"
#include "support/checked_math.h"

namespace relaxc::text {

namespace {

bool is_scalar(const Expr& expr) { return expr.type().is<PrimType>(); }

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

// Python's integers have no limit, so a result beyond 64 bits has no value here.
std::optional<int64_t> fold_whole(std::string_view op, int64_t a, int64_t b) {
  if (op == "+") return checked_add(a, b);
  if (op == "-") return checked_sub(a, b);
  if (op == "*") return checked_mul(a, b);
  if (op == "<<") return b >= 0 && b < 63 ? checked_mul(a, int64_t{1} << b) : std::nullopt;
  if (op != "**") return fold_int(*operator_of(op), a, b, kInt64);
  if (b == 0 || a == 1) return 1;
  if (a == 0 || a == -1) return a * (a == -1 && b % 2 == 0 ? -1 : 1);
  std::optional<int64_t> power = 1;
  for (int64_t i = 0; power && i < b; ++i) power = checked_mul(*power, a);
  return power;
}

std::optional<double> fold_real(std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "/") return a / b;
  if (op == "//") return std::floor(a / b);
  if (op == "%") return a - std::floor(a / b) * b;
  if (op == "**") return std::pow(a, b);
  return std::nullopt;
}

bool fits(int64_t value, DType dtype) { return wrap_int(value, dtype) == value; }

std::optional<int64_t> scalable_lanes(const Expr& count) {
  if (as_call(count, ops::kVscale)) return -1;
  const Binary* product = count.as<Binary>();
  if (!product || product->op != BinaryOp::kMul) return std::nullopt;
  auto left = as_int(product->a), right = as_int(product->b);
  if (left && as_call(product->b, ops::kVscale)) return -*left;
  if (right && as_call(product->a, ops::kVscale)) return -*right;
  return std::nullopt;
}

std::optional<BinaryOp> operator_of(std::string_view text, const char* BinaryOpInfo::* column) {
  for (const BinaryOpInfo& row : binary_ops()) {
    if (row.*column && row.*column == text) return row.op;
  }
  return std::nullopt;
}

Expr Parser::adapt(Value value, DType dtype, const Syntax& at) {
  if (!is_scalar(value.expr)) fail(at, "expected a scalar");
  if (!value.literal) return value.expr;
  DType element = dtype.element();
  const Span& place = value.expr.span();
  std::optional<Expr> result;
  const IntImm* whole = value.expr.as<IntImm>();
  const FloatImm* real = value.expr.as<FloatImm>();
  if (whole && (element.is_integral() || element.is_bool())) {
    if (!fits(whole->value, element)) fail(at, "{} does not fit in {}", whole->value, to_string(element));
    result = int_imm(whole->value, element, place);
  } else if ((whole || real) && (element.is_float() || element.is_complex())) {
    result = float_imm(whole ? static_cast<double>(whole->value) : value.exact.value_or(real->value), element, place);
  }
  if (!result) fail(at, "expected {}, got {}", to_string(dtype), to_string(dtype_of(value.expr)));
  return dtype.lanes == 1 ? *result : broadcast(*result, dtype.lanes, place);
}

Value Parser::scalar_value(const Syntax& at) {
  Value value = eval(at);
  if (const Var* var = value.expr.as<Var>(); var && value.expr.type().is<BufferType>())
    fail(at, "expected a scalar, got buffer '{}'; index it: {}[...]", var->name, var->name);
  if (!is_scalar(value.expr)) fail(at, "expected a scalar");
  return value;
}

Expr Parser::condition(const Syntax& at) {
  Value given = scalar_value(at);
  const IntImm* number = given.literal ? given.expr.as<IntImm>() : nullptr;
  if (number && (number->value == 0 || number->value == 1))  // T.where(1)
    return int_imm(number->value, DType::bool_(), span(at));
  Expr value = given.expr;
  if (!dtype_of(value).is_bool())
    fail({at, {}, "TVM takes a bool here, too; compare the number: x != 0"}, "expected a condition, got {}",
         to_string(dtype_of(value)));
  return value;
}

// Reads the condition of a statement, which may be a number as in Python: `if A[i]:` is `if A[i] != 0:`.
Expr Parser::truth(const Syntax& at) {
  Value given = scalar_value(at);
  DType dtype = dtype_of(given.expr);
  bool is_number = !given.literal && dtype.is_integral() && !dtype.is_bool() && dtype.lanes == 1;
  if (is_number) return relaxc::binary(BinaryOp::kNE, given.expr, scalar_imm(0, dtype), span(at));
  return condition(at);
}

// Converts to one dtype as TVM does: literals follow, narrow integers widen, integers become floats, scalars vectors.
void Parser::match_operands(Value& a, Value& b, const Syntax& at) {
  if (!is_scalar(a.expr) || !is_scalar(b.expr)) fail(at, "expected scalars on both sides");
  DType x = dtype_of(a.expr), y = dtype_of(b.expr);
  if (x == y) return;
  if (a.literal != b.literal) {
    Value& literal = a.literal ? a : b;
    DType wanted = a.literal ? y : x;
    bool is_fraction = literal.expr.is<FloatImm>() && !wanted.is_float() && !wanted.is_complex();
    if (!is_fraction) literal = {adapt(literal, wanted, at)};
    if (!is_fraction) return;
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
  std::optional<BinaryOp> operation = operator_of(op);
  bool whole = x && y && op != "/" && (op != "**" || y->value >= 0);
  if (operation && info(*operation).compares)
    return Value{bool_imm(
        whole ? *fold_int(*operation, x->value, y->value, kInt64) : fold_comparison(*operation, *u, *v), span(at))};
  bool divides_by_zero = (op == "/" || op == "//" || op == "%") && *v == 0;
  if (whole && !divides_by_zero && (operation || op == "**")) {
    if (auto value = fold_whole(op, x->value, y->value)) return literal(*value, at);
  } else if (!whole && !divides_by_zero) {
    std::optional<double> value = fold_real(op, *u, *v);
    return value ? std::optional(literal(*value, at)) : std::nullopt;
  }
  auto text = [](const IntImm* number, double real) {
    return number ? fmt::format("{}", number->value) : fmt::format("{}", real);
  };
  fail(at, "{} {} {} has no value", text(x, *u), op, text(y, *v));
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
      fail(at, "{} is not a value here", at.text);
    case SyntaxKind::kTuple:
    case SyntaxKind::kList:
      if (!in_graph_) fail(at, "a tuple is not a scalar");
      return {bounded_tuple(graph_items(at), at)};
    case SyntaxKind::kDict:
    case SyntaxKind::kSlice:
    case SyntaxKind::kStarred:
    case SyntaxKind::kComprehension:
      break;
    case SyntaxKind::kLambda:
      fail(at, "a lambda stands in T.comm_reducer and T.index_map only");
    case SyntaxKind::kAttribute:
      return property(at);
    case SyntaxKind::kSubscript:
      return subscript(at);
    case SyntaxKind::kCall:
      return call(at);
    case SyntaxKind::kUnary:
      return unary(at);
    case SyntaxKind::kCompare:
      if (at.text.starts_with("i") || at.text.starts_with("n")) fail(at, "'{}' has no meaning in a module", at.text);
      return binary(at);
    case SyntaxKind::kBinary:
    case SyntaxKind::kBool:
      return binary(at);
    case SyntaxKind::kConditional: {
      Expr test = condition(*at.children[1]);
      Value a = eval(*at.children[0]), b = eval(*at.children[2]);
      match_operands(a, b, at);
      return {intrinsic(ops::kIfThenElse, {test, a.expr, b.expr}, dtype_of(a.expr), span(at))};
    }
  }
  fail(at, "expected an expression");
}

// Reads x.name.
Value Parser::property(const Syntax& at) {
  if (const std::string* callee = function_name(at)) return {global_var(*callee, declared_.at(*callee))};
  if (auto value = buffer_property(at)) return *value;
  if (auto value = tensor_property(at)) return *value;
  if (in_te_ && at.text == "var" && is_name(*at.children[0])) return eval(*at.children[0]);  // k.var of an axis
  std::string path = dotted(at);
  if (is_type_name(path)) fail(at, "'{}' is a type; expected a value", path);
  if (!path.empty()) fail(at, "'{}' is not a value; call it", path);
  if (is_name(*at.children[0]) && at.children[0]->text != "math") name(*at.children[0]);
  fail(at, "'.{}' is not known here", at.text);
}

// Reads the items of a tuple or list; those of *x.shape and of a starred tuple stand in their place.
std::vector<Expr> Parser::graph_items(const Syntax& at) {
  std::vector<Expr> result;
  for (const Syntax* item : at.children) {
    if (item->kind != SyntaxKind::kStarred) {
      result.push_back(as_argument(*item));
      continue;
    }
    std::vector<Expr> spread = spread_items(*item);
    result.insert(result.end(), spread.begin(), spread.end());
  }
  return result;
}

std::vector<Expr> Parser::spread_items(const Syntax& starred) {
  const Syntax& whole = *starred.children[0];
  const bool is_shape = head_of(whole).kind == SyntaxKind::kAttribute && head_of(whole).text == "shape";
  if (is_shape) return graph_dims(whole);  // also *x.shape[:-1]
  Expr value = as_argument(whole);
  const TupleType* several = value.type().as<TupleType>();
  if (!several)
    fail({whole, {}, "its type says how many items it has: *x.shape of a tensor of known rank, or a tuple"},
         "expected a tuple or a shape after '*'");
  std::vector<Expr> result;
  for (size_t i = 0; i < several->items.size(); ++i) {
    const Tuple* known = value.as<Tuple>();
    result.push_back(known ? known->items[i] : leaf({tuple_get(value, static_cast<int64_t>(i), span(whole))}, whole));
  }
  return result;
}

// Makes a tuple of limited size. Nested tuples share their items, but every traversal of the type visits all of them.
Expr Parser::bounded_tuple(std::vector<Expr> items, const Syntax& at) {
  constexpr int64_t kMost = 1 << 16;
  Expr result = tuple(std::move(items), span(at));
  if (count_items(result.type(), kMost) > kMost)
    fail(at, "a tuple has at most {} items, those of its items counted", kMost);
  return result;
}

Value Parser::unary(const Syntax& at) {
  if (at.text == "-") {
    if (auto whole = int_literal(at)) return literal(*whole, at);
    if (at.children[0]->kind == SyntaxKind::kFloat) return number(at);
  }
  Value value = eval(*at.children[0]);
  if (at.text == "+") return value;
  if (in_graph_ && !is_scalar(value.expr)) {
    if (at.text == "-") return typed_call(OpName{"relax.negative"}, {leaf(value, at)}, at);
    fail(at, "'{}' cannot take a tensor; use R.logical_not or R.bitwise_not", at.text);
  }
  if (!is_scalar(value.expr)) fail(at, "expected a scalar after '{}'", at.text);
  DType dtype = dtype_of(value.expr);
  if (at.text == "not" && !dtype.is_bool()) fail(at, "expected a condition after 'not', got {}", to_string(dtype));
  if (at.text != "-" && dtype.is_bool()) return {not_(value.expr, span(at))};
  if (at.text == "~") return {intrinsic(ops::kScalarBitwiseNot, {value.expr}, dtype, span(at))};
  if (dtype.is_bool() || dtype.is_handle()) fail(at, "'-' cannot take {}", to_string(dtype));
  if (auto folded = fold_literals("*", value, literal(int64_t{-1}, at), at)) return *folded;
  return {relaxc::binary(BinaryOp::kMul, value.expr, scalar_imm(-1, dtype), span(at)), value.literal};
}

Value Parser::binary(BinaryOp op, Value a, Value b, const Syntax& at, bool fold) {
  match_operands(a, b, at);
  DType dtype = dtype_of(a.expr);
  bool logic = op == BinaryOp::kAnd || op == BinaryOp::kOr;
  if (logic && !dtype.is_bool()) fail(at, "'{}' takes bool operands, got {}", info(op).symbol, to_string(dtype));
  bool equality = op == BinaryOp::kEQ || op == BinaryOp::kNE;
  if (dtype.is_handle() && !equality) fail(at, "'{}' cannot take handles", info(op).name);
  bool bits = op >= BinaryOp::kBitAnd;  // the operators after it work on bits, too
  if (bits && dtype.is_float()) fail(at, "'{}' takes integers, got {}", info(op).name, to_string(dtype));
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

// Reads A[0].dtype == "float32", which Python computes while it builds the program.
std::optional<Value> Parser::dtype_test(const Syntax& at) {
  const Syntax &a = *at.children[0], &b = *at.children[1];
  auto is_dtype = [](const Syntax& side) { return side.kind == SyntaxKind::kAttribute && side.text == "dtype"; };
  bool compares = at.text == "==" || at.text == "!=";
  if (!compares || !(is_dtype(a) || is_dtype(b))) return std::nullopt;
  return Value{int_imm((dtype(a) == dtype(b)) == (at.text == "=="), kBool, span(at))};
}

Value Parser::binary(const Syntax& at) {
  if (std::optional<Value> test = at.kind == SyntaxKind::kCompare ? dtype_test(at) : std::nullopt) return *test;
  Value a = eval(*at.children[0]), b = eval(*at.children[1]);
  if (auto folded = fold_literals(at.text, a, b, at)) return *folded;
  bool scalars = is_scalar(a.expr) && is_scalar(b.expr);
  if (in_graph_ && !scalars) return tensor_operator(at.text, a, b, at);
  std::optional<BinaryOp> op = operator_of(at.text);
  if (!op) fail({at, at.text == "**" ? "T.pow" : ""}, "'{}' cannot take scalars", at.text);
  if (op == BinaryOp::kDiv && !scalars) fail(at, "expected scalars on both sides of '/'");
  if (op == BinaryOp::kDiv && !dtype_of(a.expr).is_float() && !dtype_of(b.expr).is_float())
    fail({at, "//"}, "'/' of integers is ambiguous; use `//` or T.truncdiv");
  return binary(*op, a, b, at, true);
}

// ---- Calls

Value Parser::call(const Syntax& at) {
  const Syntax& callee = *at.children[0];
  if (std::optional<Buffer> tensor = in_te_ ? named_buffer(callee) : std::nullopt) {
    Syntax element(SyntaxKind::kSubscript, at);
    element.children.assign(at.children.begin(), at.children.end());
    return load(*tensor, element);
  }
  for (const Syntax* argument : at.operands()) {
    if (argument->kind == SyntaxKind::kStarred) fail(*argument, "starred arguments have no meaning here");
  }
  if (const std::string* function = function_name(callee)) {
    if (!in_graph_) return program_call(*function, at);
    return function_call(global_var(*function, declared_.at(*function)), at);
  }
  std::string path = called(at);
  if (path.empty() && spelling(callee) == "len" && !lookup("len") && positional(at) == 1)  // len(A.shape)
    return literal(std::ssize(is_list(*at.children[1]) ? items(*at.children[1]) : std::vector<const Syntax*>()) +
                       (is_list(*at.children[1]) ? 0 : std::ssize(dims(*at.children[1], default_int_))),
                   at);
  if (path == "float") return {float_imm(*attr_value(at).as<double>(), kFloat32, span(at)), true};
  if (path.starts_with("T.")) return tir_call(path, at);
  if (path.starts_with("R.") || path.starts_with("I.Op")) {
    if (!in_graph_) fail(at, "'{}' belongs to graph functions, not to a tensor program", path);
    return relax_call(path, at);
  }
  if (callee.kind == SyntaxKind::kAttribute) return method_call(at);
  Value target = eval(callee);
  bool callable = target.expr.type().is<FuncType>() || target.expr.type().is<ObjectType>();
  if (in_graph_ && callable) return function_call(leaf(target, callee), at);
  fail(callee, "this is not a function");
}

Value Parser::method_call(const Syntax& at) {
  const Syntax& callee = *at.children[0];
  std::optional<Buffer> owner = named_buffer(*callee.children[0]);
  if (owner && callee.text == "access_ptr") return access_ptr(*owner, at);
  Value object = owner ? Value{*owner} : eval(*callee.children[0]);
  if (callee.text == "astype" && (in_graph_ || is_scalar(object.expr))) {
    DType wanted = dtype(required(at, 0, "dtype"));
    if (is_scalar(object.expr)) return {cast_to(object.expr, wanted.with_lanes(dtype_of(object.expr).lanes), span(at))};
    return typed_call(ops::kAstype, {leaf(object, callee)}, at, {{"dtype", wanted}});
  }
  if (is_scalar(object.expr) && (callee.text == "equal" || callee.text == "not_equal")) {
    Syntax compared(SyntaxKind::kCompare, at);
    compared.text = callee.text == "equal" ? "==" : "!=";
    compared.children = {callee.children[0], &required(at, 0, "other")};
    return eval(compared);
  }
  if (!object.expr.type().is<BufferType>() || callee.text != "vload")
    fail({callee, nearest(callee.text, {"access_ptr", "astype", "equal", "not_equal", "vload"})}, "unknown method '{}'",
         callee.text);
  check_keywords(at, {"indices", "dtype", "predicate"});
  Buffer source = cast<Var>(object.expr);
  BufferLoad payload{source, indices(source, element_at(at, *callee.children[0], required(at, 0, "indices"))), {}};
  DType element = buffer_type(source).dtype;
  // A dtype with more lanes than the index makes the load one of consecutive elements.
  const Syntax* stated = arg(at, 1, "dtype");
  if (stated) widen_last(payload.indices, dtype(*stated).lanes / element.lanes, span(at));
  DType result = element.with_lanes(element.lanes * index_lanes(payload.indices));
  if (const Syntax* mask = arg(at, 2, "predicate")) payload.predicate = condition(*mask);
  if (stated && dtype(*stated) != result)
    fail(*stated, "the load gives {}, not {}", to_string(result), to_string(dtype(*stated)));
  return {make(std::move(payload), prim_type(result), span(at))};
}

}  // namespace relaxc::text
