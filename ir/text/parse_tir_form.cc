// Reads expressions of tensor programs that are written as calls: casts, vectors, let, limits of a dtype, reducers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/op_names.h"
#include "ir/text/parsing.h"

namespace relaxc::text {

// Reads T.Cast(dtype, value), which stays even where it changes nothing, and T.cast(value, dtype).
Value Parser::cast_form(const std::string& form, const Syntax& at) {
  bool upper = form == "T.Cast";
  DType wanted = dtype(required(at, upper ? 0 : 1, "dtype"));
  Expr value = scalar(required(at, upper ? 1 : 0, "value"));
  DType from = dtype_of(value);
  if (from.lanes != wanted.lanes) fail(at, "cast of {} to {}", to_string(from), to_string(wanted));
  if (!upper) return {cast_to(value, wanted, span(at))};
  return {make(Cast{value}, prim_type(wanted), span(at))};
}

// T.Select evaluates both values, T.if_then_else the chosen one.
Value Parser::select_form(const std::string& form, const Syntax& at) {
  bool is_select = form == "T.Select";
  Expr test = condition(required(at, 0, is_select ? "condition" : "cond"));
  Value a = eval(required(at, 1, is_select ? "true_value" : "t"));
  Value b = eval(required(at, 2, is_select ? "false_value" : "f"));
  match_operands(a, b, at);
  if (is_select) return {select(test, a.expr, b.expr, span(at))};
  return {intrinsic(std::string(ops::kIfThenElse.text), {test, a.expr, b.expr}, dtype_of(a.expr), span(at))};
}

// ---- Vectors

int64_t Parser::lanes(const Syntax& at) {
  if (at.kind == SyntaxKind::kBinary || is_call(at)) {
    auto scalable = scalable_lanes(scalar(at));
    if (scalable && *scalable < 0 && *scalable >= -4096) return *scalable;
    fail(at, "expected a number of lanes: 4, or T.vscale() * 4");
  }
  int64_t value = constant_int(at);
  if (value < 2 || value > 4096) fail(at, "expected 2 to 4096 lanes, got {}", value);
  return value;
}

Value Parser::ramp_form(const std::string&, const Syntax& at) {
  Value base = eval(required(at, 0, "base")), stride = eval(required(at, 1, "stride"));
  match_operands(base, stride, at);
  int64_t count = lanes(required(at, 2, "lanes"));
  if (dtype_of(base.expr).lanes != 1 || !dtype_of(base.expr).is_integral())
    fail(at, "expected integer scalars, got {}", to_string(dtype_of(base.expr)));
  return {ramp(base.expr, stride.expr, count, span(at))};
}

Value Parser::broadcast_form(const std::string&, const Syntax& at) {
  Expr value = scalar(required(at, 0, "value"));
  int64_t count = lanes(required(at, 1, "lanes"));
  if (dtype_of(value).lanes != 1) fail(at, "expected a scalar, got {}", to_string(dtype_of(value)));
  return {broadcast(value, count, span(at))};
}

// Reads T.Shuffle([a, b], [0, 1]): it concatenates the lanes of the vectors and picks them by number.
Value Parser::shuffle_form(const std::string&, const Syntax& at) {
  std::vector<Expr> vectors = read_each(items(required(at, 0, "vectors")), &Parser::scalar);
  std::vector<Expr> indices = read_each(items(required(at, 1, "indices")), &Parser::scalar);
  if (vectors.empty() || indices.empty()) fail(at, "T.Shuffle: expected vectors and indices");
  for (const Expr& vector : vectors) {
    if (dtype_of(vector).element() != dtype_of(vectors[0]).element())
      fail(at, "the vectors have different dtypes: {} and {}", to_string(dtype_of(vectors[0])),
           to_string(dtype_of(vector)));
  }
  DType result = dtype_of(vectors[0]).with_lanes(static_cast<int>(indices.size()));
  return {intrinsic("tir.shuffle", {tuple(std::move(vectors)), tuple(std::move(indices))}, result, span(at))};
}

// ---- Arithmetic

Value Parser::ceildiv_form(const std::string&, const Syntax& at) {
  Value a = eval(required(at, 0, "lhs")), b = eval(required(at, 1, "rhs"));
  Value sum = binary(BinaryOp::kSub, binary(BinaryOp::kAdd, a, b, at, true), literal(int64_t{1}, at), at, true);
  return binary(BinaryOp::kFloorDiv, sum, b, at, true);
}

// Reads T.Not(a), T.all(a, b, ...), T.any(a, b, ...)
Value Parser::logical_form(const std::string& form, const Syntax& at) {
  if (form == "T.Not") return {not_(condition(required(at, 0, "a")), span(at))};
  BinaryOp op = form == "T.all" ? BinaryOp::kAnd : BinaryOp::kOr;
  if (positional(at) == 0) fail(at, "{} of nothing", form);
  Value result{condition(*at.children[1])};
  for (size_t i = 2; i < at.children.size(); ++i) result = binary(op, result, {condition(*at.children[i])}, at, false);
  return result;
}

namespace {

double largest_float(DType dtype) {
  if (dtype.code == DTypeCode::kBFloat) return bfloat16_to_float(0x7f7f);
  if (dtype.bits == 16) return 65504.0;
  if (dtype.bits == 32) return std::numeric_limits<float>::max();
  if (!dtype.is_small_float()) return std::numeric_limits<double>::max();
  double most = 0;
  for (int bits = 0; bits < 1 << dtype.bits; ++bits) {
    double value = small_float_to_double(static_cast<uint8_t>(bits), dtype.element());
    if (std::isfinite(value)) most = std::max(most, value);
  }
  return most;
}

}  // namespace

// Reads T.min_value(dtype), T.max_value(dtype), T.infinity(dtype)
Value Parser::limit_form(const std::string& form, const Syntax& at) {
  DType wanted = dtype(required(at, 0, "dtype"));
  bool low = form == "T.min_value", infinite = form == "T.infinity";
  if (wanted.is_float()) {
    double most = infinite ? std::numeric_limits<double>::infinity() : largest_float(wanted);
    return {float_imm(low ? -most : most, wanted.element(), span(at))};
  }
  if (!wanted.is_integral() || infinite) fail(at, "{} of {}", form.substr(2), to_string(wanted));
  uint64_t most = (wanted.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << wanted.bits) - 1) >> (wanted.is_int() ? 1 : 0);
  int64_t least = wanted.is_int() ? -static_cast<int64_t>(most) - 1 : 0;
  return {int_imm(low ? least : static_cast<int64_t>(most), wanted.element(), span(at))};
}

// ---- Names and other terms

Value Parser::let_form(const std::string&, const Syntax& at) {
  NameScope scope(scopes_);
  std::vector<std::pair<VarRef, Expr>> bound;
  auto bind = [&](const Syntax& target, const Syntax& value_at) {
    Expr value = scalar(value_at);
    bound.emplace_back(define_var(target, value.type()), value);
  };
  bool flat = positional(at) == 3;  // T.let(v, value, body)
  if (flat) {
    bind(*at.children[1], *at.children[2]);
  } else {
    const Syntax& where = required(at, 1, "where");
    if (where.kind != SyntaxKind::kDict || where.children.empty()) fail(where, "expected a dictionary {{name: value}}");
    for (size_t i = 0; i + 1 < where.children.size(); i += 2) bind(*where.children[i], *where.children[i + 1]);
  }
  Expr result = scalar(flat ? *at.children[3] : required(at, 0, "expr"));
  for (size_t i = bound.size(); i-- > 0;) result = let(bound[i].first, bound[i].second, result, span(at));
  return {result};
}

// Reads a value that Python computes before there is a program.
Value Parser::meta_var_form(const std::string&, const Syntax& at) { return eval(required(at, 0, "value")); }

// The later form of call_llvm_intrin has the name in place of its number.
Value Parser::string_form(const std::string& form, const Syntax& at) {
  return {string_imm(string(required(at, 0, form == "T.StringImm" ? "value" : "name")), span(at))};
}

Value Parser::target_form(const std::string&, const Syntax& at) {
  Call payload{op_ref("tir.target"), {}, {}, {}};
  AttrValue config = attr_value(required(at, 0, "target_config"));
  payload.attrs = config.as<Attrs>() ? *config.as<Attrs>() : Attrs{{"kind", config}};
  return {make(std::move(payload), prim_type(DType::handle()), span(at))};
}

Value Parser::iter_var_form(const std::string&, const Syntax& at) {
  std::vector<Expr> args = {call_argument(required(at, 0, "var")), string_imm(string(required(at, 2, "iter_type"))),
                            string_imm(string(required(at, 3, "thread_tag")))};
  if (const Syntax& dom = required(at, 1, "dom"); !is_none(&dom)) {
    std::span<const Syntax* const> ends = is_call(dom) ? dom.operands() : std::span(dom.children);
    if (ends.size() != 2) fail(dom, "expected T.Range(min, max) or None");
    for (const Syntax* end : ends) args.push_back(scalar(*end));
  }
  return {intrinsic("tir.iter_var", std::move(args), DType::handle(), span(at))};
}

// Reads the form of 2022: T.load("float32", A.data, i).
Value Parser::load_form(const std::string&, const Syntax& at) {
  Buffer source = buffer(required(at, 1, "var"));
  if (buffer_type(source).shape.size() != 1) fail(at, "expected the pointer of a buffer of one dim");
  return {relaxc::load(source, {scalar(required(at, 2, "index"))}, span(at))};
}

// Reads T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), whose lambda has as many left operands, then right
// operands, as there are identities.
Value Parser::reducer_form(const std::string&, const Syntax& at) {
  std::vector<Expr> args = read_each(items(required(at, 1, "identity")), &Parser::scalar);
  std::vector<DType> dtypes;
  for (const Expr& identity : args) dtypes.push_back(dtype_of(identity));
  std::vector<DType> params = dtypes;
  params.insert(params.end(), dtypes.begin(), dtypes.end());
  Expr combiner = lambda(required(at, 0, "combiner"), params);
  size_t results = combiner.as<Lambda>()->results.size();
  if (results != args.size()) fail(at, "the combiner gives {} values for {} identities", results, args.size());
  args.insert(args.begin(), combiner);
  return {intrinsic("tir.comm_reducer", std::move(args), DType::handle(), span(at))};
}

}  // namespace relaxc::text
