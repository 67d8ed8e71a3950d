// Expects: flat buffers, and instructions of the matrix unit as loops with the note `user.mxu` (mxu.py). Guarantees:
// each is a call of the runtime, and buffers of the scope global.mxu are byte addresses in the scratchpad.
#include <relaxc/plugin.h>
#include <relaxc/printer.h>

#include "accelerator.h"

namespace mxu {

namespace {

constexpr const char* kNote = "user.mxu";

bool is_scratch(const Buffer& buffer) { return buffer_type(buffer).scope == "global.mxu"; }

Expr call_runtime(const std::string& name, std::vector<Expr> args, const Span& span) {
  args.insert(args.begin(), string_imm("mxu_" + name));
  return intrinsic("tir.call_extern", std::move(args), kInt32, span);
}

// The loops of an instruction, outermost first, and their statement.
struct Nest {
  explicit Nest(const Stmt& outermost) : statement(outermost) {
    while (const For* loop = statement.as<For>()) {
      if (!is_int(loop->min, 0) || !is_int(loop->extent, kMxuTile))
        fail(statement.span(), "loop '{}' of an instruction does not count to {}", loop->var->name, int(kMxuTile));
      loops.push_back(loop->var);
      statement = Stmt(loop->body);
    }
  }
  std::vector<VarRef> loops;
  Stmt statement;
};

class Lowering final : public Rewriter {
 public:
  explicit Lowering(std::string function) : function_(std::move(function)) {}
  bool found = false;
  using Rewriter::operator();

  Stmt stmt(const Stmt& node) override {
    if (const AllocBuffer* alloc = node.as<AllocBuffer>(); alloc && is_scratch(alloc->buffer)) {
      place(alloc->buffer, node.span());
      return no_op();
    }
    if (const BufferStore* store = node.as<BufferStore>()) refuse(store->buffer, node.span());
    const For* loop = node.as<For>();
    if (!loop || !loop->annotations.has(kNote)) return Rewriter::stmt(node);
    found = true;
    return make(Evaluate{instruction(loop->annotations.get_string(kNote, ""), Nest(node), node.span())}, node.span());
  }
  Expr expr(const Expr& node) override {
    if (const BufferLoad* load = node.as<BufferLoad>()) refuse(load->buffer, node.span());
    return Rewriter::expr(node);
  }

 private:
  static void refuse(const Buffer& buffer, const Span& span) {
    if (is_scratch(buffer))
      fail(span, "'{}' is in the scratchpad, which only instructions of the matrix unit can access", buffer->name);
  }

  void place(const Buffer& buffer, const Span& span) {
    const BufferType& type = buffer_type(buffer);
    std::optional<int64_t> size = as_int(type.shape.at(0));
    if (!size) fail(span, "buffer '{}' in the scratchpad has a size that only the run knows", buffer->name);
    addresses_.emplace(buffer.get(), used_);
    used_ += (*size * type.dtype.bytes() + 63) / 64 * 64;
    if (used_ > kMxuScratchpad)
      fail(span, "'{}' needs {} bytes of the scratchpad up to buffer '{}', which has {}; load smaller parts", function_,
           used_, buffer->name, int(kMxuScratchpad));
  }

  // Returns the address of a tile and the distance of its rows, whose numbers are those of `row`; `column` counts
  // neighbours.
  std::vector<Expr> tile(const Buffer& buffer, const Expr& index, const Nest& nest, size_t row, size_t column) const {
    auto at = [&](size_t loop) {
      VarMap values;
      for (size_t i = 0; i < nest.loops.size(); ++i)
        values.emplace(nest.loops[i].get(), int_imm(i == loop, dtype_of(index)));
      return simplify(substitute(index, values));
    };
    Expr first = at(nest.loops.size()), stride = simplify(at(row) - first);
    Expr linear = first + stride * nest.loops[row] + nest.loops[column];
    if (!Analyzer().can_prove_equal(index, linear))
      fail(index.span(), "a tile of '{}' is not rows of neighbouring elements: {}", buffer->name, print_expr(index));
    Expr distance = cast_to(stride, kInt64);
    if (!is_scratch(buffer)) return {intrinsic("tir.address_of", {load(buffer, {first})}, DType::handle()), distance};
    Expr address = int_imm(addresses_.at(buffer.get())) + cast_to(first, kInt64) * buffer_type(buffer).dtype.bytes();
    return {address, distance};
  }

  Expr instruction(const std::string& name, const Nest& nest, const Span& span) const {
    bool is_product = name == "multiply";
    if (!is_product && name != "load" && name != "clear" && name != "store")
      fail(span, "the matrix unit has no instruction '{}'", name);
    const BufferStore* store = nest.statement.as<BufferStore>();
    if (!store || nest.loops.size() != (is_product ? 3u : 2u))
      fail(span, "instruction '{}' is not one store in {} loops", name, is_product ? 3 : 2);
    std::vector<Expr> args = tile(store->buffer, store->indices.at(0), nest, 0, 1);
    std::vector<const BufferLoad*> loads;
    walk(store->value, [&](const BufferLoad& load) {
      if (!same_node(load.buffer, store->buffer)) loads.push_back(&load);
    });
    // Passes may have exchanged the factors of a product. That on the left depends on the row of the result.
    auto is_left = [&](const BufferLoad* load) { return uses_var(load->indices[0], nest.loops[0]); };
    if (is_product && loads.size() == 2 && !is_left(loads[0])) std::swap(loads[0], loads[1]);
    if (loads.size() != (is_product ? 2u : name == "clear" ? 0u : 1u))
      fail(span, "instruction '{}' reads {} tiles", name, loads.size());
    for (const BufferLoad* load : loads) {
      size_t row = is_product && !is_left(load) ? 2 : 0;
      size_t column = is_product && is_left(load) ? 2 : 1;
      for (const Expr& arg : tile(load->buffer, load->indices[0], nest, row, column)) args.push_back(arg);
    }
    return call_runtime(name, std::move(args), span);
  }

  std::string function_;
  std::unordered_map<const NodeHeader*, int64_t> addresses_;  // of buffers
  int64_t used_ = 0;
};

PrimFuncRef instructions(const std::string& name, const PrimFuncRef& program, const PassContext&) {
  Lowering lowering(name);
  PrimFunc result = *program;
  result.body = lowering(program->body);
  if (!lowering.found) return program;
  const Span& span = program.span();
  Stmt begin = make(Evaluate{call_runtime("begin", {}, span)}, span);
  Stmt end = make(Assert{equal(call_runtime("end", {}, span), int_imm(0, kInt32)),
                         {"the matrix unit was given an address outside of its scratchpad"}},
                  span);
  result.body = seq({begin, result.body, end});
  return make_prim_func(std::move(result), span);
}

}  // namespace

void add_instructions(Tables& tables) {
  tables.add(Pass{.name = "mxu_instructions",
                  .doc = "turn tiles into calls of the matrix unit's runtime",
                  .on_program = instructions},
             {{.pipeline = "lower_kernels", .after = "simplify_program"}});
}

}  // namespace mxu
