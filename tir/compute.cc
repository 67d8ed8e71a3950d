#include "tir/compute.h"

#include <algorithm>
#include <limits>
#include <span>

#include "ir/regions.h"
#include "ir/visit.h"
#include "support/diagnostic.h"
#include "tir/program.h"

namespace relaxc {

Buffer ComputeBuilder::input(std::string name, DType dtype, std::vector<Expr> shape) {
  params_.push_back(make_buffer(std::move(name), dtype, std::move(shape)));
  return params_.back();
}

std::vector<Expr> tensors_of(const Call& call) {
  std::vector<Expr> result;
  for (const Expr& arg : call.args) {
    const Tuple* tuple = arg.as<Tuple>();
    std::ranges::copy_if(tuple ? std::span<const Expr>(tuple->items) : std::span(&arg, 1), std::back_inserter(result),
                         [](const Expr& item) { return item.type().is<TensorType>(); });
  }
  return result;
}

std::vector<Buffer> ComputeBuilder::inputs_of(const OpCall& op) {
  std::vector<Buffer> result;
  for (const Expr& arg : tensors_of(op.call)) {
    const std::vector<Expr>* shape = known_shape(arg.type());
    std::optional<DType> dtype = tensor_dtype(arg.type());
    if (!shape || !dtype)
      op.fail(
          "cannot be lowered: the shape or dtype of an argument is not known; give it: "
          "y = R.match_cast(x, R.Tensor((n, m), \"float32\"))");
    const Var* var = arg.as<Var>();
    result.push_back(input(var ? var->name : fmt::format("input{}", params_.size()), *dtype, *shape));
  }
  return result;
}

VarRef ComputeBuilder::scalar(std::string name, DType dtype) {
  params_.push_back(make_var(std::move(name), prim_type(dtype)));
  return params_.back();
}

Buffer ComputeBuilder::buffer(std::string name, DType dtype, std::vector<Expr> shape, std::string scope) {
  buffers_.push_back(make_buffer(std::move(name), dtype, std::move(shape), std::move(scope)));
  return buffers_.back();
}

Buffer ComputeBuilder::compute(std::string name, DType dtype, std::vector<Expr> shape,
                               const std::function<Expr(Axes)>& value, Attrs annotations) {
  Buffer out = buffer(name, dtype, shape);
  block(
      std::move(name), std::move(shape), {},
      [&](Axes i, Axes) { return Bodies{std::nullopt, store(out, value(i), i)}; }, std::move(annotations));
  return out;
}

Buffer ComputeBuilder::reduce(std::string name, DType dtype, std::vector<Expr> shape, std::vector<Expr> reduced,
                              const Expr& init, const Combine& combine, const std::function<Expr(Axes, Axes)>& value) {
  if (reduced.empty())
    return compute(std::move(name), dtype, std::move(shape), [&](Axes i) { return combine(init, value(i, {})); });
  Buffer out = buffer(name, dtype, shape);
  block(std::move(name), std::move(shape), std::move(reduced),
        [&](Axes i, Axes r) { return Bodies{store(out, init, i), store(out, combine(load(out, i), value(i, r)), i)}; });
  return out;
}

void ComputeBuilder::annotate(std::string name, AttrValue value) {
  stages_.back() = rewrite(stages_.back(), [&](const Ref<Block>& block) -> std::optional<Stmt> {
    return edited<Block>(block, [&](Block& copy) { copy.annotations.set(name, value); });
  });
}

void ComputeBuilder::block(std::string name, std::vector<Expr> spatial, std::vector<Expr> reduced,
                           const std::function<Bodies(Axes, Axes)>& bodies, Attrs annotations) {
  std::vector<IterVar> iter_vars;
  std::vector<VarRef> loop_vars;
  std::vector<Expr> spatial_axes, reduced_axes, extents;
  auto add_axis = [&](const Expr& extent, IterKind kind, std::string loop_name) {
    DType dtype = dtype_of(extent);
    VarRef loop_var = make_var(loop_name, prim_type(dtype));
    VarRef axis = make_var("v_" + loop_name, prim_type(dtype));
    loop_vars.push_back(loop_var);
    extents.push_back(extent);
    iter_vars.push_back({axis, {int_imm(0, dtype), extent}, kind, loop_var});
    (kind == IterKind::kSpatial ? spatial_axes : reduced_axes).push_back(axis);
  };
  for (size_t d = 0; d < spatial.size(); ++d) add_axis(spatial[d], IterKind::kSpatial, fmt::format("i{}", d));
  for (size_t d = 0; d < reduced.size(); ++d) add_axis(reduced[d], IterKind::kReduce, fmt::format("k{}", d));

  Bodies built = bodies(spatial_axes, reduced_axes);
  Accesses accesses = find_accesses(built.body, built.init);
  Stmt stmt = make(Block{.name = std::move(name),
                         .iter_vars = std::move(iter_vars),
                         .reads = std::move(accesses.reads),
                         .writes = std::move(accesses.writes),
                         .annotations = std::move(annotations),
                         .init = built.init,
                         .body = built.body});
  for (size_t i = loop_vars.size(); i-- > 0;) stmt = loop(loop_vars[i], extents[i], stmt);
  stages_.push_back(stmt);
}

void ComputeBuilder::extern_block(std::string name, Stmt body) {
  block(std::move(name), {}, {}, [&](Axes, Axes) { return Bodies{std::nullopt, body}; });
}

Stmt root_block(std::vector<Buffer> intermediates, Stmt body) {
  return make(Block{.name = kRootBlock, .alloc_buffers = std::move(intermediates), .body = std::move(body)});
}

Stmt take_root(const Stmt& stmt, std::vector<Buffer>& buffers) {
  const Block* root = stmt.as<Block>();
  if (!root || !is_root(*root) || root->init) return stmt;
  buffers.insert(buffers.end(), root->alloc_buffers.begin(), root->alloc_buffers.end());
  return root->body;
}

PrimFuncRef ComputeBuilder::finish(const std::vector<Buffer>& outputs, Attrs attrs) {
  std::vector<VarRef> params = params_;
  std::vector<Buffer> intermediates = buffers_;
  for (const Buffer& output : outputs) {
    auto is_it = [&](const Buffer& other) { return same_node(other, output); };
    if (std::ranges::none_of(buffers_, is_it))
      fail(output.span(), "output '{}' is not a buffer that this builder made", output->name);
    if (std::erase_if(intermediates, is_it) == 0) fail(output.span(), "output '{}' is named twice", output->name);
    if (std::ranges::none_of(stages_, [&](const Stmt& stage) { return uses_var(stage, output); }))
      fail(output.span(), "no stage makes output '{}'", output->name);
    params.push_back(output);
  }
  Stmt root = root_block(std::move(intermediates), seq(stages_));
  return make_prim_func({std::move(params), root, std::move(attrs)});
}

Expr combine_sum(const Expr& a, const Expr& b) { return binary(BinaryOp::kAdd, a, b); }
Expr combine_prod(const Expr& a, const Expr& b) { return binary(BinaryOp::kMul, a, b); }
Expr combine_max(const Expr& a, const Expr& b) { return binary(BinaryOp::kMax, a, b); }
Expr combine_min(const Expr& a, const Expr& b) { return binary(BinaryOp::kMin, a, b); }

Expr lowest(DType dtype) {
  if (dtype.is_float()) return float_imm(-std::numeric_limits<double>::infinity(), dtype);
  if (dtype.is_int()) return int_imm(dtype.bits == 64 ? INT64_MIN : -(int64_t{1} << (dtype.bits - 1)), dtype);
  return int_imm(0, dtype);
}
Expr highest(DType dtype) {
  if (dtype.is_float()) return float_imm(std::numeric_limits<double>::infinity(), dtype);
  if (dtype.is_int()) return int_imm(dtype.bits == 64 ? INT64_MAX : (int64_t{1} << (dtype.bits - 1)) - 1, dtype);
  return int_imm(dtype.is_bool() ? 1 : -1, dtype);
}

Expr power_in_softmax(const Expr& x, double least) {
  const DType dtype = dtype_of(x);
  return intrinsic("tir.exp", {select(x < float_imm(least, dtype), lowest(dtype), x)}, dtype);
}
double least_normal_power(DType dtype) { return dtype.bits == 64 ? -708 : -86.75; }

Expr at(const Buffer& buffer, Axes axes) { return load(buffer, axes); }

}  // namespace relaxc
