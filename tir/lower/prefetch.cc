// Software prefetching, which annotations of loops request. Cache line by cache line, it is spread over the iterations
// of the inner loops. A burst before the next iteration would gain half as much, since a core has few line fill
// buffers.
#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "ir/op_names.h"
#include "support/diagnostic.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/bounds.h"
#include "tir/analysis/conditions.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"
#include "tir/target.h"

namespace relaxc {

namespace {

constexpr int64_t kGuessedIterations = 8;  // for a loop of unknown extent
constexpr int64_t kNoBound = int64_t{1} << 31;
constexpr int64_t kIntoFirstLevel = 3, kIntoSecondLevel = 2;  // locality of T.prefetch for the L1 and the L2 cache
constexpr int64_t kMostUnrolled = 64;                         // more prefetches than this become a loop

// A region of constant extents, seen as cache lines.
struct Lines {
  Buffer buffer;
  std::vector<Expr> start;
  std::vector<int64_t> extents;
  int64_t per_line;  // elements
  bool is_stored = false;
  size_t first_of_row = extents.size() - 1;  // the dims from here on are one row, each but the first read as a whole

  int64_t per_row() const {
    const int64_t elements = product(first_of_row, extents.size());
    return (elements + per_line - 1) / per_line;
  }
  int64_t count() const { return product(0, first_of_row) * per_row(); }
  // Returns the prefetch of the n-th line. Past the last line, it fetches the memory behind the region.
  Stmt prefetch(const Expr& n, int64_t locality) const {
    std::vector<Expr> indices(extents.size(), n);
    Expr row = floor_div(n, per_row()), place = floor_mod(n, per_row()) * per_line;
    for (size_t d = extents.size() - 1; d > first_of_row; place = floor_div(place, extents[d--]))
      indices[d] = start[d] + floor_mod(place, extents[d]);
    indices[first_of_row] = start[first_of_row] + place;
    size_t outermost = 0;
    while (outermost + 1 < extents.size() && extents[outermost] == 1) ++outermost;
    for (size_t d = first_of_row; d-- > 0; row = floor_div(row, extents[d])) {
      if (d < outermost) row = int_imm(0);
      indices[d] = start[d] + (d <= outermost ? row : floor_mod(row, extents[d]));
    }
    constexpr int kData = 1;
    auto flag = [](int64_t value) { return int_imm(value, kInt32); };
    Expr address = intrinsic(ops::kAddressOf, {load(buffer, indices)}, DType::handle());
    return evaluate(
        intrinsic(ops::kPrefetch, {address, flag(is_stored ? 1 : 0), flag(locality), flag(kData)}, DType::void_()));
  }
  // Makes rows of several dims where the last dim is shorter than a line.
  void join_short_rows() {
    const std::vector<Expr>& shape = buffer_type(buffer).shape;
    while (first_of_row > 0 && product(first_of_row, extents.size()) < per_line && is_int(start[first_of_row], 0) &&
           is_int(shape[first_of_row], extents[first_of_row]))
      --first_of_row;
  }

 private:
  int64_t product(size_t begin, size_t end) const {
    return std::accumulate(extents.begin() + static_cast<long>(begin), extents.begin() + static_cast<long>(end),
                           int64_t{1}, std::multiplies<>());
  }
};

class Prefetcher final : public Rewriter {
 public:
  Prefetcher(Analyzer facts, int64_t line_bytes) : facts_(std::move(facts)), line_bytes_(line_bytes) {}

  Stmt stmt(const Stmt& s) override {
    const For* loop = s.as<For>();
    if (!loop) return Rewriter::stmt(s);
    facts_.bind(loop->var, loop->min, loop->extent);
    const AttrValue* next = loop->annotations.find(annotation<"prefetch">());
    const AttrValue* current = loop->annotations.find(annotation<"prefetch_current">());
    const AttrValue* ahead = loop->annotations.find(annotation<"prefetch_ahead">());
    for (const AttrValue& name : read_list(next, s)) plan_next(*loop, name);
    for (const AttrValue& name : read_list(current, s)) {
      // The prefetches are bounded, since the cache lines behind the region may belong to another thread.
      if (auto lines = lines_of(*loop, name, true)) spread(*loop, *lines, kIntoFirstLevel, true);
    }
    if (ahead) plan_ahead(*loop, read_list(ahead, s), s);
    around_.push_back(loop);
    Stmt result = Rewriter::stmt(s);
    around_.pop_back();
    const std::vector<Stmt>* planned = find_value(planned_, loop->var.get());
    if (!next && !current && !ahead && !planned) return result;
    return edited<For>(result, [&](For& copy) {
      copy.annotations = copy.annotations.without(annotation<"prefetch">())
                             .without(annotation<"prefetch_current">())
                             .without(annotation<"prefetch_ahead">());
      if (planned) copy.body = followed_by(*planned, copy.body, s.span());
    });
  }

 private:
  static AttrList read_list(const AttrValue* value, const Stmt& s) {
    if (!value) return {};
    if (const AttrList* list = value->as<AttrList>()) return *list;
    fail_unsupported(s.span(), "a prefetch annotation is a list: [\"B\"], or [\"B\", 64] for rows ahead");
  }

  // Returns the region of an element, or of a vector, which may run over the last dim into the next rows; else nothing.
  static std::vector<Range> elements_of(const Buffer& buffer, const std::vector<Expr>& indices) {
    std::vector<Range> result;
    for (const Expr& index : indices) {
      const Ramp* ramp = index.as<Ramp>();
      if (!ramp && dtype_of(index).lanes != 1) return {};
      const Expr& first = ramp ? ramp->base : index;
      result.push_back({first, int_imm(ramp ? ramp->lanes : 1, dtype_of(first).element())});
    }
    auto dim = as_int(buffer_type(buffer).shape.back()), lanes = as_int(result.back().extent);
    if (result.size() > 1 && dim && lanes && *dim > 0 && *lanes > *dim) {
      result.back().extent = int_imm(*dim, dtype_of(result.back().extent));
      Range& rows = result[result.size() - 2];
      rows.extent = rows.extent + (*lanes / *dim - 1);
    }
    return result;
  }

  // Returns the region of that buffer that one iteration of the loop reads, or that it reads and stores.
  std::optional<Lines> lines_of(const For& loop, const AttrValue& given_name, bool stores = false) {
    const std::string* name = given_name.as<std::string>();
    if (!name) return std::nullopt;
    std::optional<Buffer> buffer;
    std::vector<Range> region;
    RunningVars running;
    bool is_stored = false, is_known = true;
    auto visit = [&](const Buffer& accessed, const std::vector<Expr>& indices, bool store) {
      if (accessed->name != *name || (buffer && !same_node(*buffer, accessed))) return;
      const std::vector<Expr>& shape = buffer_type(accessed).shape;
      std::vector<Range> touched = indices.empty() ? std::vector<Range>() : elements_of(accessed, indices);
      is_known = is_known && !touched.empty();
      if (!is_known) return;
      for (size_t d = 0; d < shape.size(); ++d) {
        touched[d] = range_over(touched[d], shape[d], running, facts_);
        if (buffer) touched[d] = hull(region[d], touched[d], shape[d], facts_);
      }
      region = std::move(touched);
      buffer = accessed;
      is_stored = is_stored || store;
    };
    walk(
        loop.body,
        [&](const For& inner) {
          running.emplace(inner.var.get(), Range{inner.min, inner.extent});
          facts_.bind(inner.var, inner.min, inner.extent);
        },
        [&](const BufferLoad& load) { visit(load.buffer, load.indices, false); },
        [&](const BufferStore& store) {
          if (stores) visit(store.buffer, store.indices, true);
        });
    if (!buffer || !is_known) return std::nullopt;
    const BufferType& type = buffer_type(*buffer);
    std::vector<Expr> start;
    std::vector<int64_t> extents;
    for (const Range& range : region) {
      int64_t extent = constant_above(range.extent, facts_);
      if (extent < 1 || extent > kNoBound) return std::nullopt;
      start.push_back(cast_to(range.min, kInt64));
      extents.push_back(extent);
    }
    Lines lines{*buffer, std::move(start), std::move(extents), std::max<int64_t>(1, line_bytes_ / type.dtype.bytes()),
                is_stored};
    lines.join_short_rows();
    return is_known_before(loop.body, lines) ? std::optional(lines) : std::nullopt;
  }

  // Returns whether the address can be computed before the body runs: it does not read memory, which a condition may
  // guard, and the buffer and all variables are defined outside.
  static bool is_known_before(const Stmt& body, const Lines& lines) {
    std::unordered_set<const NodeHeader*> inside;
    walk(
        body, [&](const AllocBuffer& node) { inside.insert(node.buffer.get()); },
        [&](const Bind& node) { inside.insert(node.var.get()); },
        [&](const For& node) { inside.insert(node.var.get()); });
    return !inside.contains(lines.buffer.get()) && std::ranges::none_of(lines.start, [&](const Expr& start) {
      return uses_var(start, inside) || holds<BufferLoad>(start);
    });
  }

  static bool prefetches_next(const For& loop, const AttrValue& name) {
    const AttrValue* value = loop.annotations.find(annotation<"prefetch">());
    const AttrList* names = value ? value->as<AttrList>() : nullptr;
    return names && std::find(names->begin(), names->end(), name) != names->end();
  }

  // The last iteration of the loop fetches what its first iteration reads after the next step of the outer loop: the
  // nearest one that prefetches the same buffer. Returns the start of that region. Returns nullopt without such an
  // outer loop, and where a loop between the two moves the region.
  std::optional<std::vector<Expr>> first_of_outer(const For& loop, const AttrValue& name,
                                                  const std::vector<Expr>& starts) {
    size_t outer = around_.size();
    while (outer > 0 && !prefetches_next(*around_[outer - 1], name)) --outer;
    if (outer == 0) return std::nullopt;
    const VarRef& around = around_[outer - 1]->var;
    std::unordered_set<const NodeHeader*> between;
    for (size_t i = outer; i < around_.size(); ++i) between.insert(around_[i]->var.get());
    return all_or_none(starts, [&](const Expr& start) -> std::optional<Expr> {
      if (uses_var(start, between)) return std::nullopt;
      return facts_.simplify(stepped(substitute(start, {{loop.var.get(), loop.min}}), around));
    });
  }

  void plan_next(const For& loop, const AttrValue& name) {
    auto lines = lines_of(loop, name);
    bool is_inside = false;
    walk(loop.body, [&](const For& inner) { is_inside = is_inside || prefetches_next(inner, name); });
    if (!lines || is_inside) return;
    auto first = first_of_outer(loop, name, lines->start);
    std::optional<Lines> next = first ? next_or_first(loop, *lines, *first) : next_only(loop, *lines);
    if (next) spread(loop, *next, kIntoSecondLevel);
  }
  Expr in_next_iteration(const For& loop, const Expr& e) const { return facts_.simplify(stepped(e, loop.var)); }
  // Returns the region that only the next iteration reads, the end of a sliding window; nullopt when it does not move.
  std::optional<Lines> next_only(const For& loop, Lines lines) const {
    // The distance by which each dim moves; absent where it is not a constant, as for digits of a fused loop.
    auto steps = map_each(lines.start, [&](const Expr& start) { return coefficient(start, loop.var, facts_); });
    auto moving = std::ranges::count_if(steps, [](const auto& step) { return step != 0; });
    if (moving == 0) return std::nullopt;
    for (size_t d = 0; d < steps.size(); ++d) {
      bool slides = moving == 1 && steps[d].value_or(0) > 0 && *steps[d] < lines.extents[d];
      lines.start[d] = slides ? lines.start[d] + lines.extents[d] : in_next_iteration(loop, lines.start[d]);
      if (slides) lines.extents[d] = *steps[d];
    }
    return lines;
  }
  // Returns the region that the next iteration reads; in the last iteration, the region at `first`.
  Lines next_or_first(const For& loop, Lines lines, const std::vector<Expr>& first) const {
    Expr is_last = loop.var + 1 >= loop.min + loop.extent;
    for (size_t d = 0; d < first.size(); ++d)
      lines.start[d] = select(is_last, first[d], in_next_iteration(loop, lines.start[d]));
    return lines;
  }

  void plan_ahead(const For& loop, const AttrList& request, const Stmt& s) {
    if (request.empty() || request.size() % 2 != 0) fail_ahead(s);
    for (size_t i = 0; i < request.size(); i += 2) {
      const int64_t* rows = request[i + 1].as<int64_t>();
      if (!rows || !request[i].as<std::string>()) fail_ahead(s);
      if (auto lines = lines_of(loop, request[i])) emit_ahead(loop, *lines, *rows);
    }
  }
  [[noreturn]] static void fail_ahead(const Stmt& s) {
    fail_unsupported(s.span(), "prefetch_ahead is a buffer's name and a number of rows, or several such pairs");
  }
  void emit_ahead(const For& loop, Lines lines, int64_t rows) {
    for (Expr& start : lines.start) {
      if (coefficient(start, loop.var, facts_).value_or(1) == 0) continue;
      start = start + rows;
      return emit(loop, lines, int_imm(0), lines.count(), kIntoFirstLevel);
    }
  }

  int64_t iterations(const For& loop) const {
    int64_t most = constant_above(loop.extent, facts_);
    return most < kNoBound ? std::max<int64_t>(most, 1) : kGuessedIterations;
  }
  // Returns the nested loops with the most iterations, outermost first, without unrolled and vectorized ones.
  std::vector<const For*> busiest(const Stmt& body) const {
    if (const For* loop = body.as<For>()) {
      if (loop->kind == ForKind::kUnrolled || loop->kind == ForKind::kVectorized) return {};
      std::vector<const For*> result = busiest(loop->body);
      result.insert(result.begin(), loop);
      return result;
    }
    std::vector<const For*> best;
    int64_t most = 0;
    visit_children(body, [&](const NodeRef& child, Slot) {
      if (!is_stmt_kind(child.kind())) return;
      std::vector<const For*> loops = busiest(cast_handle<Stmt>(child));
      int64_t count = 1;
      for (const For* loop : loops) count *= std::min<int64_t>(iterations(*loop), 1 << 20);
      if (!loops.empty() && count > most) {
        most = count;
        best = std::move(loops);
      }
    });
    return best;
  }

  // Spreads the prefetches over the iterations of the inner loops, using no more loops than needed, on both sides of a
  // branch. If there are more iterations than lines, prefetches continue behind the last line, which costs less than a
  // bound, unless they are `bounded`.
  void spread(const For& outer, const Lines& lines, int64_t locality, bool bounded = false) {
    const IfThenElse* branch = outer.body.as<IfThenElse>();
    bool has_sides = branch && branch->else_body && !busiest(*branch->else_body).empty();
    if (has_sides) spread_over(busiest(*branch->else_body), outer, lines, locality, bounded);
    spread_over(busiest(has_sides ? branch->then_body : outer.body), outer, lines, locality, bounded);
  }
  void spread_over(const std::vector<const For*>& loops, const For& outer, const Lines& lines, int64_t locality,
                   bool bounded) {
    const For* at = &outer;
    Expr counter = int_imm(0);
    int64_t total = 1;
    for (const For* loop : loops) {
      if (total >= lines.count()) break;
      at = loop;
      total *= iterations(*loop);
      Expr done = cast_to(loop->var, kInt64) - cast_to(loop->min, kInt64);
      // Iterations beyond the guessed number fetch the last lines again, which are in the cache already.
      if (constant_above(loop->extent, facts_) >= kNoBound) done = min(done, int_imm(kGuessedIterations));
      counter = counter * cast_to(loop->extent, kInt64) + done;
    }
    int64_t each = (lines.count() + total - 1) / total;
    Expr first = counter * each;
    emit(*at, lines, bounded ? min(first, int_imm(lines.count() - each)) : first, each, locality);
  }

  // Emits the prefetches of lines [first, first + count) at the beginning of the loop's body.
  void emit(const For& loop, const Lines& lines, const Expr& first, int64_t count, int64_t locality) {
    std::vector<Stmt>& into = planned_[loop.var.get()];
    if (count > kMostUnrolled) {
      VarRef line = make_dim("line");
      into.push_back(relaxc::loop(line, int_imm(count), lines.prefetch(first + line, locality)));
      return;
    }
    for (int64_t n = 0; n < count; ++n) into.push_back(simplify(lines.prefetch(first + n, locality), facts_));
  }

  Analyzer facts_;
  int64_t line_bytes_;
  std::vector<const For*> around_;                                    // outermost first
  std::unordered_map<const NodeHeader*, std::vector<Stmt>> planned_;  // for the body's start, by the loop's variable
};

}  // namespace

// Inserts T.prefetch statements where loops request them. {"prefetch": ["B"]} fetches the elements of B that only the
// next iteration reads, spread over the current one. {"prefetch_current": ["C"]} fetches the elements of C that the
// iteration itself stores or reads, spread over the inner loops. {"prefetch_ahead": ["B", 64]} fetches the cache lines
// 64 rows behind those of B that the iteration reads; there may be several such pairs.
PrimFuncRef prefetch(const PrimFuncRef& function, const Target& target) {
  return with_body(function, Prefetcher(facts_of_params(function), target.l1.line).stmt(function->body));
}

}  // namespace relaxc
