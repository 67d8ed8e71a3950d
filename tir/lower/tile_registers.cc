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
      statement_ = Stmt(loop->body);
    }
  }
  const BufferStore* store() const { return statement_.as<BufferStore>(); }
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
  // Returns the index of the first element, or of the first one in the second row.
  Expr first(const Expr& index) const { return at(index, 0); }
  Expr row_distance(const Expr& index) const { return simplify(at(index, 1) - at(index, 0)); }
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
    registers_.emplace(buffer.get(), used_);
    used_ += tiles;
    if (used_ > kTiles)
      fail(span, "the buffers in matrix registers up to '{}' need {} of them, and there are {}; use smaller tiles",
           buffer->name, used_, kTiles);
  }

  // Returns the number of the register, a constant once the loops around it are unrolled.
  Expr register_of(const Buffer& buffer, const Expr& index, const TileNest& nest) const {
    const int64_t elements = kBytesOfTile / buffer_type(buffer).dtype.bytes();
    const int64_t* first = find_value(registers_, buffer.get());
    if (!first)
      fail(nest.span(), "'{}' is in matrix registers and used inside of a parallel loop; allocate it there",
           buffer->name);
    Expr tile = floor_div(nest.first(index), elements) + int_imm(*first, dtype_of(index));
    return cast_to(simplify(tile), DType::int_(8));
  }
  // Returns the place in memory of a tile, and the bytes from row to row.
  static std::vector<Expr> memory(const Buffer& buffer, const Expr& index, const TileNest& nest) {
    Expr address = intrinsic(ops::kAddressOf, {load(buffer, {nest.first(index)})}, DType::handle());
    return {address, simplify(cast_to(nest.row_distance(index), kInt64) * buffer_type(buffer).dtype.bytes())};
  }

  Stmt instruction(const std::string& name, const TileNest& nest, const Span& span) const {
    const BufferStore* store = nest.store();
    if (!store) fail(span, "the nest of the note amx, \"{}\", is not one store in its loops", name);
    const Expr& index = store->indices.at(0);
    std::vector<Ref<BufferLoad>> loads = nest.loads();
    auto tile = [&](const Ref<BufferLoad>& load) { return register_of(load->buffer, load->indices.at(0), nest); };
    if (name == "zero" && loads.empty())
      return call_instruction("llvm.x86.tilezero", {register_of(store->buffer, index, nest)}, span);
    if (name == "load" && loads.size() == 1) {
      std::vector<Expr> args = memory(loads[0]->buffer, loads[0]->indices.at(0), nest);
      args.insert(args.begin(), register_of(store->buffer, index, nest));
      return call_instruction("llvm.x86.tileloadd64", std::move(args), span);
    }
    if (name == "store" && loads.size() == 1) {
      std::vector<Expr> args = memory(store->buffer, index, nest);
      args.insert(args.begin(), tile(loads[0]));
      return call_instruction("llvm.x86.tilestored64", std::move(args), span);
    }
    if (name == "multiply" && loads.size() == 2) {
      // Passes may have exchanged the factors of a product. That on the left depends on the row of the result.
      if (!nest.uses_row(loads[0]->indices.at(0))) std::swap(loads[0], loads[1]);
      auto form = std::ranges::find_if(tile_forms(), [&](const TileForm& each) {
        return each.a == dtype_of(Expr(loads[0])) && each.b == dtype_of(Expr(loads[1]));
      });
      if (form != tile_forms().end())
        return call_instruction(form->instruction,
                                {register_of(store->buffer, index, nest), tile(loads[0]), tile(loads[1])}, span);
    }
    fail(span, "the nest of the note amx is not what an instruction \"{}\" does", name);
  }

  std::unordered_map<const NodeHeader*, int64_t> registers_;  // the first of each buffer
  int64_t used_ = 0;
};

}  // namespace

PrimFuncRef tile_registers(const PrimFuncRef& function, const Target& target) {
  if (!target.has_int8_tiles && !target.has_bfloat16_tiles) return function;
  return with_body(function, TilePlacement()(function->body));
}

}  // namespace relaxc
