#include "tir/intrin/match_intrin.h"

#include "ir/regions.h"
#include "ir/text/printer.h"
#include "tir/analysis/nests.h"
#include "tir/edit/blocks.h"
#include "tir/scalable_vectors.h"

namespace relaxc::scheduling {

namespace {

struct NoMatch {
  std::string why;
};
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> why, Args&&... args) {
  throw NoMatch{fmt::format(why, std::forward<Args>(args)...)};
}

class Matcher {
 public:
  explicit Matcher(const Analyzer& facts) : facts_(facts) {}

  // `found` is the program's, `wanted` the description's.
  void stmt(const Stmt& found, const Stmt& wanted) {
    if (const Block* a = found.as<Block>()) return block(*a, wanted);
    if (found.is<Seq>()) {
      std::vector<Stmt> a = statements_of(found), b = statements_of(wanted);
      if (!wanted.is<Seq>() || a.size() != b.size()) differ(found, wanted);
      for (size_t i = 0; i < a.size(); ++i) stmt(a[i], b[i]);
      return;
    }
    if (const For* a = found.as<For>()) {
      const For* b = wanted.as<For>();
      // A loop that runs once does not count as a loop.
      if (is_int(a->extent, 1) && !(b && is_int(b->extent, 1)))
        return stmt(substitute(a->body, {{a->var.get(), a->min}}), wanted);
      if (!b) differ(found, wanted);
      index(a->extent, b->extent, "the extent of a loop");
      define(a->var, b->var);
      return stmt(a->body, b->body);
    }
    if (const BufferStore* a = found.as<BufferStore>()) {
      const BufferStore* b = wanted.as<BufferStore>();
      if (!b || a->predicate || b->predicate) differ(found, wanted);
      access(a->buffer, a->indices, b->buffer, b->indices);
      return expr(a->value, b->value);
    }
    differ(found, wanted);
  }

  // Returns the region of the program that the description's buffer stands for.
  BufferRegion region_of(const Buffer& wanted) const {
    auto it = places_.find(wanted.get());
    if (it == places_.end()) refuse("the description does not use '{}'", wanted->name);
    const auto& [buffer, base] = it->second;
    BufferRegion result{buffer, {}};
    const std::vector<Expr>& shape = buffer_type(wanted).shape;
    size_t leading = base.size() - shape.size();
    for (size_t d = 0; d < base.size(); ++d) {
      DType dtype = dtype_of(base[d]);
      result.ranges.push_back({base[d], d < leading ? int_imm(1, dtype) : index_in_dtype(shape[d - leading], dtype)});
    }
    return result;
  }

 private:
  [[noreturn]] static void differ(const NodeRef& found, const NodeRef& wanted) {
    auto text = [](const NodeRef& node) {
      return is_stmt_kind(node.kind()) ? print_stmt(cast_handle<Stmt>(node)) : print_plain(cast_handle<Expr>(node));
    };
    refuse("found\n{}\nexpected\n{}", text(found), text(wanted));
  }
  void define(const VarRef& found, const VarRef& wanted) {
    vars_.insert_or_assign(wanted.get(), cast_to(found, dtype_of(wanted)));
    inner_.push_back(found);
  }
  void block(const Block& whole, const Stmt& wanted_stmt) {
    const Block* wanted = wanted_stmt.as<Block>();
    // Axes with a fixed value are not part of the description.
    Block found = whole;
    VarMap still;
    std::erase_if(found.iter_vars, [&](const IterVar& axis) {
      bool drops = wanted && whole.iter_vars.size() > wanted->iter_vars.size() && is_int(axis.domain.extent, 1);
      if (drops) still.emplace(axis.var.get(), axis.domain.min);
      return drops;
    });
    found.body = substitute(found.body, still);
    if (found.init) found.init = substitute(*found.init, still);
    if (!wanted || found.iter_vars.size() != wanted->iter_vars.size())
      refuse("block '{}' has {} axes, the description has {}", found.name, found.iter_vars.size(),
             wanted ? fmt::format("{}", wanted->iter_vars.size()) : "no block there");
    if (found.predicate)
      refuse(
          "block '{}' runs under the condition {}: its extents must be multiples of the "
          "intrinsic's",
          found.name, print_plain(*found.predicate));
    if (found.init.has_value() != wanted->init.has_value())
      refuse("block '{}' {}", found.name,
             found.init ? "has an init (decompose_reduction takes it out)" : "has no init, the description has one");
    for (size_t i = 0; i < found.iter_vars.size(); ++i) {
      const IterVar &a = found.iter_vars[i], &b = wanted->iter_vars[i];
      if (a.kind != b.kind) refuse("axis '{}' is of another kind", a.var->name);
      index(a.domain.extent, b.domain.extent, "the domain of an axis");
      index(a.value, b.value, "the value of an axis");
    }
    for (size_t i = 0; i < found.iter_vars.size(); ++i) define(found.iter_vars[i].var, wanted->iter_vars[i].var);
    if (found.init) stmt(*found.init, *wanted->init);
    stmt(found.body, wanted->body);
  }
  Expr mapped(const Expr& wanted) const { return substitute(wanted, vars_); }
  void index(const Expr& found, const Expr& wanted, const char* what) const {
    Expr expected = index_in_dtype(mapped(wanted), dtype_of(found));
    if (!facts_.can_prove_equal(found, expected))
      refuse("{} is {}, the description has {}", what, print_plain(found), print_plain(wanted));
  }
  void access(const Buffer& found, const std::vector<Expr>& indices, const Buffer& wanted,
              const std::vector<Expr>& wanted_indices) {
    if (buffer_type(found).dtype != buffer_type(wanted).dtype)
      refuse("buffer '{}' is {}, the description's '{}' {}", found->name, to_string(buffer_type(found).dtype),
             wanted->name, to_string(buffer_type(wanted).dtype));
    if (indices.size() < wanted_indices.size())
      refuse("buffer '{}' has fewer dims than '{}'", found->name, wanted->name);
    size_t leading = indices.size() - wanted_indices.size();
    std::vector<Expr> base;
    for (size_t d = 0; d < indices.size(); ++d) {
      Expr start = indices[d];
      if (d >= leading) start = start - index_in_dtype(mapped(wanted_indices[d - leading]), dtype_of(start));
      start = facts_.simplify(start);
      for (const VarRef& var : inner_) {
        if (uses_var(start, var))
          refuse("index {} of '{}', {}, moves differently than the description's", d, found->name,
                 print_plain(indices[d]));
      }
      base.push_back(start);
    }
    auto [it, is_new] = places_.try_emplace(wanted.get(), found, base);
    if (is_new) return;
    if (!same_node(it->second.first, found))
      refuse("'{}' stands for '{}' and '{}'", wanted->name, it->second.first->name, found->name);
    for (size_t d = 0; d < base.size(); ++d) {
      if (!facts_.can_prove_equal(it->second.second[d], base[d]))
        refuse("'{}' is accessed at different places", found->name);
    }
  }
  void expr(const Expr& found, const Expr& wanted) {
    if (found.kind() != wanted.kind() && !found.is<Var>()) differ(found, wanted);
    if (const BufferLoad* a = found.as<BufferLoad>()) {
      const BufferLoad* b = wanted.as<BufferLoad>();
      if (a->predicate || b->predicate) differ(found, wanted);
      return access(a->buffer, a->indices, b->buffer, b->indices);
    }
    if (dtype_of(found) != dtype_of(wanted) && !found.is<Var>()) differ(found, wanted);
    if (const Binary* a = found.as<Binary>()) {
      const Binary* b = wanted.as<Binary>();
      if (a->op != b->op) differ(found, wanted);
      expr(a->a, b->a);
      return expr(a->b, b->b);
    }
    if (const Cast* a = found.as<Cast>()) return expr(a->value, wanted.as<Cast>()->value);
    if (const Call* a = found.as<Call>()) {
      const Call* b = wanted.as<Call>();
      if (op_name(found) != op_name(wanted) || a->args.size() != b->args.size()) differ(found, wanted);
      for (size_t i = 0; i < a->args.size(); ++i) expr(a->args[i], b->args[i]);
      return;
    }
    if (!structural_equal(found, mapped(wanted))) differ(found, wanted);
  }

  const Analyzer& facts_;
  VarMap vars_;  // of the description
  std::vector<VarRef> inner_;
  std::unordered_map<const NodeHeader*, std::pair<Buffer, std::vector<Expr>>> places_;
};

bool are_apart(const BufferRegion& a, const BufferRegion& b, const Analyzer& facts) {
  if (!same_node(a.buffer, b.buffer)) return true;
  auto ends_before = [&](const Range& first, const Range& second) {
    return facts.can_prove(first.min + first.extent <= index_in_dtype(second.min, dtype_of(first.min)));
  };
  for (size_t d = 0; d < a.ranges.size(); ++d) {
    if (ends_before(a.ranges[d], b.ranges[d]) || ends_before(b.ranges[d], a.ranges[d])) return true;
  }
  return false;
}

}  // namespace

std::optional<IntrinMatch> match_intrin(const TreeNode& block, const TensorIntrin& intrin, std::string* why) {
  try {
    Stmt wanted = intrin.description->body;
    const Block* root = wanted.as<Block>();
    if (root && root->iter_vars.empty()) wanted = root->body;
    Stmt found = block.tree->stmt(block).as<Block>()->body;
    Matcher matcher(block.tree->facts);
    matcher.stmt(found, wanted);
    IntrinMatch result;
    Accesses accesses = find_accesses(wanted);
    std::vector<Buffer> params = buffer_params(intrin.description);
    for (const Buffer& param : params) result.regions.push_back(matcher.region_of(param));
    for (size_t i = 0; i < params.size(); ++i) {
      const BufferRegion& region = result.regions[i];
      if (find_region(accesses.reads, params[i])) result.reads.push_back(region);
      if (!find_region(accesses.writes, params[i])) continue;
      result.writes.push_back(region);
      // An implementation may write before it has read all.
      for (size_t other = 0; other < params.size(); ++other) {
        if (other != i && !are_apart(region, result.regions[other], block.tree->facts))
          refuse("'{}' and '{}' are parts of '{}' that may overlap", params[other]->name, params[i]->name,
                 region.buffer->name);
      }
    }
    return result;
  } catch (const NoMatch& failure) {
    if (why) *why = failure.why;
    return std::nullopt;
  }
}

}  // namespace relaxc::scheduling
