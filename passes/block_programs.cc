#include "passes/block_programs.h"

#include <algorithm>

#include "ir/attr_names.h"
#include "passes/compose.h"
#include "tir/analysis/nests.h"
#include "tir/compute.h"
#include "tir/lower/lower.h"
#include "tir/program.h"

namespace relaxc {

namespace {

class ProgramBlocker {
 public:
  ProgramBlocker(const KernelMatch& match, const PrimFuncRef& program, const ImageBlocks& blocks)
      : match_(match), program_(program), blocks_(blocks) {}

  std::variant<PrimFuncRef, std::string> run() {
    auto nests = find_nests(program_);
    if (!nests) return "it is not made of blocks in plain loops";
    set_channels();
    add_inputs();
    for (const Ref<Block>& block : *nests) {
      if (std::string why = add_block(*block); !why.empty()) return why;
    }
    std::vector<Buffer> results;
    for (const KernelOperand& operand : match_.operands) {
      if (!operand.is_output) continue;
      if (!is_made(operand.param)) return fmt::format("no block stores '{}'", operand.param->name);
      results.push_back(cast<Var>(buffers_.at(operand.param.get())));
    }
    PrimFuncRef made = builder_.finish(results, program_->attrs.without(attr_names::kGlobalSymbol));
    Stmt body = rewrite(made->body, [&](const Ref<Block>& block) -> std::optional<Stmt> {
      const Attrs* notes = block->writes.empty() ? nullptr : find_value(notes_, block->writes[0].buffer.get());
      if (!notes) return std::nullopt;
      return edited<Block>(block, [&](Block& copy) { copy.annotations = *notes; });
    });
    return with_body(made, body);
  }

 private:
  bool is_blocked(const KernelOperand& operand) const {
    return !operand.is_output && blocks_.are_blocked[operand.number];
  }
  const KernelOperand* operand_of(const Buffer& buffer) const {
    auto found = std::ranges::find_if(match_.operands,
                                      [&](const KernelOperand& operand) { return same_node(operand.param, buffer); });
    return found == match_.operands.end() ? nullptr : &*found;
  }

  bool is_made(const Buffer& buffer) const {
    const KernelOperand* operand = operand_of(buffer);
    return (!operand || operand->is_output) && buffers_.contains(buffer.get());
  }

  void add_inputs() {
    for (const KernelOperand& operand : match_.operands) {
      if (operand.is_output) continue;
      const BufferType& type = buffer_type(operand.param);
      std::vector<Expr> shape = shape_of(operand.param);
      buffers_.emplace(operand.param.get(), builder_.input(operand.param->name, type.dtype,
                                                           is_blocked(operand) ? blocked(std::move(shape)) : shape));
    }
  }

  // Adds a stage for each store of the block. Returns why there are none, or "".
  std::string add_block(const Block& block) {
    axes_ = axes_of(block, IterKind::kSpatial);
    std::vector<const BufferStore*> stores = stores_of(block);
    for (const BufferStore* store : stores) {
      if (is_image(*store) && axes_.size() == block.iter_vars.size()) continue;
      stores.clear();
      break;
    }
    if (stores.empty())
      return fmt::format("block '{}' does not store one element of an image for each of its axes", block.name);
    for (const BufferStore* store : stores) {
      const Buffer& buffer = store->buffer;
      const KernelOperand* operand = operand_of(buffer);
      if (operand ? !operand->is_output || is_made(buffer) : is_made(buffer))
        return fmt::format("block '{}' stores '{}', which has its contents already", block.name, buffer->name);
      if (std::string why = refused_load(*store); !why.empty()) return why;
      std::string name = stores.size() == 1 ? block.name : fmt::format("{}_{}", block.name, buffer->name);
      Buffer made = builder_.compute(std::move(name), buffer_type(buffer).dtype, blocked(shape_of(buffer)),
                                     [&](Axes at) { return value_at(store->value, at); });
      buffers_.insert_or_assign(buffer.get(), made);
      notes_.emplace(made.get(), block.annotations);
    }
    return "";
  }

  // Returns the block's stores of elements; none if it does anything else.
  static std::vector<const BufferStore*> stores_of(const Block& block) {
    if (const BufferStore* only = single_store(block)) return {only};
    const Seq* all = block.body.as<Seq>();
    std::vector<const BufferStore*> stores;
    for (const Stmt& stmt : all ? all->stmts : std::vector<Stmt>()) {
      const BufferStore* store = stmt.as<BufferStore>();
      auto is_scalar = [](const Ref<BufferLoad>& load) { return is_element(load->indices); };
      if (!store || store->predicate || !std::ranges::all_of(loads_of(stmt), is_scalar)) return {};
      stores.push_back(store);
    }
    return stores;
  }
  // Returns whether the store is of the element of the block's axes in an image like the results.
  bool is_image(const BufferStore& store) const {
    const std::vector<Expr>& shape = buffer_type(store.buffer).shape;
    return shape.size() == 4 && axes_.size() == 4 && is_at(store.indices, axes_) &&
           is_int(simplify(substitute(shape[1], channels_)), blocks_.channels);
  }

  // Returns what the store reads that it could not read in blocks, or "".
  std::string refused_load(const BufferStore& store) const {
    const bool is_padded = blocks_.channels % blocks_.block != 0;
    for (const Ref<BufferLoad>& load : loads_of(store.value)) {
      const KernelOperand* operand = operand_of(load->buffer);
      const bool is_own = !operand || operand->is_output;
      if (is_own && !is_made(load->buffer)) return fmt::format("it reads '{}', which it makes", load->buffer->name);
      if (is_own || is_blocked(*operand)) {
        if (!is_at(load->indices, axes_))
          return fmt::format("it reads other elements of '{}' than the one that it stores", load->buffer->name);
        continue;
      }
      // The channels of the padding are none of the operand's.
      auto varies = [&](const Expr& index) { return uses_var(index, axes_[1].var) || holds<BufferLoad>(index); };
      if (is_padded && std::ranges::any_of(load->indices, varies))
        return fmt::format("it reads '{}' by channel, and {} channels do not fill blocks of {}", load->buffer->name,
                           blocks_.channels, blocks_.block);
    }
    return "";
  }

  // The program's dim of channels is a constant in blocks.
  void set_channels() {
    for (const KernelOperand& operand : match_.operands) {
      if (!is_blocked(operand) && !operand.is_output) continue;
      const Expr& dim = buffer_type(operand.param).shape[1];
      if (dim.is<Var>()) channels_.insert_or_assign(dim.get(), int_imm(blocks_.channels, dtype_of(dim)));
    }
  }
  std::vector<Expr> blocked(std::vector<Expr> shape) const {
    shape[1] = int_imm((blocks_.channels + blocks_.block - 1) / blocks_.block);
    shape.push_back(int_imm(blocks_.block));
    return shape;
  }

  std::vector<Expr> shape_of(const Buffer& buffer) const {
    return map_each(buffer_type(buffer).shape, [&](const Expr& dim) { return substitute(dim, channels_); });
  }

  // Returns what a store stores at [n, c / block, h, w, c % block].
  Expr value_at(const Expr& value, Axes at) const {
    Expr result = rewrite(value, [&](const Ref<BufferLoad>& read) -> std::optional<Expr> {
      const KernelOperand* operand = operand_of(read->buffer);
      if (operand && !operand->is_output && !is_blocked(*operand)) return std::nullopt;
      return load(cast<Var>(buffers_.at(read->buffer.get())), at);
    });
    VarMap map = channels_;
    map.insert(buffers_.begin(), buffers_.end());
    for (size_t d = 0; d < axes_.size(); ++d)
      map.insert_or_assign(axes_[d].var.get(), d == 1 ? at[1] * int_imm(blocks_.block) + at[4] : at[d]);
    return substitute(result, map);
  }

  const KernelMatch& match_;
  const PrimFuncRef& program_;
  const ImageBlocks& blocks_;
  ComputeBuilder builder_;
  std::vector<IterVar> axes_;  // of the block that is being added
  VarMap channels_;
  VarMap buffers_;  // in blocks, by the program's
  std::unordered_map<const NodeHeader*, Attrs> notes_;
};

}  // namespace

std::variant<PrimFuncRef, std::string> blocked_program(const KernelCall& call, const PrimFuncRef& program,
                                                       const ImageBlocks& blocks) {
  if (program->attrs.get_bool(attr_names::kIsScheduled, false)) return "it is scheduled already";
  const PrimFuncRef plain = with_single_stores(promote_indices(program));
  const KernelMatch match = match_kernel(call, plain);
  const bool is_plain = !call.has_destinations && call.in_place.empty() && call.scalars.empty() &&
                        match.contradictions.empty() && match.operands.size() == plain->params.size();
  if (!is_plain) return "it has other params than its operands and results";
  for (const KernelOperand& operand : match.operands) {
    const BufferType& type = buffer_type(operand.param);
    if (!type.strides.empty() || type.elem_offset || type.auto_broadcast)
      return fmt::format("'{}' has strides or an offset", operand.param->name);
    bool is_image = operand.is_output || blocks.are_blocked[operand.number];
    if (is_image && type.shape.size() != 4)
      return fmt::format("'{}' is not an image of four dims", operand.param->name);
  }
  return ProgramBlocker(match, plain, blocks).run();
}

}  // namespace relaxc
