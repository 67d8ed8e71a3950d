// Expects: flat buffers, and the implementations of tile intrinsics as nests with the note `amx`. Guarantees, where the
// target has matrix registers: buffers of the scope amx.tmm are numbers of registers, and each nest is an instruction.
// On other targets such a buffer is memory, and the nests are the loops that they are.
#include <algorithm>

#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "ir/text/printer.h"
#include "ir/visit.h"
#include "support/diagnostic.h"
#include "support/lists.h"
#include "support/temporarily.h"
#include "tir/analysis/annotations.h"
#include "tir/lower/lower.h"
#include "tir/target.h"
#include "tir/tile_forms.h"

namespace relaxc {

namespace {

constexpr int64_t kBytesOfTile = int64_t{kTileRows} * kTileBytes;

bool is_tiles(const Buffer& buffer) { return buffer_type(buffer).scope == kTileScope; }

Stmt call_instruction(const std::string& name, std::vector<Expr> args, const Span& span) {
  args.insert(args.begin(), string_imm(name));
  return make(Evaluate{intrinsic(ops::kCallLlvmIntrin, std::move(args), DType::void_(), span)}, span);
}

// An instruction as its loops, outermost first, and their store.
class TileNest {
 public:
  explicit TileNest(const Stmt& outermost) : outermost_(outermost), statement_(outermost) {
    while (const For* loop = statement_.as<For>()) {
      loops_.push_back(loop->var);
      extents_.push_back(is_int(loop->min, 0) ? as_int(loop->extent).value_or(0) : 0);
      statement_ = Stmt(loop->body);
    }
  }
  const BufferStore* store() const { return statement_.as<BufferStore>(); }
  // Return whether the loops are over 16 rows of 64 bytes, or over the rows, columns and depth of a product.
  bool is_tile(DType dtype) const {
    int64_t columns = 1;
    for (size_t d = 1; d < extents_.size(); ++d) columns *= extents_[d];
    return extents_[0] == kTileRows && columns * dtype.bytes() == kTileBytes;
  }
  bool is_product(const TileForm& form) const {
    return extents_ == std::vector<int64_t>{kTileRows, kTileRows, form.depth};
  }
  // Returns the loads of the value, without those of the element that is stored to.
  std::vector<Ref<BufferLoad>> loads() const {
    std::vector<Ref<BufferLoad>> result;
    walk_nodes(store()->value, [&](const NodeRef& node) {
      auto load = try_cast<BufferLoad>(node);
      if (load && !same_node((*load)->buffer, store()->buffer)) result.push_back(*load);
      return true;
    });
    return result;
  }
  // Return the index of the first element, and how much later that of the second row is.
  Expr first(const Expr& index) const { return at(index, 0); }
  Expr row_distance(const Expr& index) const { return simplify(at(index, 1) - at(index, 0)); }
  // Returns the place of the element that an iteration accesses, from the first one of its row on.
  Expr place_in_row() const {
    Expr result = int_imm(0);
    for (size_t d = 1; d < loops_.size(); ++d) result = result * extents_[d] + cast_to(loops_[d], kInt64);
    return result;
  }
  // Returns the variable of a loop.
  Expr loop(size_t d) const { return cast_to(loops_[d], kInt64); }
  Analyzer facts(const Analyzer& outside) const {
    Analyzer result = outside;
    for (size_t d = 0; d < loops_.size(); ++d)
      result.bind(loops_[d], int_imm(0, dtype_of(loops_[d])), int_imm(extents_[d], dtype_of(loops_[d])));
    return result;
  }
  const Span& span() const { return outermost_.span(); }
  bool uses_row(const Expr& index) const { return uses_var(index, loops_.front()); }

 private:
  Expr at(const Expr& index, int64_t row) const {
    VarMap values;
    for (const VarRef& loop : loops_)
      values.emplace(loop.get(), int_imm(same_node(loop, loops_.front()) ? row : 0, dtype_of(index)));
    return simplify(substitute(index, values));
  }

  std::vector<VarRef> loops_;
  std::vector<int64_t> extents_;  // 0: unknown
  Stmt outermost_, statement_;
};

class TilePlacement final : public Rewriter {
 public:
  using Rewriter::operator();

  Stmt stmt(const Stmt& node) override {
    if (node.is<Seq>()) {  // buffers last until its end
      Temporarily used(used_, used_);
      return Rewriter::stmt(node);
    }
    if (const AllocBuffer* alloc = node.as<AllocBuffer>(); alloc && is_tiles(alloc->buffer)) {
      place(alloc->buffer, node.span());
      return no_op();
    }
    if (const BufferStore* store = node.as<BufferStore>()) refuse(store->buffer, node.span());
    const For* loop = node.as<For>();
    if (loop) facts_.bind(loop->var, loop->min, loop->extent);
    if (loop && loop->kind == ForKind::kParallel) {  // each thread has registers of its own
      Temporarily registers(registers_, {});
      Temporarily used(used_, int64_t{0});
      return Rewriter::stmt(node);
    }
    if (!loop || !loop->annotations.has(annotation<"amx">())) return Rewriter::stmt(node);
    return instruction(loop->annotations.get_string(annotation<"amx">(), ""), TileNest(node), node.span());
  }
  Expr expr(const Expr& node) override {
    if (const BufferLoad* load = node.as<BufferLoad>()) refuse(load->buffer, node.span());
    return Rewriter::expr(node);
  }

 private:
  static void refuse(const Buffer& buffer, const Span& span) {
    if (is_tiles(buffer))
      fail(span, "'{}' is in matrix registers (scope \"{}\"), which only the tensor intrinsics \"amx_...\" access",
           buffer->name, kTileScope);
  }

  void place(const Buffer& buffer, const Span& span) {
    const BufferType& type = buffer_type(buffer);
    const std::optional<int64_t> elements = as_int(type.shape.at(0));
    if (!elements) fail(span, "buffer '{}' in matrix registers has a size that only the run knows", buffer->name);
    const int64_t tiles = (*elements * type.dtype.bytes() + kBytesOfTile - 1) / kBytesOfTile;
    registers_.insert_or_assign(buffer.get(), Registers{used_, tiles});
    used_ += tiles;
    if (used_ > kTiles)
      fail(span, "the buffers in matrix registers up to '{}' need {} of them, and there are {}; use smaller tiles",
           buffer->name, used_, kTiles);
  }

  // Returns the number of the register that an iteration accesses at that place, a constant once the loops around the
  // nest are unrolled.
  Expr register_of(const Buffer& buffer, const Expr& index, const TileNest& nest, const Expr& place) const {
    const int64_t elements = kBytesOfTile / buffer_type(buffer).dtype.bytes();
    const Registers* registers = find_value(registers_, buffer.get());
    if (!registers)
      fail(nest.span(), "'{}' is in matrix registers and used inside of a parallel loop; allocate it there",
           buffer->name);
    const Analyzer facts = nest.facts(facts_);
    const Expr start = cast_to(nest.first(index), kInt64), tile = facts.simplify(floor_div(start, elements));
    const bool is_whole = facts.can_prove_equal(tile * elements + place, cast_to(index, kInt64)) &&
                          facts.can_prove(int_imm(0) <= tile) && facts.can_prove(tile < int_imm(registers->count));
    if (!is_whole)
      fail(nest.span(), "from element {} of '{}' on the nest does not access one of its {} tiles of {} elements",
           print_expr(start), buffer->name, registers->count, elements);
    return cast_to(simplify(tile + registers->first), DType::int_(8));
  }
  Expr register_of(const Buffer& buffer, const Expr& index, const TileNest& nest) const {
    const int64_t columns = kTileBytes / buffer_type(buffer).dtype.bytes();
    return register_of(buffer, index, nest, nest.loop(0) * columns + nest.place_in_row());
  }
  // Returns the place in memory of a tile, and the bytes from row to row.
  std::vector<Expr> memory(const Buffer& buffer, const Expr& index, const TileNest& nest) const {
    const Expr start = nest.first(index), distance = cast_to(nest.row_distance(index), kInt64);
    const Expr place = cast_to(start, kInt64) + nest.loop(0) * distance + nest.place_in_row();
    if (!nest.facts(facts_).can_prove_equal(place, cast_to(index, kInt64)))
      fail(nest.span(), "the nest does not access rows of a tile, evenly apart, in '{}', but its element {}",
           buffer->name, print_expr(index));
    Expr address = intrinsic(ops::kAddressOf, {load(buffer, {start})}, DType::handle());
    return {address, simplify(distance * buffer_type(buffer).dtype.bytes())};
  }

  std::optional<Stmt> product(const TileNest& nest, std::vector<Ref<BufferLoad>> factors) const {
    // Passes may have exchanged the factors of a product. That on the left depends on the row of the result.
    if (!nest.uses_row(factors[0]->indices.at(0))) std::swap(factors[0], factors[1]);
    for (const TileForm& form : tile_forms()) {
      const bool is_it = form.a == dtype_of(Expr(factors[0])) && form.b == dtype_of(Expr(factors[1])) &&
                         form.result == dtype_of(nest.store()->value) && nest.is_product(form);
      if (!is_it) continue;
      const Expr i = nest.loop(0), j = nest.loop(1), k = nest.loop(2);
      const int64_t group = form.group();
      const Expr in_right = floor_div(k, group) * (kTileRows * group) + j * group + floor_mod(k, group);
      auto tile = [&](const auto& access, const Expr& place) {
        return register_of(access.buffer, access.indices.at(0), nest, place);
      };
      return call_instruction(
          form.instruction,
          {tile(*nest.store(), i * kTileRows + j), tile(*factors[0], i * form.depth + k), tile(*factors[1], in_right)},
          nest.span());
    }
    return std::nullopt;
  }

  Stmt instruction(const std::string& name, const TileNest& nest, const Span& span) const {
    const BufferStore* store = nest.store();
    if (!store) fail(span, "the nest of the note amx, \"{}\", is not one store in its loops", name);
    const Expr& index = store->indices.at(0);
    std::vector<Ref<BufferLoad>> loads = nest.loads();
    const bool is_tile = nest.is_tile(buffer_type(store->buffer).dtype);
    if (name == "zero" && is_tile && loads.empty())
      return call_instruction("llvm.x86.tilezero", {register_of(store->buffer, index, nest)}, span);
    if (name == "load" && is_tile && loads.size() == 1 && is_tiles(store->buffer)) {
      std::vector<Expr> args = memory(loads[0]->buffer, loads[0]->indices.at(0), nest);
      args.insert(args.begin(), register_of(store->buffer, index, nest));
      return call_instruction("llvm.x86.tileloadd64", std::move(args), span);
    }
    if (name == "store" && is_tile && loads.size() == 1 && is_tiles(loads[0]->buffer)) {
      std::vector<Expr> args = memory(store->buffer, index, nest);
      args.insert(args.begin(), register_of(loads[0]->buffer, loads[0]->indices.at(0), nest));
      return call_instruction("llvm.x86.tilestored64", std::move(args), span);
    }
    if (name == "multiply" && loads.size() == 2) {
      if (auto result = product(nest, loads)) return *result;
    }
    fail(span, "the nest of the note amx is not what an instruction \"{}\" does", name);
  }

  struct Registers {
    int64_t first, count;
  };
  std::unordered_map<const NodeHeader*, Registers> registers_;  // of each buffer
  Analyzer facts_;
  int64_t used_ = 0;
};

}  // namespace

PrimFuncRef tile_registers(const PrimFuncRef& function, const Target& target) {
  if (!target.has_int8_tiles && !target.has_bfloat16_tiles) return function;
  return with_body(function, TilePlacement()(function->body));
}

}  // namespace relaxc
