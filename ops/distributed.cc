// Operators on tensors that several workers hold: collectives (ccl) and sharding (dist).
#include <algorithm>

#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

int64_t checked_workers(const OpCall& op, std::optional<int64_t> count) {
  if (count.value_or(0) < 1) op.fail("num_workers is {}, expected at least 1", count.value_or(0));
  return *count;
}
Type infer_part(const OpCall& op) {
  if (op.arg(0).type().is<DTensorType>()) return object_type();
  PartAttrs attrs = op.attrs<PartAttrs>();
  std::vector<Expr> shape = op.shape(0);
  int64_t count = checked_workers(op, attrs.num_workers), axis = normalize_axis(op, attrs.axis, op.rank(0));
  op.require_multiple(shape[axis], count, fmt::format("workers do not divide axis {}", axis));
  shape[axis] = simplify(floor_div(shape[axis], count));
  return tensor_type(std::move(shape), op.dtype(0));
}
Type infer_allgather(const OpCall& op) {
  std::vector<Expr> shape = op.shape(0);
  if (shape.empty()) op.fail("expected at least one axis, got a scalar");
  shape[0] = simplify(shape[0] * checked_workers(op, op.attrs<AllGatherAttrs>().num_workers));
  return tensor_type(std::move(shape), op.dtype(0));
}
PlacementAttrs checked_placement(const OpCall& op) {
  PlacementAttrs attrs = op.attrs<PlacementAttrs>();
  size_t axes = 1 + static_cast<size_t>(std::ranges::count(attrs.placement, ','));
  if (attrs.placement.empty() || axes != attrs.device_mesh.shape.size())
    op.fail("placement \"{}\" for a mesh of {} axes", attrs.placement, attrs.device_mesh.shape.size());
  return attrs;
}
Type infer_annotate(const OpCall& op) {
  checked_placement(op);
  return op.arg(0).type();
}
Type infer_redistribute(const OpCall& op) {
  PlacementAttrs attrs = checked_placement(op);
  const DTensorType* spread = op.arg(0).type().as<DTensorType>();
  if (!spread) op.fail("expected a distributed tensor");
  return make(DTensorType{spread->tensor, attrs.device_mesh, attrs.placement});
}

constexpr const char* kDistributed =
    "tensors that are spread over devices have no run time; compile the module without R.DTensor";

// This runtime is one worker, which holds whole tensors, so that an exchange of parts gives the tensor itself.
Expr of_one_worker(const OpCall& op, Builder&) {
  std::optional<int64_t> count = 1;
  if (const AttrValue* workers = op.call.attrs.find("num_workers")) from_attr(*workers, count);
  if (count.value_or(1) != 1) op.unsupported("num_workers is {}; this runtime is one worker", *count);
  DeviceMesh mesh;
  const AttrValue* placed = op.call.attrs.find("device_mesh");
  if (placed && from_attr(*placed, mesh) && mesh.devices.size() != 1)
    op.unsupported("a mesh of {} devices; this runtime is one device", mesh.devices.size());
  return op.arg(0);
}
OpRow on_one_worker(OpRow row) {
  row.decompose = of_one_worker;
  return row;
}

}  // namespace

std::vector<OpRow> distributed_ops() {
  const std::vector<OpInput> x = {{"x", "the tensor"}}, input = {{"input", "the tensor"}};
  const std::vector<OpAttr> plan = op_attrs<PlacementAttrs>();
  return {
      on_one_worker({.name = "relax.ccl.allreduce",
                     .doc = "the tensors of all workers combined, for each worker",
                     .inputs = x,
                     .attrs = with_choices(op_attrs<AllReduceAttrs>(), "op_type", {"sum", "prod", "min", "max", "avg"}),
                     .infer = infer_like_first}),
      on_one_worker({.name = "relax.ccl.allgather",
                     .doc = "the tensors of all workers joined along axis 0, for each worker",
                     .inputs = x,
                     .attrs = op_attrs<AllGatherAttrs>(),
                     .infer = infer_allgather}),
      on_one_worker({.name = "relax.ccl.broadcast_from_worker0",
                     .doc = "worker 0's tensor, for each worker",
                     .inputs = x,
                     .infer = infer_like_first}),
      on_one_worker({.name = "relax.ccl.scatter_from_worker0",
                     .doc = "each worker's part of worker 0's tensor",
                     .inputs = x,
                     .attrs = op_attrs<PartAttrs>(),
                     .infer = infer_part}),
      on_one_worker({.name = "relax.dist.annotate_sharding",
                     .doc = "the tensor itself, with its placement on a mesh",
                     .inputs = input,
                     .attrs = plan,
                     .infer = infer_annotate}),
      {.name = "relax.dist.redistribute",
       .doc = "the tensor spread over a mesh in another way",
       .inputs = input,
       .attrs = plan,
       .infer = infer_redistribute,
       .why = kDistributed},
      on_one_worker({.name = "relax.dist.redistribute_replica_to_shard",
                     .doc = "each worker's part of a tensor that all have",
                     .inputs = input,
                     .attrs = op_attrs<PartAttrs>(),
                     .infer = infer_part}),
      {.name = "relax.dist.call_tir_local_view",
       .doc = "a tensor program on each worker's part",
       .inputs = {{"gvar", "the program"},
                  {"args", "tuple of tensors"},
                  {"tir_vars", "shape: scalar arguments", OpInput::Arity::kOptional}},
       .infer = infer_stated,
       .why = kDistributed},
  };
}

}  // namespace relaxc
