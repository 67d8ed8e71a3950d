// Distances between accesses against those that are found by going through all iterations.
#include "tir/analysis/dependence.h"

#include <functional>
#include <map>
#include <random>
#include <set>

#include "ir/text/printer.h"
#include "ir/visit.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

using Values = std::map<const NodeHeader*, int64_t>;

int64_t value_of(const Expr& e, const Values& values) {
  VarMap numbers;
  for (const VarRef& var : free_vars(e)) numbers.emplace(var.get(), int_imm(values.at(var.get()), dtype_of(var)));
  return as_int(simplify(substitute(e, numbers))).value();
}

// Draws accesses in three loops, of which inner ranges may depend on outer variables.
class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}

  int64_t number(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random_); }
  std::vector<LoopRange> loops() {
    std::vector<LoopRange> result;
    for (const char* name : {"i", "j", "k"}) {
      Expr min = int_imm(number(0, 2)), extent = int_imm(number(1, 4));
      if (!result.empty() && number(0, 3) == 0) min = min + result.back().var;
      if (!result.empty() && number(0, 3) == 0) extent = result.back().var + number(0, 2);
      result.push_back({make_dim(name), {min, extent}});
    }
    return result;
  }
  Expr index(const std::vector<LoopRange>& loops) {
    Expr result = int_imm(number(-4, 4));
    for (const LoopRange& loop : loops) result = result + loop.var * number(-2, 4);
    if (number(0, 5) == 0) result = floor_div(result, int_imm(number(2, 4)));
    if (number(0, 5) == 0) result = floor_mod(result, int_imm(number(2, 6)));
    return result;
  }
  LoopAccess access(const std::vector<LoopRange>& loops) {
    LoopAccess result{{}, loops};
    for (int d = 0; d < 2; ++d) result.box.push_back({index(loops), int_imm(number(0, 2) == 0 ? number(1, 5) : 1)});
    return result;
  }

 private:
  std::mt19937 random_;
};

void for_each_iteration(const std::vector<LoopRange>& loops, Values values,
                        const std::function<void(const Values&)>& fn, size_t at = 0) {
  if (at == loops.size()) return fn(values);
  const int64_t first = value_of(loops[at].range.min, values), count = value_of(loops[at].range.extent, values);
  for (int64_t i = first; i < first + count; ++i) {
    values[loops[at].var.get()] = i;
    for_each_iteration(loops, values, fn, at + 1);
  }
}

bool share_elements(const LoopAccess& a, const Values& at, const LoopAccess& b, const Values& at_other) {
  for (size_t d = 0; d < a.box.size(); ++d) {
    const int64_t first = value_of(a.box[d].min, at), other = value_of(b.box[d].min, at_other);
    if (first + value_of(a.box[d].extent, at) <= other || other + value_of(b.box[d].extent, at_other) <= first)
      return false;
  }
  return true;
}

}  // namespace

TEST_CASE("distances hold all that iterations have", "[tir]") {
  int known = 0, never = 0, certain = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    Draw draw(seed);
    const std::vector<LoopRange> loops = draw.loops();
    const LoopAccess store = draw.access(loops), other = draw.number(0, 3) == 0 ? store : draw.access(loops);
    Analyzer facts;
    for (const LoopRange& loop : loops) facts.bind(loop.var, loop.range.min, loop.range.extent);
    auto text = [](const LoopAccess& access) {
      std::string result;
      for (const Range& range : access.box)
        result += print_expr(range.min) + " + [0, " + print_expr(range.extent) + "); ";
      return result;
    };
    std::string ranges;
    for (const LoopRange& loop : loops)
      ranges += print_expr(loop.range.min) + " + " + print_expr(loop.range.extent) + "; ";
    INFO("seed " << seed << "\n" << ranges << "\n" << text(store) << "\n" << text(other));
    for (size_t outer = 0; outer < loops.size(); ++outer) {
      const std::vector<LoopRange> moving(loops.begin() + static_cast<ptrdiff_t>(outer), loops.end());
      std::map<size_t, std::set<int64_t>> found;  // by loop
      bool runs = false;
      const std::vector<LoopRange> fixed(loops.begin(), loops.begin() + static_cast<ptrdiff_t>(outer));
      for_each_iteration(fixed, {}, [&](const Values& around) {
        for_each_iteration(moving, around, [&](const Values& at) {
          runs = true;
          for_each_iteration(moving, around, [&](const Values& later) {
            if (!share_elements(store, at, other, later)) return;
            for (size_t l = outer; l < loops.size(); ++l)
              found[l].insert(later.at(loops[l].var.get()) - at.at(loops[l].var.get()));
          });
        });
      });
      for (size_t l = outer; l < loops.size(); ++l) {
        INFO("over " << loops[l].var->name << " in " << loops[outer].var->name);
        auto said = distances({store.box, moving}, {other.box, moving}, loops[l].var, facts);
        const std::set<int64_t>& all = found[l];
        if (!said) CHECK(all.empty());
        never += !said;
        if (runs && said && said->is_certain) CHECK(all.contains(said->range.min));
        if (!said || all.empty()) continue;
        CHECK(said->range.min <= *all.begin());
        CHECK(said->range.max >= *all.rbegin());
        known += said->is_only_zero();
        certain += said->is_certain;
      }
    }
  }
  CHECK(known > 50);
  CHECK(never > 50);
  CHECK(certain > 20);
}

}  // namespace relaxc::test
