// Reads calls of T.something in expressions: operators by name, dtypes, intrinsics, builtins, and terms that only look
// like calls: casts, vectors, let, limits of a dtype, reducers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/op_names.h"
#include "ir/text/parsing.h"
#include "ir/text/printing.h"

namespace relaxc::text {

// Reads T.int64(x): a constant of the dtype, or a cast.
Value Parser::dtype_call(DType wanted, const Syntax& at) {
  if (positional(at) == 0 && at.keywords.empty())
    fail(at, "a new variable stands alone on the right of '=': n = T.{}()", to_string(wanted));
  const Syntax& argument = required(at, 0, "expr");
  if (argument.kind == SyntaxKind::kString || callee_path(argument) == "float") {
    AttrValue value = attr_value(at);
    const double* number = value.as<double>();
    const bool takes_it = wanted.is_float() || wanted.is_complex();
    if (!number || !takes_it || wanted.lanes != 1) fail(argument, "expected a number");
    return {float_imm(*number, wanted, span(at))};
  }
  // The only dtype that has numbers beyond int64.
  if (argument.kind == SyntaxKind::kInt && wanted == DType{DTypeCode::kUInt, 64, 1})
    return {int_imm(*int_literal(argument), wanted, span(at))};
  Value value = scalar_value(argument);
  const IntImm* whole = value.literal ? value.expr.as<IntImm>() : nullptr;
  if (whole && wanted.is_bool()) return {int_imm(whole->value != 0, wanted.element(), span(at))};
  if (value.literal) {
    if (value.expr.is<FloatImm>() && !wanted.is_float() && !wanted.is_complex())
      fail(argument, "expected {}, got a fraction", to_string(wanted));
    Expr result = adapt(value, wanted, argument);
    if (const IntImm* imm = result.as<IntImm>()) return {int_imm(imm->value, wanted, span(at))};
    if (const FloatImm* imm = result.as<FloatImm>()) return {float_imm(imm->value, wanted, span(at))};
    return {result};
  }
  DType from = dtype_of(value.expr);
  if (from == wanted) return {value.expr};
  bool widens = from.lanes == 1 && wanted.lanes > 1;
  if (from.is_handle() || wanted.is_handle() || (from.lanes != wanted.lanes && !widens))
    fail(at, "{} cannot be cast to {}", to_string(from), to_string(wanted));
  if (!widens) return {cast_to(value.expr, wanted, span(at))};
  return {broadcast(cast_to(value.expr, wanted.element(), span(at)), wanted.lanes, span(at))};
}

Value Parser::tir_call(const std::string& path, const Syntax& at) {
  std::string form = path.substr(2);
  // The most frequent forms come first: T.float32(0), T.int64(1).
  if (form.back() >= '0' && form.back() <= '9') {
    if (auto wanted = parse_dtype(form)) return dtype_call(*wanted, at);
  }
  if (auto op = operator_of(form, &BinaryOpInfo::name)) {  // the call form never folds
    std::vector<const Syntax*> operands = arguments(at);
    if (operands.size() != 2) fail(at, "T.{}: expected 2 arguments, got {}", form, operands.size());
    Value a = eval(*operands[0]), b = eval(*operands[1]);
    return {binary(*op, a, b, at, false).expr};
  }
  if (auto value = form_value(path, at)) return *value;
  if (auto wanted = parse_dtype(form)) return dtype_call(*wanted, at);
  return intrinsic_call(form, at);
}

Expr Parser::call_argument(const Syntax& at) {
  if (at.kind == SyntaxKind::kString) return string_imm(string(at), span(at));
  if (is_list(at)) return tuple(read_each(at.children, &Parser::call_argument), span(at));  // T.attr([A, B], ...)
  Value value = eval(at);
  bool known = value.expr.type().is<PrimType>() || value.expr.type().is<BufferType>() || value.expr.is<StringImm>();
  if (!known) fail(at, "expected a scalar, a string or a buffer");
  return value.expr;
}

// Reads a call of any operator by its name: T.call_intrin(dtype, op, ...), T.Call.
Value Parser::op_call(const Syntax& at, std::span<const Syntax* const> args) {
  DType wanted = dtype(required(at, 0, "dtype"));
  const Syntax* named = &required(at, 1, "op");
  // The name may be given as tvm.ir.Op.get("tir.exp") or I.Op("tir.exp").
  if (is_call(*named)) named = &required(*named, 0, "name");
  std::string name = string(*named);
  if (name.starts_with("tirx.")) name = "tir." + name.substr(5);
  if (name.find('.') == std::string::npos) name = "tir." + name;
  if (name == "tir.fabs") name = ops::kScalarAbs.text;  // two names of one function in TVM
  // A target may define further instructions; a name that is close to a known one is a mistake.
  if (!find_intrinsic(name) && !find_builtin(name)) {
    std::vector<std::string> known = {std::string(ops::kIfThenElse.text)};
    for (const Intrinsic& intrinsic : intrinsics()) known.emplace_back(intrinsic.name);
    for (const Builtin& builtin : builtins()) known.emplace_back(builtin.name);
    std::string near = nearest(name, known);
    if (!near.empty() && near != name) fail({*named, string_literal(near)}, "unknown operator '{}'", name);
  }
  Call payload{op_ref(name), read_each(args, &Parser::call_argument), {}, {}};
  for (const Keyword& keyword : at.keywords) {
    if (keyword.name == "annotations" || keyword.name == "attrs") {
      payload.attrs = attrs(*keyword.value);
    } else if (keyword.name != "dtype" && keyword.name != "op" && keyword.name != "args") {
      payload.attrs.set(std::string(keyword.name), attr_value(*keyword.value));
    }
  }
  return {make(std::move(payload), prim_type(wanted), span(at))};
}

Value Parser::builtin_call(const Builtin& row, const Syntax& at) {
  using Result = Builtin::Result;
  std::vector<const Syntax*> args = arguments(at);
  const Syntax* stated = keyword(at, "dtype");
  if (!stated && !args.empty() && row.result == Result::kStatedFirst) {
    stated = args.front();
    args.erase(args.begin());
  } else if (!stated && !args.empty() && row.result == Result::kStatedLast) {
    stated = args.back();
    args.pop_back();
  }
  int count = static_cast<int>(args.size());
  if (count < row.least || (row.most >= 0 && count > row.most)) {
    std::string expected = row.most < 0            ? fmt::format("at least {}", row.least)
                           : row.least == row.most ? fmt::format("{}", row.least)
                                                   : fmt::format("{} to {}", row.least, row.most);
    fail(at, "T.{}: expected {} arguments, got {}", spelling(row), expected, count);
  }
  std::vector<Expr> values = read_each(args, &Parser::call_argument);
  std::optional<DType> result = natural_dtype(row, values);
  if (stated) {
    bool is_void = stated->kind == SyntaxKind::kString && string(*stated).empty();
    result = is_void ? DType::void_() : dtype(*stated);
  }
  if (!result) fail(at, "T.{}: the dtype of the result is missing", spelling(row));
  return {intrinsic(std::string(row.name), std::move(values), *result, span(at))};
}

// Returns the operands of a function of scalars, which are given by position or by the name that they have in TVM.
std::vector<const Syntax*> Parser::arguments(const Syntax& at) {
  std::vector<const Syntax*> result(at.operands().begin(), at.operands().end());
  for (const Keyword& keyword : at.keywords) {
    constexpr std::string_view kNames[] = {"a", "b", "x", "y", "lhs", "rhs", "value", "base", "exponent"};
    if (std::ranges::find(kNames, keyword.name) != std::end(kNames)) {
      result.push_back(keyword.value);
    } else if (keyword.name != "dtype" && keyword.name != "span") {
      fail(keyword, "unknown argument '{}'", keyword.name);
    }
  }
  return result;
}

// Functions without a meaning on a CPU.
constexpr std::pair<std::string_view, const char*> kOfGpus[] = {
    {"call_kernel", "runs a Triton or CUDA kernel, which takes a GPU; write the kernel as a @T.prim_func"},
    {"device_entry", "starts the threads of a GPU; write the loops over them: for i in range(n)"},
    {"Kernel", "is of tilelang, another language than TVM's tensor programs; print its module after lowering"},
    {"Pipelined", "is of tilelang, another language than TVM's tensor programs; print its module after lowering"},
    {"alloc_fragment", "is of tilelang, another language than TVM's tensor programs; print its module after lowering"}};
// Families of functions that only GPUs have, by what their names begin with.
constexpr std::string_view kGpuFamilies[] = {"cuda.",     "ptx.",    "ptx_",    "cta_id",
                                             "thread_id", "warp_id", "lane_id", "cluster_id"};

Value Parser::intrinsic_call(const std::string& form, const Syntax& at) {
  if (form == "call_intrin") return op_call(at, at.operands().subspan(std::min<size_t>(2, positional(at))));
  if (form == "Call") {
    const Syntax* list = arg(at, 2, "args");
    return op_call(at, list ? items(*list) : std::vector<const Syntax*>());
  }
  for (const Builtin& row : builtins()) {
    if (spelling(row) == form) return builtin_call(row, at);
  }
  if (const Builtin* builtin = find_builtin("tir." + form)) return builtin_call(*builtin, at);
  const Intrinsic* row = find_intrinsic("tir." + form);
  if (form == "Buffer") fail(*at.children[0], "'T.Buffer' is a type; expected a value");
  if (const char* const* why = row_of(kOfGpus, form)) fail(unsupported(at), "T.{} {}", form, *why);
  bool of_gpu = std::ranges::any_of(kGpuFamilies, [&](std::string_view family) { return form.starts_with(family); });
  if (!row && of_gpu) fail(unsupported(at), "T.{} is a function of GPUs, and this runtime is of the CPU", form);
  if (!row) fail({*at.children[0], near_form("T." + form)}, "unknown function 'T.{}'", form);
  std::vector<const Syntax*> operands = arguments(at);
  if (operands.size() != static_cast<size_t>(row->arity))
    fail(at, "T.{}: expected {} arguments, got {}", form, row->arity, operands.size());
  std::vector<Value> values = read_each(operands, &Parser::scalar_value);
  for (size_t i = 1; i < values.size(); ++i) match_operands(values[0], values[i], at);
  for (size_t i = 1; i + 1 < values.size(); ++i) match_operands(values[0], values[i], at);
  DType first = dtype_of(values[0].expr);
  DType result = row->result == Intrinsic::Result::kBool ? kBool.with_lanes(first.lanes) : first;
  if (const Syntax* stated = keyword(at, "dtype"); stated && dtype(*stated) != result)  // a spelling of 2022
    fail(*stated, "T.{} of these operands gives {}", form, to_string(result));
  return {intrinsic(row->name, map_each(values, &Value::expr), result, span(at))};
}

// Reads A.access_ptr("rw", offset=...): the mask is 1 for reading, 2 for writing; offset and extent count elements.
Value Parser::access_ptr(const Buffer& buffer, const Syntax& at) {
  check_keywords(at, {"access_mask", "ptr_type", "content_lanes", "offset", "extent", "ignore_mask"});
  const Syntax& mode = required(at, 0, "access_mask");
  int64_t mask = 0;
  if (mode.kind == SyntaxKind::kString) {
    std::string letters = string(mode);
    if (letters.find_first_not_of("rw") != std::string::npos) fail(mode, "expected a mode of 'r' and 'w'");
    mask = (letters.find('r') != std::string::npos ? 1 : 0) + (letters.find('w') != std::string::npos ? 2 : 0);
  } else {
    mask = constant_int(mode);
  }
  const Syntax* lanes_at = arg(at, 2, "content_lanes");
  int64_t content = lanes_at ? constant_int(*lanes_at) : 1;
  const BufferType& type = buffer_type(buffer);
  Expr offset = elem_offset(buffer, span(at));
  Expr extent = int_imm(1, kInt32);
  for (const Expr& dim : type.shape) extent = extent * cast_to(dim, kInt32);
  if (!type.strides.empty()) extent = cast_to(type.strides[0], kInt32) * cast_to(type.shape[0], kInt32);
  if (const Syntax* given = arg(at, 3, "offset")) {
    Expr stated = scalar(*given);
    if (!is_int(stated, 0)) {
      extent = extent - cast_to(stated, kInt32);
      offset = cast_to(offset, dtype_of(stated)) + stated;
    }
  }
  if (const Syntax* given = arg(at, 4, "extent"); !is_none(given)) extent = scalar(*given);
  if (content < 1) fail(*lanes_at, "expected a positive number of lanes");
  if (content > 1) {
    extent = floor_div(extent, content);
    offset = floor_div(offset, content);
  }
  DType element = type.dtype.with_lanes(static_cast<int>(content) * type.dtype.lanes);
  Expr annotation = intrinsic("tir.type_annotation", {}, element, span(at));
  Expr data = type.data.value_or(buffer_data(buffer, span(at)));
  return {intrinsic("tir.tvm_access_ptr", {annotation, data, offset, extent, int_imm(mask, kInt32)}, DType::handle(),
                    span(at))};
}

// ---- Functions as arguments

// Reads a lambda whose params have these dtypes.
Expr Parser::lambda(const Syntax& at, const std::vector<DType>& dtypes) {
  if (at.kind != SyntaxKind::kLambda) fail(at, "expected a lambda");
  NameScope scope(scopes_);
  Lambda result;
  size_t count = at.children.size() - 1;
  if (count != dtypes.size()) fail(at, "the lambda has {} parameters, expected {}", count, dtypes.size());
  for (size_t i = 0; i < count; ++i) result.params.push_back(define_var(*at.children[i], prim_type(dtypes[i])));
  result.results = read_each(items(*at.children.back()), &Parser::scalar);
  return make(std::move(result), object_type(), span(at));
}

// Reads T.index_map(lambda i, j: (i // 4, j, i % 4)) as an attribute: its text in canonical form.
AttrValue Parser::index_map(const Syntax& at) {
  Temporarily bare(default_int_, kInt32);
  auto text_of = [&](const Syntax& map) -> AttrValue {
    if (map.kind != SyntaxKind::kLambda) fail(map, "expected a lambda");
    Expr function = lambda(map, std::vector<DType>(map.children.size() - 1, kInt32));
    std::string text = Printer({}, kInt32).expr(function);
    // A single result is a tuple, too.
    size_t body = text.find(": ") + 2;
    return function.as<Lambda>()->results.size() == 1 ? text.substr(0, body) + "(" + text.substr(body) + ",)" : text;
  };
  AttrValue map = text_of(at.kind == SyntaxKind::kLambda ? at : required(at, 0, "mapping"));
  const Syntax* inverse = keyword(at, "inverse_index_map");
  if (!is_none(inverse)) map = AttrList{map, text_of(*inverse)};
  return Attrs{{"T.index_map", map}};
}

// Reads cls.f(A.data, n), a call of another tensor program of the module.
Value Parser::program_call(const std::string& callee, const Syntax& at) {
  check_keywords(at, {});
  for (const Pending& pending : pending_) {
    if (pending.name == callee && !pending.is_program)
      fail(at, "a tensor program cannot call '{}', a graph function", callee);
  }
  DType result = copy_value(program_results_, callee).value_or(DType::void_());
  std::vector<Expr> args = read_each(at.operands(), &Parser::call_argument);
  return {relaxc::call(global_var(callee, object_type()), std::move(args), {}, prim_type(result), span(at))};
}

// ---- Terms that only look like calls

// Reads T.Cast(dtype, value), which stays even where it changes nothing, and T.cast(value, dtype).
Value Parser::cast_form(const std::string& form, const Syntax& at) {
  // T.cast("float32", x) is of 2020.
  bool early = form == "T.cast" && positional(at) == 2 && at.children[1]->kind == SyntaxKind::kString;
  bool upper = form == "T.Cast" || early;
  if (form == "T.const") {
    const Syntax& number = required(at, 0, "value");
    const Syntax* stated = arg(at, 1, "dtype");
    if (stated) return {adapt(scalar_value(number), dtype(*stated), number)};
    return {scalar(number)};
  }
  if (form == "T.IntImm" || form == "T.FloatImm") {
    const Syntax& number = required(at, 1, "value");
    return {adapt(scalar_value(number), dtype(required(at, 0, "dtype")), number)};
  }
  DType wanted = dtype(required(at, upper ? 0 : 1, "dtype"));
  Expr value = scalar(required(at, upper ? 1 : 0, "value"));
  DType from = dtype_of(value);
  if (from.lanes != wanted.lanes) fail(at, "{} cannot be cast to {}", to_string(from), to_string(wanted));
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
  return {intrinsic(ops::kIfThenElse, {test, a.expr, b.expr}, dtype_of(a.expr), span(at))};
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
  return {intrinsic(ops::kShuffle, {tuple(std::move(vectors)), tuple(std::move(indices))}, result, span(at))};
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
  if (positional(at) == 0) fail(at, "{} takes at least one argument", form);
  Value result{condition(*at.children[1])};
  for (size_t i = 2; i < at.children.size(); ++i) result = binary(op, result, {condition(*at.children[i])}, at, false);
  return result;
}

// Reads T.min_value(dtype), T.max_value(dtype), T.infinity(dtype)
Value Parser::limit_form(const std::string& form, const Syntax& at) {
  return {limit(dtype(required(at, 0, "dtype")), form == "T.min_value", form == "T.infinity", at)};
}

Expr Parser::limit(DType wanted, bool low, bool infinite, const Syntax& at) {
  if (wanted.is_float()) {
    double most = infinite ? std::numeric_limits<double>::infinity() : largest_of(wanted);
    return float_imm(low ? -most : most, wanted.element(), span(at));
  }
  if (!wanted.is_integral() || infinite)
    fail(at, "{} has no {} value", to_string(wanted), infinite ? "infinite" : low ? "least" : "largest");
  uint64_t most = (wanted.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << wanted.bits) - 1) >> (wanted.is_int() ? 1 : 0);
  int64_t least = wanted.is_int() ? -static_cast<int64_t>(most) - 1 : 0;
  return int_imm(low ? least : static_cast<int64_t>(most), wanted.element(), span(at));
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

// The later form of call_llvm_intrin has the name in place of its number.
Value Parser::string_form(const std::string& form, const Syntax& at) {
  return {string_imm(string(required(at, 0, form == "T.StringImm" ? "value" : "name")), span(at))};
}

Value Parser::target_form(const std::string&, const Syntax& at) {
  Call payload{op_ref(ops::kTarget), {}, {}, {}};
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
  return {intrinsic(ops::kIterVar, std::move(args), DType::handle(), span(at))};
}

// Reads the form of 2022: T.load("float32", A.data, i).
Value Parser::load_form(const std::string&, const Syntax& at) {
  Buffer source = addressed(required(at, 1, "var"), 1);
  if (buffer_type(source).shape.size() != 1) fail(at, "expected the pointer of a buffer of one dim");
  Expr index = scalar(required(at, 2, "index"));
  std::optional<Expr> mask = lane_mask(arg(at, 3, "predicate"));
  if (!mask) return {relaxc::load(source, {index}, span(at))};
  DType element = buffer_type(source).dtype;
  return {make(BufferLoad{source, {index}, mask}, prim_type(element.with_lanes(dtype_of(index).lanes)), span(at))};
}

// Reads tvm.tir.ProducerLoad(B, [i]), an element of a tensor of te.
Value Parser::producer_form(const std::string&, const Syntax& at) {
  const Syntax& producer = required(at, 0, "producer");
  return load(buffer(producer), element_at(at, producer, required(at, 1, "indices")));
}

// Reads T.masked_load("float32x4", A, i, T.Ramp(0, 1, 4), mask): the dtype, the buffer, its indices and the mask.
Value Parser::masked_load_form(const std::string& form, const Syntax& at) {
  std::span<const Syntax* const> args = at.operands();
  if (args.size() < 4) fail(at, "{} takes a dtype, a buffer, indices and a mask", form);
  Buffer source = buffer(*args[1]);
  BufferLoad payload{source, indices(source, subscript_of(at, *args[1], args.subspan(2, args.size() - 3))),
                     condition(*args.back())};
  DType element = buffer_type(source).dtype;
  DType result = element.with_lanes(element.lanes * index_lanes(payload.indices));
  if (dtype(*args[0]) != result)
    fail(*args[0], "the load gives {}, not {}", to_string(result), to_string(dtype(*args[0])));
  return {make(std::move(payload), prim_type(result), span(at))};
}

Value Parser::reduction_form(const std::string& form, const Syntax& at) {
  fail(at, "{} stands alone as the value of te.compute; give other parts of the value a te.compute of their own", form);
}

// Reads T.comm_reducer(lambda x, y: x + y, [T.float32(0)]): a left and a right operand for each identity.
Value Parser::reducer_form(const std::string&, const Syntax& at) {
  std::vector<Expr> args = read_each(items(required(at, 1, "identity")), &Parser::scalar);
  const std::vector<DType> dtypes = map_each(args, dtype_of);
  std::vector<DType> params = dtypes;
  params.insert(params.end(), dtypes.begin(), dtypes.end());
  Expr combiner = lambda(required(at, 0, "combiner"), params);
  size_t results = combiner.as<Lambda>()->results.size();
  if (results != args.size()) fail(at, "the combiner gives {} values for {} identities", results, args.size());
  args.insert(args.begin(), combiner);
  return {intrinsic(ops::kCommReducer, std::move(args), DType::handle(), span(at))};
}

}  // namespace relaxc::text
