// Expects: explicit allocations (destination_passing). Guarantees: temporaries whose size follows from the inputs' dims
// live in one storage per run, allocated first: relax.memory.alloc_storage, then relax.memory.alloc_tensor(storage,
// offset, shape, dtype) in place of each relax.builtin.alloc_tensor. Results, tensors of branches and tensors whose
// size is known only later keep separate allocations.
//
// Lifetimes run from the allocation to the last use of the tensor or of a view of it; tensors that do not live at the
// same time may share memory. A size is a number times a product of dims, its factor. The arena has a part for each
// factor, in which numbers are packed: the offset of a tensor is that of the part and a multiple of the factor, so one
// plan holds for all dims. Where all sizes have one factor, as with a symbolic batch, the plan is the one of constant
// dims. A long sum of parts is a variable to which the next offset adds. The function's attribute "arena_bytes" is the
// formula of the arena's size, "peak_bytes" that of all memory for tensors that a run takes.
#include <algorithm>
#include <functional>
#include <map>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/text/printer.h"
#include "passes/graph_rewriter.h"
#include "support/lists.h"
#include "vm/memory.h"

namespace relaxc {

namespace {

// A sum that mentions more dims becomes a variable, since each later offset would repeat it.
constexpr int kMostDimsOfOffset = 16;

bool is_long(const Expr& sum) {
  int dims = 0;
  walk(sum, [&](const Var&) { ++dims; });
  return dims > kMostDimsOfOffset;
}

// The effort for a plan.
constexpr int64_t kMostRounds = 200, kMostComparisons = 100'000'000;

struct Temporary {
  int64_t size;       // in factors
  size_t begin, end;  // binding positions, inclusive
  int64_t offset = 0;
};
bool live_at_once(const Temporary& a, const Temporary& b) { return a.begin <= b.end && b.begin <= a.end; }

// The tensors whose sizes are multiples of one factor.
struct Part {
  Expr factor;
  std::vector<Temporary> temporaries = {};  // by position
  int64_t size = 0;                         // in factors
};

// Returns what lives at the busiest moment, which no plan can go below.
int64_t most_live(const Part& part) {
  std::map<size_t, int64_t> changes;
  for (const Temporary& one : part.temporaries) {
    changes[one.begin] += one.size;
    changes[one.end + 1] -= one.size;
  }
  int64_t live = 0, most = 0;
  for (const auto& [position, change] : changes) most = std::max(most, live += change);
  return most;
}

// Gives each tensor of the order the lowest place that is free for as long as it lives. Returns the end of all.
int64_t place_all(const std::vector<Temporary*>& order) {
  std::vector<Temporary*> placed;  // by offset
  int64_t end = 0;
  for (Temporary* one : order) {
    one->offset = 0;
    for (const Temporary* other : placed) {
      if (!live_at_once(*one, *other)) continue;
      if (one->offset + one->size <= other->offset) break;
      one->offset = std::max(one->offset, other->offset + other->size);
    }
    placed.insert(std::ranges::upper_bound(placed, one->offset, {}, &Temporary::offset), one);
    end = std::max(end, one->offset + one->size);
  }
  return end;
}

// Large tensors choose first, which leaves the fewest holes. While that is not the best possible, those at the top
// choose before all others in the next round; the best round counts.
void pack(Part& part) {
  const int64_t least = most_live(part), count = std::ssize(part.temporaries);
  std::vector<Temporary*> order;
  for (Temporary& one : part.temporaries) order.push_back(&one);
  std::ranges::stable_sort(order, std::greater(), &Temporary::size);
  std::vector<Temporary> best;
  const int64_t rounds = std::clamp<int64_t>(kMostComparisons / (count * count), 1, kMostRounds);
  for (int64_t round = 0; round < rounds && (best.empty() || part.size > least); ++round) {
    int64_t end = place_all(order);
    if (best.empty() || end < part.size) {
      part.size = end;
      best = part.temporaries;
    }
    std::ranges::stable_partition(order, [&](const Temporary* one) { return one->offset + one->size == end; });
  }
  part.temporaries = std::move(best);
}

// Returns the expression as a factor and the number that multiplies it; a constant has the factor 1.
std::pair<Expr, int64_t> factor_and_number(const Expr& bytes) {
  if (auto number = as_int(bytes)) return {int_imm(1), *number};
  const Binary* product = bytes.as<Binary>();
  if (product && product->op == BinaryOp::kMul) {
    if (auto number = as_int(product->b)) return {product->a, *number};
  }
  return {bytes, 1};
}

class Planner {
 public:
  Planner(const FunctionRef& function, const IRModule& module)
      : function_(function), module_(module), seq_(function->body.as<SeqExpr>()) {
    for (const VarRef& param : function->params) {
      facts_.assume_dims(param.type());
      walk(param.type(), [&](const Ref<Var>& dim) { known_dims_.insert(dim.get()); });
      if (param.type().is<PrimType>()) known_dims_.insert(param.get());
    }
  }

  FunctionRef run() {
    find_lifetimes();
    find_temporaries();
    for (Part& part : parts_) pack(part);
    return rebuild();
  }

 private:
  // Returns the tensor whose memory a variable is a view of.
  const NodeHeader* root(const NodeHeader* var) const {
    while (auto* viewed = find_value(view_of_, var)) var = *viewed;
    return var;
  }

  void find_lifetimes() {
    for (size_t i = 0; i < bindings_.size(); ++i) {
      const Binding& binding = bindings_[i];
      std::vector<VarRef> used = free_vars(binding.value);
      for (const VarRef& var : used) last_use_[root(var.get())] = i;
      if (returns_arguments(binding)) escape(binding.value);
      if (!is_view(binding)) continue;
      // A local function that calls itself is not a view of itself.
      std::erase_if(used, [&](const VarRef& var) { return var.type().is<PrimType>() || same_node(var, binding.var); });
      if (used.size() == 1) {
        view_of_.emplace(binding.var.get(), used[0].get());
      } else {
        for (const VarRef& source : used) escaped_.insert(root(source.get()));
      }
    }
    escape(seq_->body);
  }
  void escape(const Expr& value) {
    for (const VarRef& var : free_vars(value)) escaped_.insert(root(var.get()));
  }
  // Returns whether the value may share its argument's memory: reshapes, moves, casts, and tuples (views of items).
  static bool is_view(const Binding& binding) {
    const std::string& op = op_name(binding.value);
    return op == ops::kReshape || op == ops::kMemoryView || op == ops::kCheckIndices || !binding.value.is<Call>() ||
           binding.cast;
  }
  // Returns whether the result may hold arguments: that of a packed function, a graph function, a loop or a branch.
  bool returns_arguments(const Binding& binding) const {
    const Call* node = binding.value.as<Call>();
    if (!node) return binding.value.is<If>();
    constexpr OpName kCalls[] = {ops::kCallPurePacked, ops::kMakeClosure, ops::kInvokeClosure, ops::kInvokePureClosure,
                                 ops::kLoop};
    if (node->callee.is<OpRef>())
      return std::ranges::any_of(kCalls, [&](OpName op) { return op_name(binding.value) == op; });
    return !as_kernel_call(binding.value, module_);
  }

  void find_temporaries() {
    for (size_t i = 0; i < bindings_.size(); ++i) {
      const Binding& binding = bindings_[i];
      if (!as_call(binding.value, ops::kBuiltinAllocTensor)) {
        bool takes_no_more = is_view(binding) || as_kernel_call(binding.value, module_);
        peak_is_known_ = peak_is_known_ && takes_no_more && !binding.value.is<If>();
        continue;
      }
      std::optional<Expr> bytes = bytes_at_entry(binding.var.type());
      if (!bytes) {
        peak_is_known_ = false;
      } else if (escaped_.contains(binding.var.get())) {
        others_ = others_ + *bytes;
      } else {
        auto [factor, number] = factor_and_number(*bytes);
        part_of(factor).temporaries.push_back({number, i, last_use_.try_emplace(binding.var.get(), i).first->second});
      }
    }
  }
  // Returns the bytes of such a tensor if they follow from the inputs' dims.
  std::optional<Expr> bytes_at_entry(const Type& type) const {
    const std::vector<Expr>* dims = known_shape(type);
    if (!dims || !tensor_dtype(type)) return std::nullopt;
    const DType dtype = *tensor_dtype(type);
    const bool is_packed = dtype.is_packed();
    Expr amount = int_imm(is_packed ? dtype.bits : dtype.bytes());  // in bits or bytes
    bool at_entry = true;
    for (const Expr& dim : *dims) {
      amount = amount * dim;
      walk(dim, [&](const Ref<Var>& var) { at_entry = at_entry && known_dims_.contains(var.get()); });
    }
    if (!at_entry) return std::nullopt;
    return facts_.simplify(ceil_div(amount, vm::kAlignment * (is_packed ? 8 : 1)) * vm::kAlignment);
  }
  Part& part_of(const Expr& factor) {
    std::vector<size_t>& alike = by_hash_[structural_hash(factor)];
    for (size_t known : alike) {
      if (structural_equal(parts_[known].factor, factor)) return parts_[known];
    }
    alike.push_back(parts_.size());
    return parts_.emplace_back(factor);
  }

  // Returns the offset of each part and then the size of all; appends the bindings of long sums.
  std::vector<Expr> offsets(std::vector<Binding>& bindings) const {
    std::vector<Expr> result = {int_imm(0)};
    for (const Part& part : parts_) {
      Expr next = facts_.simplify(result.back() + part.factor * part.size);
      if (is_long(next)) {
        VarRef var = make_var("offset", next.type(), function_.span());
        bindings.push_back({next, std::nullopt, var});
        next = var;
      }
      result.push_back(next);
    }
    return result;
  }

  FunctionRef rebuild() {
    std::vector<Binding> result;
    std::vector<Expr> offset_of = offsets(result);
    VarRef storage = make_var("arena", object_type(), function_.span());
    Expr alloc =
        call(op_ref(ops::kMemoryAllocStorage), {shape_expr({offset_of.back()})}, {}, object_type(), function_.span());
    if (!parts_.empty()) result.push_back({alloc, std::nullopt, storage});
    Expr arena_bytes = int_imm(0);
    for (size_t p = 0; p < parts_.size(); ++p) {
      arena_bytes = arena_bytes + parts_[p].factor * parts_[p].size;
      for (const Temporary& temporary : parts_[p].temporaries) {
        Binding& binding = bindings_[temporary.begin];
        const std::vector<Expr>& args = binding.value.as<Call>()->args;
        Expr offset = facts_.simplify(offset_of[p] + parts_[p].factor * temporary.offset);
        Expr view = call(op_ref(ops::kMemoryAllocTensor), {storage, shape_expr({offset}), args[0], args[1]}, {},
                         binding.var.type(), binding.value.span());
        binding = {view, std::nullopt, binding.var};
      }
    }
    std::ranges::move(bindings_, std::back_inserter(result));
    Function copy = *function_;
    copy.body = seq_expr({{false, std::move(result), {}}}, seq_->body, function_->body.span());
    if (!parts_.empty()) copy.attrs.set(attr_names::kArenaBytes, print_expr(facts_.simplify(arena_bytes)));
    if (peak_is_known_) copy.attrs.set(attr_names::kPeakBytes, print_expr(facts_.simplify(arena_bytes + others_)));
    return make_function(std::move(copy), function_.span());
  }

  const FunctionRef& function_;
  const IRModule& module_;
  const SeqExpr* seq_;
  Analyzer facts_;
  std::unordered_set<const NodeHeader*> known_dims_, escaped_;
  std::vector<Binding> bindings_ = bindings_of(function_->body);
  std::unordered_map<const NodeHeader*, size_t> last_use_;
  std::unordered_map<const NodeHeader*, const NodeHeader*> view_of_;
  std::vector<Part> parts_;
  Expr others_ = int_imm(0);  // bytes of tensors that keep separate allocations
  bool peak_is_known_ = true;
  std::unordered_map<uint64_t, std::vector<size_t>> by_hash_;  // parts by their factor
};

}  // namespace

IRModule plan_memory(IRModule module, PassContext&) {
  return map_functions(module, [&](const FunctionRef& function) { return Planner(function, module).run(); });
}

}  // namespace relaxc
