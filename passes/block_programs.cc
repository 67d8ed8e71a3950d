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
    if (!nests || nests->size() != 1) return "it is not one block in plain loops";
    const Ref<Block>& block = nests->front();
    const BufferStore* store = single_store(*block);
    axes_ = axes_of(*block, IterKind::kSpatial);
    const KernelOperand& result = match_.operands.back();
    if (!store || axes_.size() != 4 || block->iter_vars.size() != 4 || !is_at(store->indices, axes_) ||
        !same_node(store->buffer, result.param))
      return fmt::format("block '{}' does not store one element of the image for each of its axes", block->name);
    if (std::string why = refused_load(*store); !why.empty()) return why;
    set_channels();
    ComputeBuilder b;
    VarMap buffers;
    for (const KernelOperand& operand : match_.operands) {
      const BufferType& type = buffer_type(operand.param);
      if (operand.is_output) continue;
      std::vector<Expr> shape = map_each(type.shape, [&](const Expr& dim) { return substitute(dim, channels_); });
      buffers.emplace(operand.param.get(), b.input(operand.param->name, type.dtype,
                                                   is_blocked(operand) ? blocked(std::move(shape)) : std::move(shape)));
    }
    std::vector<Expr> shape =
        map_each(buffer_type(result.param).shape, [&](const Expr& dim) { return substitute(dim, channels_); });
    Buffer out = b.compute(block->name, buffer_type(result.param).dtype, blocked(std::move(shape)),
                           [&](Axes at) { return value_at(store->value, at, buffers); });
    PrimFuncRef made = b.finish({out}, program_->attrs.without(attr_names::kGlobalSymbol));
    Stmt body = rewrite(made->body, [&](const Ref<Block>& other) -> std::optional<Stmt> {
      if (other->name != block->name) return std::nullopt;
      return edited<Block>(other, [&](Block& copy) { copy.annotations = block->annotations; });
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

  // Returns what the program reads that it could not read in blocks, or "".
  std::string refused_load(const BufferStore& store) const {
    const bool is_padded = blocks_.channels % blocks_.block != 0;
    for (const Ref<BufferLoad>& load : loads_of(store.value)) {
      const KernelOperand* operand = operand_of(load->buffer);
      if (!operand || operand->is_output) return fmt::format("it reads '{}', which it makes", load->buffer->name);
      if (is_blocked(*operand)) {
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

  // Returns what the program stores at [n, c / block, h, w, c % block].
  Expr value_at(const Expr& value, Axes at, const VarMap& buffers) const {
    Expr result = rewrite(value, [&](const Ref<BufferLoad>& read) -> std::optional<Expr> {
      const KernelOperand* operand = operand_of(read->buffer);
      if (!operand || !is_blocked(*operand)) return std::nullopt;
      return load(cast<Var>(buffers.at(read->buffer.get())), at);
    });
    VarMap map = channels_;
    map.insert(buffers.begin(), buffers.end());
    for (size_t d = 0; d < axes_.size(); ++d)
      map.emplace(axes_[d].var.get(), d == 1 ? at[1] * int_imm(blocks_.block) + at[4] : at[d]);
    return substitute(result, map);
  }

  const KernelMatch& match_;
  const PrimFuncRef& program_;
  const ImageBlocks& blocks_;
  std::vector<IterVar> axes_;
  VarMap channels_;
};

}  // namespace

std::variant<PrimFuncRef, std::string> blocked_program(const KernelCall& call, const PrimFuncRef& program,
                                                       const ImageBlocks& blocks) {
  if (program->attrs.get_bool(attr_names::kIsScheduled, false)) return "it is scheduled already";
  const PrimFuncRef plain = with_single_stores(promote_indices(program));
  const KernelMatch match = match_kernel(call, plain);
  const bool is_plain = !call.has_destinations && call.in_place.empty() && call.scalars.empty() &&
                        call.outputs.size() == 1 && match.contradictions.empty() &&
                        match.operands.size() == plain->params.size() && !match.operands.empty() &&
                        match.operands.back().is_output;
  if (!is_plain) return "it has other params than its operands and one result";
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
