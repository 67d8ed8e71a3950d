// The schedule of products with packed numbers of few bits, by digits of the activations (passes/digit_products.h).
// Threads share tiles of columns, whose numbers are one stream of memory:
//
//   for row, chunk: digits of the activations         before, for all tiles, as the default rule does
//   for tile in parallel:
//     for block of rows:                               where their number is symbolic
//       for chunk of the depth:                        prefetches the scales of later chunks
//         for group of rows in the block:
//           for part of the chunk, vector:             prefetches numbers; unpacks them in registers: an AND, a shift
//             sums[row, digit, vector] += dot product  int32, in registers; or int16, for each part of the chunk
//           y[row, vector] += step * scale * sums      float32
//       for row, vector: the result, and what is computed from it
#include <algorithm>

#include "support/checked_math.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/byte_tables.h"
#include "tir/primitives/extend_axis.h"
#include "tir/rules/builtin_rules.h"
#include "tir/rules/contraction.h"
#include "tir/rules/cost_model.h"
#include "tir/rules/lanes.h"

namespace relaxc {

namespace {

constexpr int64_t kRowsInBlock = 8;   // whose sums stay in the L1 cache
constexpr int64_t kSpareOfPairs = 4;  // registers beside the sums: a word, its numbers, a digit, the product, a mask

struct DigitProduct {
  Stage product;
  Expr rows;
  std::optional<int64_t> num_rows;
  int64_t digits, vectors;
  const DotForm& instruction;
  const Target& target;

  bool sums_pairs() const { return !instruction.sum_of_pairs.empty(); }
};
struct DigitPlan {
  int64_t rows;              // of a group, whose sums of digits are in registers at the same time
  int64_t groups;            // in a block of rows; 0: there is one block
  bool takes_vectors_apart;  // where sums and digits of all vectors of a tile do not fit registers
  std::optional<Versions> versions;
};

const BufferLoad& numbers_of(const Block& products) { return *operands_of(products)[1]; }
// Returns the block that makes what the block reads alone; null where that reads several buffers.
const Ref<Block>* only_producer(const Block& block, const std::vector<Ref<Block>>& prologue) {
  const std::vector<Ref<BufferLoad>> operands = operands_of(block);
  auto makes_it = [&](const Ref<Block>& other) { return same_node(other->writes[0].buffer, operands[0]->buffer); };
  auto found = operands.size() == 1 ? std::ranges::find_if(prologue, makes_it) : prologue.end();
  return found == prologue.end() ? nullptr : &*found;
}

std::variant<DigitProduct, std::string> find_digit_product(const PrimFuncRef& program, const Target& target,
                                                           Decisions&) {
  const std::string kOtherForm = "it is not a product by digits of activations";
  auto stage = find_stage(program, "matmul");
  if (!stage) return kOtherForm;
  auto sums = std::ranges::find_if(
      stage->prologue, [](const Ref<Block>& block) { return block->annotations.has(annotation<"digit_sums">()); });
  if (sums == stage->prologue.end()) return kOtherForm;
  const Ref<Block>* pairs = only_producer(**sums, stage->prologue);  // whose sums have 16 bits
  const Block& products = pairs ? **pairs : **sums;
  const std::vector<Ref<BufferLoad>> operands = operands_of(products);
  const DType numbers = pairs ? DType::uint(8) : buffer_type(operands[1]->buffer).dtype;
  const DotForm* form = find_dot_form(buffer_type(operands[0]->buffer).dtype, numbers,
                                      buffer_type(products.writes[0].buffer).dtype, target);
  const std::vector<IterVar>& axes = (*sums)->iter_vars;
  const auto digits = as_int(axes[2].domain.extent), vectors = as_int(axes[4].domain.extent),
             lanes = as_int(axes[5].domain.extent);
  if (!form || !digits || !vectors || lanes != form->lanes) return "the target has no dot product of these lanes";
  const Expr& rows = axes[0].domain.extent;
  return DigitProduct{*stage, rows, as_int(rows), *digits, *vectors, *form, target};
}

DigitPlan choose_digit_product(const DigitProduct& found, const Target& target, Decisions& decisions) {
  // The vectors of one row share its digits, which registers hold; those of several rows would leave no room for sums.
  const bool takes_apart = found.sums_pairs() && found.num_rows != 1;
  const int64_t spare = found.sums_pairs() ? kSpareOfPairs : cost_model::kSpareOfMany;
  const int64_t fit = (target.num_vector_registers - spare) / (found.digits * (takes_apart ? 1 : found.vectors));
  const std::vector<int64_t> candidates =
      divisors_between(1, std::max<int64_t>(1, fit), found.num_rows.value_or(kRowsInBlock));
  const int64_t rows = decisions.number("rows", candidates, candidates.empty() ? 1 : candidates.back());
  if (found.num_rows) return {rows, 0, takes_apart, std::nullopt};
  std::optional<Versions> versions;
  if (const auto dim = try_cast<Var>(found.rows)) {
    // A token at a time reads the matrix as fast as memory gives it.
    decisions.list(kSpecialize, numbers_between(1, kRowsInBlock), {1});
    versions = Versions{*dim, kSpecialize};
  }
  return {rows, kRowsInBlock / rows, takes_apart, versions};
}

class DigitSchedule {
 public:
  DigitSchedule(Schedule& sch, const DigitProduct& found, const DigitPlan& plan)
      : sch_(sch), found_(found), plan_(plan), product_(sch.apply(GetBlock{"matmul"})) {}

  void run() {
    const BlockRV sums = producer_with_sums();
    const BlockRV products = found_.sums_pairs() ? sch_.apply(GetProducers{sums}).front() : sums;
    const std::optional<BlockRV> unpacking = unpacking_of(products);
    const Buffer words = words_of(unpacking, products);
    const std::optional<BlockRV> epilogue = take_epilogue();
    const Blocks before = blocks_before({sums, products, unpacking.value_or(products)});
    const Loops loops = loops_of_axes(sch_, product_);  // rows, tiles, vectors, lanes, chunks
    const LoopRV &tile = loops[1], &vector = loops[2], &lane = loops[3], &chunk = loops[4];
    const Factors factors =
        plan_.groups > 0 ? Factors{std::nullopt, plan_.groups, plan_.rows} : Factors{std::nullopt, plan_.rows};
    const Loops rows = sch_.apply(Split{loops[0], factors});
    const LoopRV &group = rows[rows.size() - 2], &row = rows.back();
    const Loops around = plan_.groups > 0 ? Loops{tile, rows[0]} : Loops{tile};
    const bool apart = plan_.takes_vectors_apart;
    sch_.apply(Reorder{
        joined({around, apart ? Loops{chunk, vector, group, row, lane} : Loops{chunk, group, row, vector, lane}})});
    const BlockRV result = epilogue ? *epilogue : sch_.apply(CacheWrite{product_, 0, "local"});
    if (epilogue) sch_.apply(SetScope{product_, 0, "local"});
    sch_.apply(ReverseComputeAt{result, around.back(), true});
    const Loops stored = loops_inside(sch_, result, around.size());
    unroll(sch_, {row});
    if (!apart) unroll(sch_, {vector});
    keep_in_registers(sch_, {stored[stored.size() - 2]}, {lane, stored.back()});
    if (found_.sums_pairs()) {
      sum_pairs(sums, products, unpacking, words, group);
    } else {
      sum_digits(sums, unpacking, words, group);
    }
    sch_.apply(DecomposeReduction{product_, chunk});
    const AttrList parameters = prefetches_of_parameters(words);
    if (!parameters.empty()) sch_.apply(Annotate{chunk, annotation<"prefetch_ahead">(), parameters});
    // Only the last block of rows tests which of them there are.
    if (plan_.groups > 0) sch_.apply(Annotate{tile, annotation<"keep_whole">(), true});
    sch_.apply(Parallel{tile});
    schedule_blocks_by_default(sch_, before, found_.target);
  }

 private:
  // Returns the block of the result, with all that is computed from the product, whose axes become those of the
  // product; none where several blocks are.
  std::optional<BlockRV> take_epilogue() {
    const Blocks merged = sch_.apply(MergeEpilogue{product_});
    if (merged.size() != 1) return std::nullopt;
    const std::vector<IterVar> axes = block_of(merged[0])->iter_vars, of_product = block_of(product_)->iter_vars;
    auto extent = [&](size_t axis) { return *as_int(of_product[axis].domain.extent); };  // behind the rows
    const int64_t vectors = extent(2), lanes = extent(3), columns = vectors * lanes;
    const auto last = static_cast<int64_t>(axes.size()) - 1;
    const ExtendAxis whole_tiles{merged[0], last, extent(1) * columns};
    const TransformBlockLayout as_product{merged[0], IndexMap(axes.size(), [&](const Exprs& at) {
                                            Expr row = int_imm(0);
                                            for (size_t d = 0; d + 1 < at.size(); ++d)
                                              row = row * axes[d].domain.extent + at[d];
                                            const Expr& n = at.back();
                                            return Exprs{row, floor_div(n, columns),
                                                         floor_mod(floor_div(n, lanes), vectors), floor_mod(n, lanes)};
                                          })};
    if (!is_int(axes.back().domain.extent, whole_tiles.extent) && !sch_.try_apply(whole_tiles)) return std::nullopt;
    if (!sch_.try_apply(as_product)) return std::nullopt;
    return merged[0];
  }
  // Returns the blocks that make the operands, other than those given, and are left to the default rule.
  Blocks blocks_before(const Blocks& placed) {
    Blocks result;
    for (const BlockRV& block : sch_.apply(GetChildBlocks{sch_.apply(GetBlock{"root"})})) {
      const bool is_placed = std::ranges::any_of(
          placed, [&](const BlockRV& other) { return same_node(write_of(other), write_of(block)); });
      const bool is_before = std::ranges::any_of(found_.product.prologue, [&](const Ref<Block>& before) {
        return same_node(before->writes[0].buffer, write_of(block));
      });
      if (is_before && !is_placed) result.push_back(block);
    }
    return result;
  }
  Buffer write_of(const BlockRV& block) const { return block_of(block)->writes[0].buffer; }
  Ref<Block> block_of(const BlockRV& block) const { return cast<Block>(sch_.get(block)); }
  // Returns the words that a block unpacks, which it may take from a table by their numbers.
  Buffer words_in(const BlockRV& unpacking) const {
    for (const Ref<BufferLoad>& load : operands_of(*block_of(unpacking))) {
      if (!byte_table_index(*load)) return load->buffer;
    }
    RELAXC_CHECK(false, "expected words that '{}' unpacks", block_of(unpacking)->name);
  }
  BlockRV producer_with_sums() {
    for (const BlockRV& block : sch_.apply(GetProducers{product_})) {
      if (block_of(block)->annotations.has(annotation<"digit_sums">())) return block;
    }
    RELAXC_CHECK(false, "expected a block of sums of digits before the product");
  }
  std::optional<BlockRV> unpacking_of(const BlockRV& products) {
    const Buffer numbers = numbers_of(*block_of(products)).buffer;
    for (const BlockRV& block : sch_.apply(GetProducers{products})) {
      if (same_node(write_of(block), numbers)) return block;
    }
    return std::nullopt;
  }
  Buffer words_of(const std::optional<BlockRV>& unpacking, const BlockRV& products) const {
    return unpacking ? words_in(*unpacking) : numbers_of(*block_of(products)).buffer;
  }
  // Returns the buffers with a number for each column of which a chunk's iteration prefetches what later ones read, and
  // how many rows ahead.
  AttrList prefetches_of_parameters(const Buffer& words) const {
    AttrList result;
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
    int64_t bytes = rows_of_chunk * buffer_type(words).dtype.bytes();
    for (const Expr& dim : std::span(buffer_type(words).shape).subspan(2)) bytes *= as_int(dim).value_or(1);
    return std::max<int64_t>(1, cost_model::kStreamedBytesAhead / bytes);
  }

  // Adds sums of 16 bits, each of a part of the chunk, for the rows of a group, in registers.
  void sum_pairs(const BlockRV& sums, const BlockRV& products, const std::optional<BlockRV>& unpacking,
                 const Buffer& words, const LoopRV& group) {
    sch_.apply(ComputeAt{sums, group, true});
    sch_.apply(SetScope{sums, 0, "local"});
    const Loops all = sch_.apply(GetLoops{sums});  // the last ones: rows, 1, digits, 1, vectors, lanes, parts, pairs
    const std::span<const LoopRV> loops = std::span(all).last(8);
    const LoopRV &row = loops[0], &digit = loops[2], &vector = loops[4], &lane = loops[5], &part = loops[6];
    sch_.apply(Reorder{{part, row, digit, vector, lane, loops[7]}});
    unroll(sch_, {row, digit, vector});
    sum_digits(products, unpacking, words, part);
    sch_.apply(DecomposeReduction{sums, part});
    sch_.apply(Tensorize{lane, found_.instruction.sum_of_pairs, false});
  }
  // Sums the digits of a chunk for the rows of a group, or of one of its parts, in registers.
  void sum_digits(const BlockRV& products, const std::optional<BlockRV>& unpacking, const Buffer& words,
                  const LoopRV& around) {
    constexpr int64_t kGroup = 4;  // products that a lane sums
    const bool has_pairs = found_.sums_pairs();
    sch_.apply(ComputeAt{products, around, true});
    sch_.apply(SetScope{products, 0, "local"});
    const Loops all = sch_.apply(GetLoops{products});
    // rows, 1, digits, 1, vectors, lanes, depth; or rows, 1, digits, 1, vectors, 1, lanes, pairs, groups of depth, 2
    const std::span<const LoopRV> loops = std::span(all).last(has_pairs ? 10 : 7);
    const LoopRV &row = loops[0], &digit = loops[2], &vector = loops[4], &lane = loops[has_pairs ? 6 : 5];
    const int64_t per_byte = unpacking ? numbers_in_byte(*unpacking) : 1;
    const Loops depth = sch_.apply(has_pairs ? Split{loops[8], {std::nullopt, per_byte}}
                                             : Split{loops[6], {std::nullopt, per_byte, kGroup}});
    const Loops instruction = has_pairs ? Loops{lane, loops[7], loops[9]} : Loops{lane, depth[2]};
    sch_.apply(Reorder{joined({Loops{depth[0], vector, depth[1], row, digit}, instruction})});
    unroll(sch_, {vector, depth[1], row, digit});
    sch_.apply(DecomposeReduction{products, depth[0]});
    if (unpacking) unpack(*unpacking, vector);
    sch_.apply(Tensorize{lane, found_.instruction.name, false});
    // A row of words at a time: more prefetches at once would wait for the core's line fill buffers.
    sch_.apply(Annotate{depth[0], annotation<"prefetch_ahead">(), AttrList{words->name, rows_ahead(words, 1)}});
  }
  int64_t numbers_in_byte(const BlockRV& unpacking) const {
    const Buffer words = words_in(unpacking), numbers = write_of(unpacking);
    return *as_int(buffer_type(numbers).shape[1]) / *as_int(buffer_type(words).shape[1]);
  }
  void unpack(const BlockRV& unpacking, const LoopRV& vector) {
    sch_.apply(ComputeAt{unpacking, vector, true});
    sch_.apply(SetScope{unpacking, 0, "local"});
    // The last ones: numbers in a byte, vectors, lanes, and the bytes of a lane where it is not a word.
    Loops loops = sch_.apply(GetLoops{unpacking});
    if (!found_.sums_pairs()) {
      const LoopRV bytes = sch_.apply(Fuse{Loops(loops.end() - 2, loops.end())});
      loops.erase(loops.end() - 2, loops.end());
      loops.push_back(bytes);
    }
    sch_.apply(Unroll{loops[loops.size() - 3]});
    sch_.apply(Vectorize{loops.back()});
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
                                  "a divisor of the rows, of 8 where they are symbolic, at most vector registers / "
                                  "(digits * vectors of a tile)"},
                                 {kSpecialize, "symbolic rows that have separate code", "1"}}},
                  find_digit_product, choose_digit_product, follow_digit_product);
}

}  // namespace relaxc
