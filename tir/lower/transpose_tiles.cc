#include <bit>

#include "ir/op_names.h"
#include "support/temporarily.h"
#include "tir/analysis/conditions.h"
#include "tir/analysis/nests.h"
#include "tir/lower/loop_accesses.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"
#include "tir/target.h"

namespace relaxc {

namespace {

constexpr int kChunkBits = 128;  // inside of which every target interleaves two vectors in an instruction

// The vectors of a square tile, and the statements that compute them.
class SquareTile {
 public:
  explicit SquareTile(DType row) : row_(row) {}

  void add_row(const Expr& value) { rows_.push_back(bound("row", value)); }
  // Makes the columns the rows, in log2(lanes) steps of one shuffle for each row. Each step exchanges one bit of a
  // row's number for one bit of a lane's. First those inside of a chunk, by interleaving halves of chunks, then the
  // bits of the chunk's number, by taking even and odd chunks of both rows.
  void transpose() {
    const size_t lanes = rows_.size(), chunk = std::min<size_t>(lanes, kChunkBits / row_.bits);
    for (size_t distance = chunk / 2; distance > 0; distance /= 2) {
      exchange(distance, [&](size_t half, size_t lane) {
        size_t start = lane / chunk * chunk, within = lane % chunk;
        return start + within / 2 + half * chunk / 2 + within % 2 * lanes;
      });
    }
    for (size_t distance = chunk; distance < lanes; distance *= 2) {
      exchange(distance, [&](size_t half, size_t lane) {
        size_t to = lane / chunk * 2 + half;  // counted through the chunks of both rows
        return to * chunk + lane % chunk;
      });
    }
  }
  const std::vector<Expr>& rows() const { return rows_; }
  const std::vector<Stmt>& statements() const { return statements_; }

 private:
  // Binds the value to a variable.
  Expr bound(const char* name, const Expr& value) {
    VarRef var = make_var(name, value.type());
    statements_.push_back(make(Bind{var, value}));
    return var;
  }
  // Replaces rows that lie `distance` apart by two shuffles of both; `source(half, lane)` counts through their lanes.
  void exchange(size_t distance, const std::function<size_t(size_t half, size_t lane)>& source) {
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (row & distance) continue;
      Expr pair = tuple({rows_[row], rows_[row + distance]});
      for (size_t half : {0, 1}) {
        std::vector<Expr> numbers;
        for (size_t lane = 0; lane < rows_.size(); ++lane)
          numbers.push_back(int_imm(static_cast<int64_t>(source(half, lane)), kInt32));
        rows_[row + half * distance] = bound("tile", intrinsic(ops::kShuffle, {pair, tuple(numbers)}, row_));
      }
    }
  }

  DType row_;
  std::vector<Expr> rows_;
  std::vector<Stmt> statements_;
};

class TransposeTiles final : public Rewriter {
 public:
  TransposeTiles(const PrimFuncRef& function, const Target& target)
      : facts_(facts_of_params(function)), target_(target) {}

  Stmt stmt(const Stmt& s) override {
    const For* loop = s.as<For>();
    if (!loop) return Rewriter::stmt(s);
    if (auto tile = transposed(*loop, s.span())) return *tile;
    Temporarily facts(facts_, facts_);
    facts_.bind(loop->var, loop->min, loop->extent);
    return Rewriter::stmt(s);
  }

 private:
  // Returns whether the rows of a tile of so many lanes are registers that a network of shuffles transposes.
  bool is_square(const For& loop, DType dtype) const {
    bool is_plain = loop.kind == ForKind::kSerial || loop.kind == ForKind::kUnrolled;
    bool is_register = !dtype.is_scalable() && !dtype.is_bool() && dtype.lanes > 1 && dtype.bits >= 8 &&
                       dtype.bits < kChunkBits && dtype.lanes * dtype.bits <= target_.vector_bits &&
                       std::has_single_bit(static_cast<unsigned>(dtype.lanes));
    return is_plain && is_register && is_int(loop.min, 0) && is_int(loop.extent, dtype.lanes) &&
           dtype.lanes <= target_.num_vector_registers;
  }
  // Returns whether the lanes of a load lie apart and those of the loop's iterations are neighbours.
  bool reads_columns(const BufferLoad& load, const For& loop) const {
    const Ramp* lanes = load.indices.size() == 1 ? load.indices[0].as<Ramp>() : nullptr;
    return lanes && !load.predicate && !is_int(lanes->stride, 0) && !is_int(lanes->stride, 1) &&
           !uses_var(lanes->stride, loop.var) && !holds<BufferLoad>(load.indices[0]) &&
           coefficient(lanes->base, loop.var, facts_) == 1;
  }

  // Returns the iterations written out, with the columns that they read taken from whole rows.
  std::optional<Stmt> transposed(const For& loop, const Span& span) const {
    const BufferStore* store = loop.body.as<BufferStore>();
    if (!store || store->predicate || !is_square(loop, dtype_of(store->value))) return std::nullopt;
    // What a condition guards must not be read before it, and names must be in scope.
    bool is_guarded = holds<Let>(store->value);
    walk(store->value, [&](const Ref<Call>& call) { is_guarded = is_guarded || op_name(call) == ops::kIfThenElse; });
    if (is_guarded) return std::nullopt;
    std::vector<Ref<BufferLoad>> columns;
    for (const Ref<BufferLoad>& load : loads_of(store->value)) {
      bool is_square_too = is_square(loop, dtype_of(load)) && !same_node(load->buffer, store->buffer);
      if (is_square_too && reads_columns(*load, loop)) columns.push_back(load);
    }
    if (columns.empty()) return std::nullopt;
    std::vector<Stmt> statements;
    std::vector<Replacements> of_iteration(static_cast<size_t>(*as_int(loop.extent)));
    for (const Ref<BufferLoad>& load : columns) {
      SquareTile tile = tile_of(load, loop);
      tile.transpose();
      statements.insert(statements.end(), tile.statements().begin(), tile.statements().end());
      for (size_t i = 0; i < of_iteration.size(); ++i) of_iteration[i].emplace(load.get(), tile.rows()[i]);
    }
    for (size_t i = 0; i < of_iteration.size(); ++i) {
      Expr at = int_imm(static_cast<int64_t>(i), dtype_of(loop.var));
      statements.push_back(substitute(replace_exprs(loop.body, of_iteration[i]), {{loop.var.get(), at}}));
    }
    return seq(std::move(statements), span);
  }
  // Returns the rows of memory from which the loop reads columns: its first column's lanes, each with its neighbours.
  SquareTile tile_of(const Ref<BufferLoad>& load, const For& loop) const {
    const Ramp& lanes = *load->indices[0].as<Ramp>();
    const DType dtype = dtype_of(load), index = dtype_of(lanes.base);
    SquareTile tile(dtype);
    for (int lane = 0; lane < dtype.lanes; ++lane) {
      Expr start = substitute(lanes.base, {{loop.var.get(), loop.min}}) + lanes.stride * int_imm(lane, index);
      Expr place = ramp(facts_.simplify(start), int_imm(1, index), dtype.lanes);
      tile.add_row(make(BufferLoad{load->buffer, {place}, std::nullopt}, load.type()));
    }
    return tile;
  }

  Analyzer facts_;
  const Target& target_;
};

}  // namespace

// Reads a square tile by its rows where a loop's vectors are its columns, and transposes it in registers: a vector
// whose elements lie apart takes as many loads as it has lanes. Memory with several names stays as it is, since rows
// are read before the first column is stored.
PrimFuncRef transpose_tiles(const PrimFuncRef& function, const Target& target) {
  if (may_alias(function)) return function;
  return with_body(function, TransposeTiles(function, target).stmt(function->body));
}

}  // namespace relaxc
