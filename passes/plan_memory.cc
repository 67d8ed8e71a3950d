// Expects: explicit allocations (destination_passing). Guarantees: temporaries whose size follows from the inputs' dims
// live in one storage per run, allocated first: relax.memory.alloc_storage, then relax.memory.alloc_tensor(storage,
// offset, shape, dtype) in place of each relax.builtin.alloc_tensor. Results, tensors of branches and tensors whose
// size is known only later keep separate allocations.
//
// Lifetimes run from the allocation to the last use of the tensor or of a view of it. Tensors that do not live at the
// same time share a slot of the arena when their sizes can be compared for all values of the dims. (This is a linear
// scan, as in register allocators.) Offsets are sums of slot sizes; a long sum is a variable to which the next offset
// adds. The function's attribute "arena_bytes" is the formula of the arena's size.
#include <algorithm>
#include <array>
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

// Numbers the sizes and remembers which of two is smaller: a network has many tensors and few sizes, and a proof about
// two symbolic ones takes long. Most claims are false for one of the samples, and need no proof.
class Sizes {
 public:
  explicit Sizes(const Analyzer& facts) : facts_(facts) {}
  size_t number(const Expr& bytes) {
    std::vector<size_t>& alike = by_hash_[structural_hash(bytes)];
    for (size_t known : alike) {
      if (structural_equal(sizes_[known], bytes)) return known;
    }
    alike.push_back(sizes_.size());
    sizes_.push_back(bytes);
    samples_.push_back(sample(bytes));
    return sizes_.size() - 1;
  }
  const Expr& bytes(size_t size) const { return sizes_[size]; }
  bool at_most(size_t a, size_t b) {
    return a == b || (!any_sample(a, b, std::greater<>()) && proven(at_most_, sizes_[a] <= sizes_[b], {a, b}));
  }
  bool less(size_t a, size_t b) {
    return a != b && !any_sample(a, b, std::greater_equal<>()) && proven(less_, sizes_[a] < sizes_[b], {a, b});
  }

 private:
  using Pair = std::pair<size_t, size_t>;
  // A size where all dims are small, where all are large, and where every other dim is.
  static constexpr size_t kSamples = 4;
  using Samples = std::array<std::optional<int64_t>, kSamples>;
  Samples sample(const Expr& bytes) {
    Samples result;
    std::vector<VarRef> dims = free_vars(bytes);
    for (const VarRef& dim : dims) order_.try_emplace(dim.get(), std::ssize(order_));
    for (size_t k = 0; k < kSamples; ++k) {
      VarMap values;
      for (const VarRef& dim : dims) {
        int64_t i = order_.at(dim.get());
        bool is_large = (i % 2 == 0 ? k & 1 : k & 2) != 0;
        values.emplace(dim.get(), int_imm(is_large ? 1000 + i : 1));
      }
      result[k] = as_int(simplify(substitute(bytes, values)));
    }
    return result;
  }
  template <class Compare>
  bool any_sample(size_t a, size_t b, Compare compare) const {
    return !std::ranges::equal(samples_[a], samples_[b], [&](auto x, auto y) { return !x || !y || !compare(*x, *y); });
  }
  bool proven(std::map<Pair, bool>& known, const Expr& claim, Pair pair) {
    auto [it, is_new] = known.try_emplace(pair);
    if (is_new) it->second = facts_.can_prove(claim);
    return it->second;
  }
  const Analyzer& facts_;
  std::vector<Expr> sizes_;
  std::vector<Samples> samples_;
  std::unordered_map<const NodeHeader*, int64_t> order_;  // of the dims, as the sizes name them
  std::unordered_map<uint64_t, std::vector<size_t>> by_hash_;
  std::map<Pair, bool> at_most_, less_;
};

struct Temporary {
  size_t size;        // its number
  size_t begin, end;  // binding positions, inclusive
  size_t slot = 0;
};

struct Slot {
  size_t size;
  size_t free_after;  // position of the last use of its tensor
};

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
    if (temporaries_.empty()) return function_;
    assign_slots();
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
    return op == ops::kReshape || op == ops::kCheckIndices || !binding.value.is<Call>() || binding.cast;
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
      if (!as_call(binding.value, ops::kBuiltinAllocTensor) || escaped_.contains(binding.var.get())) continue;
      if (!known_shape(binding.var.type()) || !tensor_dtype(binding.var.type())) continue;
      DType dtype = *tensor_dtype(binding.var.type());
      bool is_packed = dtype.is_packed();
      Expr amount = int_imm(is_packed ? dtype.bits : dtype.bytes());  // in bits or bytes
      bool at_entry = true;
      for (const Expr& dim : *known_shape(binding.var.type())) {
        amount = amount * dim;
        walk(dim, [&](const Ref<Var>& var) { at_entry = at_entry && known_dims_.contains(var.get()); });
      }
      if (!at_entry) continue;
      size_t size =
          sizes_.number(facts_.simplify(ceil_div(amount, vm::kAlignment * (is_packed ? 8 : 1)) * vm::kAlignment));
      temporaries_.push_back({size, i, last_use_.try_emplace(binding.var.get(), i).first->second});
    }
  }

  void assign_slots() {
    for (Temporary& temporary : temporaries_) {
      // Takes the smallest free slot that is large enough, else the largest free one, grown, else a new one.
      std::optional<size_t> fits, grows;
      for (size_t s = 0; s < slots_.size(); ++s) {
        if (slots_[s].free_after >= temporary.begin) continue;
        if (sizes_.at_most(temporary.size, slots_[s].size)) {
          if (!fits || sizes_.less(slots_[s].size, slots_[*fits].size)) fits = s;
        } else if (sizes_.at_most(slots_[s].size, temporary.size)) {
          if (!grows || sizes_.less(slots_[*grows].size, slots_[s].size)) grows = s;
        }
      }
      if (!fits && !grows) slots_.push_back({temporary.size, 0});
      temporary.slot = fits.value_or(grows.value_or(slots_.size() - 1));
      if (!fits) slots_[temporary.slot].size = temporary.size;
      slots_[temporary.slot].free_after = temporary.end;
    }
  }

  // Returns the offset of each slot and then the size of all; appends the bindings of long sums.
  std::vector<Expr> offsets(std::vector<Binding>& bindings) const {
    std::vector<Expr> result = {int_imm(0)};
    for (const Slot& slot : slots_) {
      Expr next = facts_.simplify(result.back() + sizes_.bytes(slot.size));
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
    result.push_back({alloc, std::nullopt, storage});
    Expr arena_bytes = int_imm(0);
    for (const Slot& slot : slots_) arena_bytes = arena_bytes + sizes_.bytes(slot.size);
    for (const Temporary& temporary : temporaries_) {
      Binding& binding = bindings_[temporary.begin];
      const std::vector<Expr>& args = binding.value.as<Call>()->args;
      Expr view =
          call(op_ref(ops::kMemoryAllocTensor), {storage, shape_expr({offset_of[temporary.slot]}), args[0], args[1]},
               {}, binding.var.type(), binding.value.span());
      binding = {view, std::nullopt, binding.var};
    }
    std::ranges::move(bindings_, std::back_inserter(result));
    Function copy = *function_;
    copy.body = seq_expr({{false, std::move(result), {}}}, seq_->body, function_->body.span());
    copy.attrs.set(attr_names::kArenaBytes, print_expr(facts_.simplify(arena_bytes)));
    return make_function(std::move(copy), function_.span());
  }

  const FunctionRef& function_;
  const IRModule& module_;
  const SeqExpr* seq_;
  Analyzer facts_;
  Sizes sizes_{facts_};
  std::unordered_set<const NodeHeader*> known_dims_, escaped_;
  std::vector<Binding> bindings_ = bindings_of(function_->body);
  std::unordered_map<const NodeHeader*, size_t> last_use_;
  std::unordered_map<const NodeHeader*, const NodeHeader*> view_of_;
  std::vector<Temporary> temporaries_;
  std::vector<Slot> slots_;
};

}  // namespace

IRModule plan_memory(IRModule module, PassContext&) {
  return map_functions(module, [&](const FunctionRef& function) { return Planner(function, module).run(); });
}

}  // namespace relaxc
