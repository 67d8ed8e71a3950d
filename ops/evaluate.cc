#include "ops/evaluate.h"

#include <algorithm>
#include <cmath>

#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "ir/visit.h"
#include "ops/common.h"

namespace relaxc {

namespace {

using Known = std::optional<Expr>;  // an element, or nullopt where it is known at run time only

constexpr double kMostExact = 9e15;  // doubles below it are exact as integers

bool is_known_dtype(DType dtype) {
  return dtype == kInt64 || dtype == kInt32 || dtype == kBool || dtype == kFloat32 || dtype == kFloat64;
}
bool is_small(const std::vector<int64_t>& shape) {
  auto count = element_count(shape);
  return count && *count <= KnownTensor::kMostElements;
}

// ---- Scalars

std::optional<double> float_value(const Expr& e) {
  const FloatImm* imm = e.as<FloatImm>();
  return imm ? std::optional(imm->value) : std::nullopt;
}
// Returns n where e is Cast(n) from int64 to a float.
Known cast_from_int(const Expr& e) {
  const Cast* cast = e.as<Cast>();
  return cast && dtype_of(cast->value) == kInt64 ? Known(cast->value) : std::nullopt;
}
// Returns the integer that a cast of the scalar to int64 gives.
Known truncated(const Expr& e) {
  if (Known n = integer_of(e)) return n;
  auto value = float_value(e);
  bool fits = value && std::abs(*value) < kMostExact;
  return fits ? Known(int_imm(static_cast<int64_t>(*value))) : std::nullopt;
}
Expr float_of(const Expr& n, DType dtype) {
  auto known = as_int(n);
  return known ? float_imm(static_cast<double>(*known), dtype) : cast_to(n, dtype);
}
// Returns whether a value of the dtype may wrap. Values are int64 scalars, and dims are taken as small, so an int32
// wraps where its value has a constant beyond int32.
bool may_wrap(const Expr& value, DType dtype) {
  bool is_beyond = false;
  if (dtype != kInt32) return false;
  walk(value, [&](const IntImm& imm) { is_beyond = is_beyond || imm.value != static_cast<int32_t>(imm.value); });
  return is_beyond;
}
Known cast_scalar(const Expr& e, DType to) {
  DType from = dtype_of(e);
  if (!is_known_dtype(to)) return std::nullopt;
  if (to.is_bool() && from.is_bool()) return e;
  if (to.is_float() && float_value(e)) return float_imm(*float_value(e), to);
  if (to.is_bool() && float_value(e)) return bool_imm(*float_value(e) != 0);
  Known n = to.is_int() ? truncated(e) : integer_of(e);
  if (!n || may_wrap(*n, to)) return std::nullopt;
  if (to.is_bool()) return not_equal(*n, int_imm(0));
  return to.is_float() ? float_of(*n, to) : *n;
}

// Returns the greater or the smaller one of two floats. A cast of an integer is at least the other one where the
// integer is, and infinity is what a reduction begins with.
Known float_extreme(BinaryOp op, const Expr& a, const Expr& b) {
  auto x = float_value(a), y = float_value(b);
  bool wants_max = op == BinaryOp::kMax;
  if (x && y) {
    if (std::isnan(*x) || std::isnan(*y)) return std::nullopt;
    return wants_max == (*x < *y) ? b : a;
  }
  if (x && std::isinf(*x)) return wants_max == (*x < 0) ? b : a;
  if (y && std::isinf(*y)) return wants_max == (*y < 0) ? a : b;
  Known m = integer_of(a), n = integer_of(b);
  return m && n ? Known(float_of(wants_max ? max(*m, *n) : min(*m, *n), dtype_of(a))) : std::nullopt;
}
// Returns whether the float is a whole number so small that sums of such numbers are the same in any order.
bool is_exact(const Known& e) {
  constexpr double kMostExactFloat = 1 << 24;
  auto value = e ? float_value(*e) : std::nullopt;
  return value && *value == std::trunc(*value) && std::abs(*value) < kMostExactFloat;
}
Known float_binary(BinaryOp op, const Expr& a, const Expr& b) {
  using enum BinaryOp;
  if (op == kMax || op == kMin) return float_extreme(op, a, b);
  if (op != kAdd && op != kSub && op != kMul && op != kDiv) return std::nullopt;
  auto result = [op](const auto& x, const auto& y) { return op == kAdd ? x + y : op == kSub ? x - y : x * y; };
  DType dtype = dtype_of(a);
  auto x = float_value(a), y = float_value(b);
  if (x && y) return float_imm(op == kDiv ? *x / *y : result(*x, *y), dtype);
  Known m = integer_of(a), n = integer_of(b);
  return m && n && op != kDiv ? Known(float_of(result(*m, *n), dtype)) : std::nullopt;
}
Known bool_binary(BinaryOp op, const Expr& a, const Expr& b) {
  bool differs = op == BinaryOp::kNE;
  if (op == BinaryOp::kAnd) return a && b;
  if (op == BinaryOp::kOr) return a || b;
  if (op != BinaryOp::kEQ && !differs) return std::nullopt;
  Expr differ = (a && !b) || (!a && b);
  return differs ? differ : !differ;
}
Known int_division(BinaryOp op, const Expr& a, const Expr& b, const Analyzer& facts) {
  auto dividend = as_int(a), divisor = as_int(b);
  if (divisor && (*divisor == 0 || *divisor == -1)) return std::nullopt;
  if (op == BinaryOp::kFloorDiv) return floor_div(a, b);
  if (op == BinaryOp::kFloorMod) return floor_mod(a, b);
  bool divides = op == BinaryOp::kDiv;
  if (dividend && divisor) return folded_binary(op, a, b);
  if (facts.bounds(a).min >= 0 && facts.bounds(b).min >= 0) return divides ? floor_div(a, b) : floor_mod(a, b);
  return divides ? Known(binary(op, a, b)) : std::nullopt;
}
Known int_binary(BinaryOp op, const Expr& a, const Expr& b, const Analyzer& facts) {
  using enum BinaryOp;
  if (op == kAdd) return a + b;
  if (op == kSub) return a - b;
  if (op == kMul) return a * b;
  if (is_division(op)) return int_division(op, a, b, facts);
  if (op > kGE) return std::nullopt;  // operators on bits
  if (op != kEQ && op != kNE) return folded_binary(op, a, b);
  return facts.can_prove_equal(a, b) ? bool_imm(op == kEQ) : facts.simplify(binary(op, a, b));
}

// Rounds a float by the intrinsic of that name, where it is one that rounds. A whole number stays as it is.
Known rounded_scalar(std::string_view name, const Expr& x) {
  constexpr OpName kRoundings[] = {ops::kScalarFloor, ops::kScalarCeil, ops::kScalarTrunc, ops::kNearbyint};
  if (std::ranges::find(kRoundings, name, &OpName::text) == std::end(kRoundings)) return std::nullopt;
  if (cast_from_int(x)) return x;
  auto value = float_value(x);
  return value ? Known(float_imm(find_intrinsic(name)->eval(*value, 0, 0), dtype_of(x))) : std::nullopt;
}

// ---- Programs

class Evaluation {
 public:
  // `any_order`: the kernel may reduce in another order, so floats are known only where no order rounds.
  Evaluation(const Analyzer& facts, bool any_order) : facts_(facts), any_order_(any_order) {}

  void give(const Buffer& buffer, KnownTensor tensor) {
    memories_[buffer.get()] = {std::move(tensor.shape), {tensor.elements.begin(), tensor.elements.end()}};
  }
  bool allocate(const Buffer& buffer) {
    auto shape = numbers(buffer_type(buffer).shape);
    if (!shape || !is_small(*shape)) return false;
    memories_[buffer.get()] = {*shape, std::vector<Known>(static_cast<size_t>(*element_count(*shape)))};
    return true;
  }
  // Returns the elements of an output, or nullopt when one of them was not written.
  std::optional<std::vector<Expr>> contents_of(const Buffer& buffer) const {
    return all_or_none(memories_.at(buffer.get()).elements, std::identity());
  }

  // Runs the statement and returns whether that was possible.
  bool run(const Stmt& stmt) {
    if (++steps_ > kMostSteps) return false;
    if (const Seq* node = stmt.as<Seq>())
      return std::ranges::all_of(node->stmts, [&](const Stmt& s) { return run(s); });
    if (const For* node = stmt.as<For>()) return run_loop(*node);
    if (const Block* node = stmt.as<Block>()) return run_block(*node);
    if (const BufferStore* node = stmt.as<BufferStore>()) return run_store(*node);
    if (const Bind* node = stmt.as<Bind>()) return bind(node->var, scalar(node->value));
    if (const IfThenElse* node = stmt.as<IfThenElse>()) {
      auto condition = number(node->condition);
      if (!condition) return false;
      if (*condition) return run(node->then_body);
      return !node->else_body || run(*node->else_body);
    }
    return false;
  }

 private:
  struct Memory {
    std::vector<int64_t> shape;
    std::vector<Known> elements;
  };
  static constexpr int kMostSteps = 20000;

  bool bind(const VarRef& var, const Known& value) {
    if (value) values_.insert_or_assign(var.get(), *value);
    return value.has_value();
  }
  bool run_loop(const For& node) {
    auto first = number(node.min), extent = number(node.extent);
    if (!first || !extent || node.step) return false;
    for (int64_t i = 0; i < *extent; ++i) {
      if (!bind(node.var, int_imm(*first + i)) || !run(node.body)) return false;
    }
    return true;
  }
  bool run_block(const Block& node) {
    if (node.predicate || !node.match_buffers.empty()) return false;
    bool is_first = true;  // the first iteration of the reduce axes
    for (const IterVar& axis : node.iter_vars) {
      auto value = number(axis.value), first = number(axis.domain.min);
      if (!value || !first) return false;
      bind(axis.var, int_imm(*value));
      is_first = is_first && (axis.kind != IterKind::kReduce || *value == *first);
    }
    if (!std::ranges::all_of(node.alloc_buffers, [&](const Buffer& buffer) { return allocate(buffer); })) return false;
    return (!node.init || !is_first || run(*node.init)) && run(node.body);
  }
  bool run_store(const BufferStore& node) {
    Known* element = node.predicate ? nullptr : find_element(node.buffer, node.indices);
    Known value = element ? scalar(node.value) : std::nullopt;
    if (value && !dtype_of(*value).is_float()) value = facts_.simplify(*value);
    if (!value || may_wrap(*value, dtype_of(node.value))) return false;
    *element = value;
    return true;
  }

  std::optional<std::vector<int64_t>> numbers(const std::vector<Expr>& dims) {
    return all_or_none(dims, [&](const Expr& dim) { return number(dim); });
  }
  // Returns the element, or null where the position is not a number in range.
  Known* find_element(const Buffer& buffer, const std::vector<Expr>& indices) {
    auto memory = memories_.find(buffer.get());
    auto position = memory == memories_.end() ? std::nullopt : numbers(indices);
    if (!position || position->size() != memory->second.shape.size()) return nullptr;
    int64_t flat = 0;
    for (size_t d = 0; d < position->size(); ++d) {
      int64_t dim = memory->second.shape[d], index = (*position)[d];
      if (index < 0 || index >= dim) return nullptr;
      flat = flat * dim + index;
    }
    return &memory->second.elements[static_cast<size_t>(flat)];
  }

  std::optional<int64_t> number(const Expr& expr) {
    if (auto known = as_int(expr)) return known;
    Known value = scalar(expr);
    if (!value || dtype_of(*value).is_float()) return std::nullopt;
    auto known = as_int(*value);
    return known ? known : as_int(facts_.simplify(*value));
  }
  Known scalar(const Expr& expr) {
    DType dtype = dtype_of(expr);
    if (!is_known_dtype(dtype)) return std::nullopt;
    if (const IntImm* node = expr.as<IntImm>()) return int_imm(node->value, dtype.is_bool() ? kBool : kInt64);
    if (expr.is<FloatImm>()) return expr;
    if (expr.is<Var>()) {
      auto value = values_.find(expr.get());
      if (value != values_.end()) return value->second;
      return dtype == kInt64 || dtype.is_bool() ? Known(expr) : std::nullopt;
    }
    if (const BufferLoad* node = expr.as<BufferLoad>()) {
      Known* element = node->predicate ? nullptr : find_element(node->buffer, node->indices);
      return element ? *element : std::nullopt;
    }
    if (const Cast* node = expr.as<Cast>()) {
      Known value = scalar(node->value);
      return value ? cast_scalar(*value, dtype) : std::nullopt;
    }
    if (const Not* node = expr.as<Not>()) {
      Known value = scalar(node->value);
      return value ? Known(!*value) : std::nullopt;
    }
    if (const Binary* node = expr.as<Binary>()) return binary_scalar(*node);
    if (const Select* node = expr.as<Select>()) return choose(node->condition, node->a, node->b);
    const Call* call = expr.as<Call>();
    if (!call || call->args.empty()) return std::nullopt;
    if (as_call(expr, ops::kIfThenElse)) return choose(call->args[0], call->args[1], call->args[2]);
    Known operand = call->args.size() == 1 ? scalar(call->args[0]) : std::nullopt;
    return operand && dtype_of(*operand).is_float() ? rounded_scalar(op_name(expr), *operand) : std::nullopt;
  }
  Known binary_scalar(const Binary& node) {
    Known a = scalar(node.a), b = a ? scalar(node.b) : std::nullopt;
    if (!b || dtype_of(*a) != dtype_of(*b)) return std::nullopt;
    if (dtype_of(*a).is_float()) {
      Known result = float_binary(node.op, *a, *b);
      bool rounds = node.op != BinaryOp::kMax && node.op != BinaryOp::kMin;
      bool is_known = !any_order_ || !rounds || (is_exact(*a) && is_exact(*b) && is_exact(result));
      return is_known ? result : std::nullopt;
    }
    if (dtype_of(*a).is_bool()) return bool_binary(node.op, *a, *b);
    Known result = int_binary(node.op, *a, *b, facts_);
    return result && may_wrap(*result, dtype_of(node.a)) ? std::nullopt : result;
  }
  // Evaluates one side only where the condition is known, so that the other may be out of range.
  Known choose(const Expr& condition, const Expr& a, const Expr& b) {
    Known which = scalar(condition);
    if (!which) return std::nullopt;
    if (auto known = as_int(*which)) return scalar(*known ? a : b);
    Known x = scalar(a), y = x ? scalar(b) : std::nullopt;
    if (!y || dtype_of(*x).is_float() || dtype_of(*x) != dtype_of(*y)) return std::nullopt;
    return select(*which, *x, *y);
  }

  const Analyzer& facts_;
  bool any_order_;
  int steps_ = 0;
  std::unordered_map<const NodeHeader*, Expr> values_;      // of loop variables, block axes and bound scalars
  std::unordered_map<const NodeHeader*, Memory> memories_;  // of buffers
};

// Returns whether the indices of a gather or scatter are numbers in range. For other indices, the check that
// passes/check_dims.cc makes is an error or, on demand, clamps them, and the program alone does not tell which.
bool has_valid_indices(const OpRow& row, const OpCall& op, const std::vector<KnownTensor>& tensors) {
  auto indexed = row.indexed ? row.indexed(op) : std::nullopt;
  if (!indexed) return true;
  if (op.arg(indexed->position).type().is<PrimType>()) return false;
  const KnownTensor& indices = tensors.at(indexed->position);
  for (size_t i = 0; i < indices.elements.size(); ++i) {
    auto index = as_int(indices.elements[i]), dim = as_int(indexed->dims[i % indexed->dims.size()]);
    if (!index || !dim || *index < -*dim || *index >= *dim) return false;
  }
  return true;
}

// Returns whether the program of the call follows from attributes, dtypes and shapes.
bool follows_from_types(const OpRow& row, const Call& call) {
  return !row.indexed && std::ranges::all_of(call.args, [](const Expr& arg) { return arg.type().is<TensorType>(); });
}
// Returns whether the entry is the program of this call, too.
bool is_call_of(const EvaluatedPrograms::Entry& entry, const Call& call, const std::vector<KnownTensor>& tensors) {
  return entry.attrs == call.attrs &&
         std::ranges::equal(entry.operands, tensors, [](const KnownTensor& a, const KnownTensor& b) {
           return a.dtype == b.dtype && a.shape == b.shape;
         });
}

std::optional<KnownTensor> run(const EvaluatedPrograms::Entry& entry, std::vector<KnownTensor> tensors,
                               const Analyzer& facts) {
  bool has_floats = std::ranges::any_of(tensors, &DType::is_float, &KnownTensor::dtype);
  Evaluation evaluation(facts, has_floats && entry.pattern >= OpPattern::kReduction);
  const std::vector<VarRef>& params = entry.program->params;
  for (size_t i = 0; i < tensors.size(); ++i) evaluation.give(params[i], std::move(tensors[i]));
  if (!evaluation.allocate(params.back()) || !evaluation.run(entry.program->body)) return std::nullopt;
  auto elements = evaluation.contents_of(params.back());
  return elements ? std::optional(KnownTensor{entry.result.dtype, entry.result.shape, *elements}) : std::nullopt;
}

}  // namespace

std::optional<Expr> integer_of(const Expr& element) {
  DType dtype = dtype_of(element);
  if (dtype.is_bool()) return as_int(element) ? int_imm(*as_int(element)) : select(element, int_imm(1), int_imm(0));
  if (!dtype.is_float()) return element;
  if (Known n = cast_from_int(element)) return n;
  auto value = float_value(element);
  bool whole = value && std::abs(*value) < kMostExact && *value == std::trunc(*value);
  return whole ? Known(int_imm(static_cast<int64_t>(*value))) : std::nullopt;
}
bool may_be_known(const Type& type) {
  auto dtype = tensor_dtype(type);
  if (!dtype || !is_known_dtype(*dtype)) return false;
  auto shape = constant_shape(type);
  return shape && is_small(*shape);
}
Type KnownTensor::type() const { return tensor_type(int_imms(shape), dtype); }
std::optional<Tensor> KnownTensor::as_tensor() const {
  if (!std::ranges::all_of(elements, [](const Expr& e) { return e.is<FloatImm>() || as_int(e); })) return std::nullopt;
  Tensor tensor = Tensor::empty(shape, dtype);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const Expr& element = elements[static_cast<size_t>(i)];
    if (auto number = float_value(element)) {
      tensor.set_double(i, *number);
    } else {
      tensor.set_int(i, *as_int(element));
    }
  }
  return tensor;
}
std::optional<KnownTensor> known_tensor(const Tensor& tensor) {
  DType dtype = tensor.dtype();
  if (!is_known_dtype(dtype) || tensor.size() > KnownTensor::kMostElements) return std::nullopt;
  KnownTensor result{dtype, tensor.shape(), {}};
  for (int64_t i = 0; i < tensor.size(); ++i) {
    result.elements.push_back(dtype.is_float() ? float_imm(tensor.as_double(i), dtype)
                                               : int_imm(tensor.as_int(i), dtype.is_bool() ? kBool : kInt64));
  }
  return result;
}

std::optional<KnownTensor> evaluate(const OpRow& row, const Expr& value, std::vector<KnownTensor> tensors,
                                    EvaluatedPrograms& programs, const Analyzer& facts) {
  const Call& call = *value.as<Call>();
  bool has_floats = std::ranges::any_of(tensors, &DType::is_float, &KnownTensor::dtype);
  if (has_floats && row.pattern > OpPattern::kReduction) return std::nullopt;
  bool is_kept = follows_from_types(row, call);
  auto known = is_kept ? programs.last.find(&row) : programs.last.end();
  if (known != programs.last.end() && is_call_of(known->second, call, tensors))
    return run(known->second, std::move(tensors), facts);
  OpCall op{call, value.span()};
  auto shape = constant_shape(value.type());
  if (!shape || !has_valid_indices(row, op, tensors)) return std::nullopt;
  const DType dtype = *tensor_dtype(value.type());
  if (row.view) return KnownTensor{dtype, *shape, tensors.at(0).elements};
  PrimFuncRef program = row.legalize(op);  // which may throw
  EvaluatedPrograms::Entry entry{call.attrs, {}, {dtype, *shape, {}}, row.pattern, std::move(program)};
  for (const KnownTensor& tensor : tensors) entry.operands.push_back({tensor.dtype, tensor.shape, {}});
  RELAXC_CHECK(entry.program->params.size() == tensors.size() + 1, "the program of {} has {} params for {} tensors",
               row.name, entry.program->params.size(), tensors.size());
  if (!is_kept) return run(entry, std::move(tensors), facts);
  return run(programs.last.insert_or_assign(&row, std::move(entry)).first->second, std::move(tensors), facts);
}

}  // namespace relaxc
