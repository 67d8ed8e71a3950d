#include "passes/layout_programs.h"

#include <algorithm>

#include "ir/attr_names.h"
#include "passes/compose.h"
#include "tir/analysis/nests.h"
#include "tir/compute.h"
#include "tir/lower/lower.h"
#include "tir/program.h"

namespace relaxc {

namespace {

class ProgramInLayout {
 public:
  ProgramInLayout(const KernelMatch& match, const PrimFuncRef& program, const LaidOut& laid_out)
      : match_(match), program_(program), layout_(laid_out.layout), laid_out_(laid_out) {}

  std::variant<PrimFuncRef, std::string> run() {
    auto nests = find_nests(program_);
    if (!nests) return "it is not made of blocks in plain loops";
    set_split_dims();
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
  bool is_laid_out(const KernelOperand& operand) const {
    return !operand.is_output && laid_out_.tensors[operand.number];
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
                                                           is_laid_out(operand) ? layout_.from_plain(shape) : shape));
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
      Buffer made = builder_.compute(std::move(name), buffer_type(buffer).dtype, layout_.from_plain(shape_of(buffer)),
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
  // Returns whether the store is of the element of the block's axes in a tensor like the results.
  bool is_image(const BufferStore& store) const {
    const std::vector<Expr>& shape = buffer_type(store.buffer).shape;
    if (shape.size() != laid_out_.dims.size() || axes_.size() != shape.size() || !is_at(store.indices, axes_))
      return false;
    for (size_t axis : split_axes()) {
      if (!is_int(simplify(substitute(shape[axis], split_dims_)), *as_int(laid_out_.dims[axis]))) return false;
    }
    return true;
  }
  std::vector<size_t> split_axes() const {
    std::vector<size_t> result;
    for (size_t axis = 0; axis < layout_.axes().size(); ++axis) {
      if (layout_.block_of(axis) > 1) result.push_back(axis);
    }
    return result;
  }

  // Returns what the store reads that it could not read there, or "".
  std::string refused_load(const BufferStore& store) const {
    for (const Ref<BufferLoad>& load : loads_of(store.value)) {
      const KernelOperand* operand = operand_of(load->buffer);
      const bool is_own = !operand || operand->is_output;
      if (is_own && !is_made(load->buffer)) return fmt::format("it reads '{}', which it makes", load->buffer->name);
      if (is_own || is_laid_out(*operand)) {
        if (!is_at(load->indices, axes_))
          return fmt::format("it reads other elements of '{}' than the one that it stores", load->buffer->name);
        continue;
      }
      // The channels of the padding are none of the operand's.
      for (size_t axis : split_axes()) {
        const int64_t channels = *as_int(laid_out_.dims[axis]), block = layout_.block_of(axis);
        auto varies = [&](const Expr& index) { return uses_var(index, axes_[axis].var) || holds<BufferLoad>(index); };
        if (channels % block != 0 && std::ranges::any_of(load->indices, varies))
          return fmt::format("it reads '{}' by channel, and {} channels do not fill blocks of {}", load->buffer->name,
                             channels, block);
      }
    }
    return "";
  }

  // The program's dims that are split are constants there.
  void set_split_dims() {
    for (const KernelOperand& operand : match_.operands) {
      if (!is_laid_out(operand) && !operand.is_output) continue;
      for (size_t axis : split_axes()) {
        const Expr& dim = buffer_type(operand.param).shape[axis];
        if (dim.is<Var>())
          split_dims_.insert_or_assign(dim.get(), int_imm(*as_int(laid_out_.dims[axis]), dtype_of(dim)));
      }
    }
  }

  std::vector<Expr> shape_of(const Buffer& buffer) const {
    return map_each(buffer_type(buffer).shape, [&](const Expr& dim) { return substitute(dim, split_dims_); });
  }

  // Returns what a store stores at an element of the layout.
  Expr value_at(const Expr& value, Axes at) const {
    Expr result = rewrite(value, [&](const Ref<BufferLoad>& read) -> std::optional<Expr> {
      const KernelOperand* operand = operand_of(read->buffer);
      if (operand && !operand->is_output && !is_laid_out(*operand)) return std::nullopt;
      return load(cast<Var>(buffers_.at(read->buffer.get())), at);
    });
    VarMap map = split_dims_;
    map.insert(buffers_.begin(), buffers_.end());
    const std::vector<Expr> plain = layout_.to_plain_index(at);
    for (size_t d = 0; d < axes_.size(); ++d) map.insert_or_assign(axes_[d].var.get(), plain[d]);
    return substitute(result, map);
  }

  const KernelMatch& match_;
  const PrimFuncRef& program_;
  const Layout& layout_;
  const LaidOut& laid_out_;
  ComputeBuilder builder_;
  std::vector<IterVar> axes_;  // of the block that is being added
  VarMap split_dims_;
  VarMap buffers_;  // in the layout, by the program's
  std::unordered_map<const NodeHeader*, Attrs> notes_;
};

}  // namespace

std::variant<PrimFuncRef, std::string> program_in_layout(const KernelCall& call, const PrimFuncRef& program,
                                                         const LaidOut& laid_out) {
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
    bool is_image = operand.is_output || laid_out.tensors[operand.number];
    if (is_image && type.shape.size() != laid_out.dims.size())
      return fmt::format("'{}' is not an image of {} dims", operand.param->name, laid_out.dims.size());
  }
  return ProgramInLayout(match, plain, laid_out).run();
}

}  // namespace relaxc
