// The schedule of products of few rows with packed numbers of few bits, by digits of the activations
// (passes/digit_products.h). Threads share tiles of columns, whose numbers are one stream of memory:
//
//   for row, chunk: digits of the activations         before, for all tiles
//   for tile in parallel:
//     for chunk:                                       prefetches the numbers of later chunks
//       for row pair, group of the depth, vector:      numbers in registers: an AND, a shift
//         sums[row, digit, vector] += dot product      int32, in registers
//       y[row, vector] += step * scale * sums          float32, in registers for one or two rows
#include <algorithm>

#include "support/checked_math.h"
#include "tir/analysis/annotations.h"
#include "tir/rules/builtin_rules.h"
#include "tir/rules/cost_model.h"
#include "tir/rules/lanes.h"

namespace relaxc {

namespace {

struct DigitProduct {
  Stage product;
  Ref<Block> sums;
  int64_t bytes_of_chunk;  // of the numbers, in a tile
  int64_t rows_of_chunk;
  int64_t num_rows, digits, vectors;
  std::string instruction;
};
struct DigitPlan {
  int64_t rows, ahead;
};

const BufferLoad& numbers_of(const Block& sums) { return *operands_of(sums)[1]; }

std::variant<DigitProduct, std::string> find_digit_product(const PrimFuncRef& program, const Target& target,
                                                           Decisions&) {
  const std::string kOtherForm = "it is not a product by digits of activations";
  auto stage = find_stage(program, "matmul");
  if (!stage) return kOtherForm;
  auto sums = std::ranges::find_if(stage->prologue, [](const Ref<Block>& block) {
    return block->annotations.has(annotation<"digit_sums">());
  });
  if (sums == stage->prologue.end()) return kOtherForm;
  const std::vector<Ref<BufferLoad>> operands = operands_of(**sums);
  const DotForm* form = find_dot_form(buffer_type(operands[0]->buffer).dtype, buffer_type(operands[1]->buffer).dtype,
                                      kInt32, target);
  const std::vector<IterVar>& axes = (*sums)->iter_vars;
  const auto rows = as_int(axes[0].domain.extent), digits = as_int(axes[2].domain.extent),
             vectors = as_int(axes[4].domain.extent), lanes = as_int(axes[5].domain.extent),
             chunk = as_int(axes[6].domain.extent);
  if (!form || !rows || !digits || !vectors || lanes != form->lanes || !chunk)
    return "the target has no dot product of these lanes";
  return DigitProduct{*stage, *sums, 0, 0, *rows, *digits, *vectors, form->name};
}

DigitPlan choose_digit_product(const DigitProduct& found, const Target& target, Decisions& decisions) {
  const int64_t of_row = found.digits * found.vectors;
  const int64_t fit = std::max<int64_t>(1, (target.num_vector_registers - cost_model::kSpareOfMany) / of_row);
  const int64_t rows = std::min(found.num_rows, fit);
  DigitPlan plan{};
  plan.rows = decisions.number("rows", numbers_between(1, std::max<int64_t>(rows, 1)), rows);
  return plan;
}

class DigitSchedule {
 public:
  DigitSchedule(Schedule& sch, const DigitProduct& found, const DigitPlan& plan)
      : sch_(sch), found_(found), plan_(plan), product_(sch.apply(GetBlock{"matmul"})) {}

  void run() {
    const BlockRV sums = producer_with_sums();
    const std::optional<BlockRV> unpacking = unpacking_of(sums);
    const Loops loops = loops_of_axes(sch_, product_);  // rows, tiles, vectors, lanes, chunks
    const LoopRV &row = loops[0], &tile = loops[1], &vector = loops[2], &lane = loops[3], &chunk = loops[4];
    sch_.apply(Reorder{{tile, chunk, row, vector, lane}});
    const BlockRV result = sch_.apply(CacheWrite{product_, 0, "local"});
    sch_.apply(ReverseComputeAt{result, tile, true});
    const Loops stored = loops_inside(sch_, result, 1);
    unroll(sch_, {row, stored[0]});
    keep_in_registers(sch_, {vector, stored[stored.size() - 2]}, {lane, stored.back()});
    sum_digits(sums, unpacking, chunk);
    sch_.apply(DecomposeReduction{product_, chunk});
    sch_.apply(Annotate{chunk, annotation<"prefetch_ahead">(), prefetches(words_of(unpacking, sums))});
    sch_.apply(Parallel{tile});
  }

 private:
  Ref<Block> block_of(const BlockRV& block) const { return cast<Block>(sch_.get(block)); }
  BlockRV producer_with_sums() {
    for (const BlockRV& block : sch_.apply(GetProducers{product_})) {
      if (block_of(block)->annotations.has(annotation<"digit_sums">())) return block;
    }
    RELAXC_CHECK(false, "expected a block of sums of digits before the product");
  }
  std::optional<BlockRV> unpacking_of(const BlockRV& sums) {
    const Buffer numbers = numbers_of(*block_of(sums)).buffer;
    for (const BlockRV& block : sch_.apply(GetProducers{sums})) {
      if (same_node(block_of(block)->writes[0].buffer, numbers)) return block;
    }
    return std::nullopt;
  }
  Buffer words_of(const std::optional<BlockRV>& unpacking, const BlockRV& sums) const {
    return unpacking ? operands_of(*block_of(*unpacking))[0]->buffer : numbers_of(*block_of(sums)).buffer;
  }
  // Returns the buffers of which the iteration of a chunk prefetches what later ones read, and how many rows ahead.
  AttrList prefetches(const Buffer& words) const {
    AttrList result = {words->name, rows_ahead(words, 1)};
    const int64_t chunks = *as_int(axes_of(*found_.product.block, IterKind::kReduce)[0].domain.extent);
    const int64_t rows_of_chunk = std::max<int64_t>(1, rows_of(words) / std::max<int64_t>(chunks, 1));
    for (const Ref<BufferLoad>& load : operands_of(*found_.product.block)) {
      const bool has_columns = load->indices.size() == 4 && rows_of(load->buffer) > 1;
      if (has_columns) result.insert(result.end(), {load->buffer->name, rows_ahead(words, rows_of_chunk)});
    }
    return result;
  }
  static int64_t rows_of(const Buffer& tiles) { return as_int(buffer_type(tiles).shape[1]).value_or(1); }
  // Returns the rows of words that lie between a prefetch and its use, in units of `rows_of_chunk`.
  int64_t rows_ahead(const Buffer& words, int64_t rows_of_chunk) const {
    int64_t bytes = rows_of_chunk;
    for (const Expr& dim : std::span(buffer_type(words).shape).subspan(2)) bytes *= as_int(dim).value_or(1);
    return std::max<int64_t>(1, cost_model::kStreamedBytesAhead / bytes);
  }

  // Sums the digits of a chunk, some rows at a time, in registers.
  void sum_digits(const BlockRV& sums, const std::optional<BlockRV>& unpacking, const LoopRV& chunk) {
    sch_.apply(ComputeAt{sums, chunk, true});
    sch_.apply(SetScope{sums, 0, "local"});
    const Loops inside = loops_inside(sch_, sums, 2);  // rows, digits, vectors, lanes, depth, and loops of one iteration
    Loops long_loops;
    for (const LoopRV& loop : inside) long_loops.push_back(loop);
    const size_t last = inside.size() - 1;
    const LoopRV &row = inside[0], &digit = inside[2], &vector = inside[last - 2], &lane = inside[last - 1];
    const int64_t per_byte = unpacking ? numbers_in_byte(*unpacking) : 1;
    const Loops rows = sch_.apply(Split{row, {std::nullopt, plan_.rows}});
    const Loops depth = sch_.apply(Split{inside[last], {std::nullopt, per_byte, 4}});
    sch_.apply(Reorder{{rows[0], depth[0], vector, depth[1], rows[1], digit, lane, depth[2]}});
    unroll(sch_, {vector, depth[1], rows[1], digit});
    sch_.apply(DecomposeReduction{sums, depth[0]});
    if (unpacking) unpack(*unpacking, vector);
    sch_.apply(Tensorize{lane, found_.instruction, false});
  }
  int64_t numbers_in_byte(const BlockRV& unpacking) const {
    const Buffer words = operands_of(*block_of(unpacking))[0]->buffer, numbers = block_of(unpacking)->writes[0].buffer;
    return *as_int(buffer_type(numbers).shape[1]) / *as_int(buffer_type(words).shape[1]);
  }
  void unpack(const BlockRV& unpacking, const LoopRV& vector) {
    sch_.apply(ComputeAt{unpacking, vector, true});
    sch_.apply(SetScope{unpacking, 0, "local"});
    const Loops loops = sch_.apply(GetLoops{unpacking});
    const LoopRV bytes = sch_.apply(Fuse{Loops(loops.end() - 2, loops.end())});
    sch_.apply(Unroll{loops[loops.size() - 4]});
    sch_.apply(Vectorize{bytes});
  }

  Schedule& sch_;
  const DigitProduct& found_;
  const DigitPlan& plan_;
  BlockRV product_;
};

void follow_digit_product(Schedule& sch, const DigitProduct& found, const DigitPlan& plan) {
  DigitSchedule(sch, found, plan).run();
}

}  // namespace

ScheduleRule digit_product_rule() {
  return anchored({.name = "digit_product",
                   .op = "matmul",
                   .doc = "a product of few rows with packed numbers of few bits, by digits of the activations",
                   .decisions = {{"rows", "rows whose sums of digits are in registers at the same time",
                                  "vector registers / (digits * vectors of a tile)"}}},
                  find_digit_product, choose_digit_product, follow_digit_product);
}

}  // namespace relaxc
