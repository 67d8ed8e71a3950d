#include "tir/analysis/work.h"

#include <fmt/format.h>

#include <cstdio>

#include "ir/arith.h"
#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "ir/visit.h"
#include "support/lists.h"

namespace relaxc {

namespace {

// Multiplications and additions of the polynomials that codegen/emit_math.cc makes of a function, of which most
// approximate within a binade or a quadrant; quotients and roots take as long as so many on current processors.
constexpr int64_t kOperationsOfFunction = 16, kOperationsOfRoot = 4, kOperationsOfQuotient = 4;

// Functions that are an instruction or a few.
constexpr std::string_view kCheapFunctions[] = {"tir.abs",      "tir.bitwise_not", "tir.ceil",  "tir.copysign",
                                                "tir.floor",    "tir.isfinite",    "tir.isinf", "tir.isnan",
                                                "tir.popcount", "tir.nearbyint",   "tir.round", "tir.trunc"};

int64_t operations_of_call(const Call& call) {
  const OpRef* op = call.callee.as<OpRef>();
  if (!op) return kOperationsOfFunction;
  if (std::ranges::count(kCheapFunctions, op->name) > 0) return 1;
  if (op->name == "tir.fma") return 2;
  if (op->name == "tir.sqrt" || op->name == "tir.rsqrt") return kOperationsOfRoot;
  return find_intrinsic(op->name) ? kOperationsOfFunction : 0;
}

// The parts of `condition ? a : b`, absent where the expression is none.
struct Sides {
  const Expr *condition = nullptr, *a = nullptr, *b = nullptr;
};
Sides sides_of(const NodeRef& e) {
  if (const Select* select = e.as<Select>()) return {&select->condition, &select->a, &select->b};
  const Call* call = e.as<Call>();
  const OpRef* op = call ? call->callee.as<OpRef>() : nullptr;
  if (op && op->name == ops::kIfThenElse.text) return {&call->args[0], &call->args[1], &call->args[2]};
  return {};
}

// Adds up what each statement does, times the iterations of the loops around it.
class WorkCounter {
 public:
  explicit WorkCounter(const std::vector<Buffer>& params) : accesses_(params.size(), int_imm(0)) {
    for (size_t i = 0; i < params.size(); ++i) params_.emplace(params[i].get(), i);
  }

  void count(const Stmt& stmt) {
    match(
        stmt,
        [&](const Seq& list) {
          for (const Stmt& each : list.stmts) count(each);
        },
        [&](const BufferStore& store) {
          loads_of_store_.clear();
          access(store.buffer), value(store.value), indices(store.indices);
        },
        [&](const For& loop) { repeated(loop.extent, loop.body); }, [&](const While&) { is_known_ = false; },
        [&](const IfThenElse& branch) {
          value(branch.condition), count(branch.then_body);
          if (branch.else_body) count(*branch.else_body);
        },
        [&](const Bind& bind) { value(bind.value); }, [&](const Block& block) { count(block.body); },
        [&](const AttrStmt& attr) { count(attr.body); },
        [&](const Evaluate& call) { value(call.value), is_known_ = false; }, [&](const auto&) {});
  }

  bool is_known() const { return is_known_; }
  const Expr& operations() const { return operations_; }
  const std::vector<Expr>& accesses() const { return accesses_; }

 private:
  void repeated(const Expr& extent, const Stmt& body) {
    const Expr outer = times_;
    times_ = simplify(times_ * cast_to(extent, kInt64));
    count(body);
    times_ = outer;
  }
  void access(const Buffer& buffer) {
    const size_t* param = find_value(params_, buffer.get());
    if (param) accesses_[*param] = accesses_[*param] + times_;
  }
  void value(const Expr& e) {
    if (const int64_t here = operations_of(e); here > 0) operations_ = operations_ + times_ * here;
  }
  // Counts the loads in the expression, too.
  int64_t operations_of(const NodeRef& e) {
    if (const BufferLoad* load = e.as<BufferLoad>()) {
      if (is_new(e)) access(load->buffer), indices(load->indices);
      return 0;
    }
    if (const Sides sides = sides_of(e); sides.a) {
      // Which iterations choose what is known before they run: there is no operation, and one side.
      const int64_t a = operations_of(*sides.a), b = operations_of(*sides.b);
      if (!holds<BufferLoad>(*sides.condition)) return std::max(a, b);
      return 1 + operations_of(*sides.condition) + a + b;
    }
    int64_t sum = 0;
    if (const Binary* binary = e.as<Binary>()) sum = is_division(binary->op) ? kOperationsOfQuotient : 1;
    if (const Call* call = e.as<Call>()) sum = operations_of_call(*call);
    visit_children(e, [&](const NodeRef& child, Slot) { sum += operations_of(child); });
    return sum;
  }
  // Returns whether a load is the first of its element in a store. Others find it in a register.
  bool is_new(const NodeRef& load) {
    auto is_equal = [&](const NodeRef& other) { return structural_equal(other, load); };
    if (std::ranges::any_of(loads_of_store_, is_equal)) return false;
    loads_of_store_.push_back(load);
    return true;
  }
  // Indices count as accesses where they are loaded, and as no operations.
  void indices(const std::vector<Expr>& list) {
    for (const Expr& index : list) walk(index, [&](const BufferLoad& load) { access(load.buffer); });
  }

  std::unordered_map<const NodeHeader*, size_t> params_;
  Expr times_ = int_imm(1), operations_ = int_imm(0);
  std::vector<Expr> accesses_;
  std::vector<NodeRef> loads_of_store_;
  bool is_known_ = true;
};

// "t1[0]" for the dims of params, by the first param that has each.
class DimNames {
 public:
  explicit DimNames(const ParamShapes& params) {
    for (size_t i = 0; i < params.size(); ++i) {
      for (size_t d = 0; d < params[i].size(); ++d) add(simplify(params[i][d]), fmt::format("t{}[{}]", i, d));
    }
  }

  // Returns null for what no dim says.
  const std::string* find(const Expr& e) const {
    for (const auto* names : {&variables_, &multiples_}) {
      if (const std::string* name = find_value(*names, e.get())) return name;
    }
    auto known = std::ranges::find_if(others_, [&](const auto& other) { return structural_equal(other.first, e); });
    return known == others_.end() ? nullptr : &known->second;
  }

 private:
  void add(const Expr& dim, const std::string& name) {
    if (dim.is<Var>()) {
      variables_.try_emplace(dim.get(), name);
      return;
    }
    if (as_int(dim)) return;
    others_.emplace_back(dim, name);
    const Binary* times = dim.as<Binary>();
    if (!times || times->op != BinaryOp::kMul || !times->a.is<Var>()) return;
    if (const auto factor = as_int(times->b))
      multiples_.try_emplace(times->a.get(), fmt::format("({} // {})", name, *factor));
  }

  std::unordered_map<const NodeHeader*, std::string> variables_, multiples_;  // dims n, and n of dims n * 4
  std::vector<std::pair<Expr, std::string>> others_;
};

// Returns the formula; nullopt where it depends on what no dim of a param says.
std::optional<std::string> formula_of(const Expr& e, const DimNames& names) {
  if (auto number = as_int(e)) return *number < 0 ? fmt::format("({})", *number) : fmt::format("{}", *number);
  if (const std::string* name = names.find(e)) return *name;
  if (const Cast* cast = e.as<Cast>()) return formula_of(cast->value, names);
  const Binary* binary = e.as<Binary>();
  if (!binary) return std::nullopt;
  auto a = formula_of(binary->a, names), b = formula_of(binary->b, names);
  if (!a || !b) return std::nullopt;
  switch (binary->op) {
    case BinaryOp::kAdd:
      return fmt::format("({} + {})", *a, *b);
    case BinaryOp::kSub:
      return fmt::format("({} - {})", *a, *b);
    case BinaryOp::kMul:
      return fmt::format("{} * {}", *a, *b);
    case BinaryOp::kFloorDiv:
      return fmt::format("({} // ({}))", *a, *b);
    case BinaryOp::kFloorMod:
      return fmt::format("({} % ({}))", *a, *b);
    case BinaryOp::kMin:
      return fmt::format("min({}, {})", *a, *b);
    case BinaryOp::kMax:
      return fmt::format("max({}, {})", *a, *b);
    default:
      return std::nullopt;
  }
}

}  // namespace

Work work_of(const PrimFuncRef& program) {
  const std::vector<Buffer> params = buffer_params(program);
  WorkCounter counter(params);
  counter.count(program->body);
  const ParamShapes shapes = map_each(params, [](const Buffer& param) { return buffer_type(param).shape; });
  auto text = [&](const Expr& count) { return formula_of(count, shapes); };
  Work work{counter.is_known() ? text(counter.operations()) : "", {}};
  for (const Expr& accesses : counter.accesses()) work.accesses.push_back(counter.is_known() ? text(accesses) : "");
  return work;
}

std::string formula_of(const Expr& number, const ParamShapes& params) {
  return formula_of(simplify(number), DimNames(params)).value_or("");
}

std::string in_terms_of(const ParamShapes& params, const std::string& formula, const ParamShapes& own) {
  std::string result;
  for (size_t at = 0; at < formula.size();) {
    unsigned param = 0, dim = 0;
    int length = 0;
    if (std::sscanf(formula.c_str() + at, "t%u[%u]%n", &param, &dim, &length) < 2 || length == 0) {
      result += formula[at++];
      continue;
    }
    if (param >= own.size() || dim >= own[param].size()) return "";
    const std::string value = formula_of(own[param][dim], params);
    if (value.empty()) return "";
    result += value;
    at += static_cast<size_t>(length);
  }
  return result;
}

}  // namespace relaxc
