// Prints types, and the entries of the module's lists of devices and meshes.
#include <algorithm>

#include "ir/text/printing.h"

namespace relaxc::text {

// Prints "mesh[0]" where the module has the mesh, else the mesh in full.
std::string Printer::mesh(const DeviceMesh& mesh) {
  if (module_ && module_->global_infos.contains("mesh")) {
    const std::vector<GlobalInfo>& known = module_->global_infos.at("mesh");
    auto same = std::ranges::find(known, GlobalInfo(mesh));
    if (same != known.end()) return fmt::format("\"mesh[{}]\"", same - known.begin());
  }
  return global_info(mesh);
}

std::string Printer::dtensor_type(const DTensorType& node) {
  const TensorType& tensor = *node.tensor.as<TensorType>();
  std::string placement = string_literal(node.placement);
  if (known_shape(node.tensor) && tensor.dtype)
    return fmt::format("R.DTensor({}, {}, {}, {})", shape(*known_shape(node.tensor)), dtype_literal(*tensor.dtype),
                       mesh(node.mesh), placement);
  // The tensor's arguments come first, then mesh and placement.
  std::string text = tensor_type(tensor);
  size_t open = text.find('(');
  std::string inner = open == std::string::npos ? "" : text.substr(open + 1, text.size() - open - 2) + ", ";
  return fmt::format("R.DTensor({}device_mesh={}, placement={})", inner, mesh(node.mesh), placement);
}

std::string global_info(const GlobalInfo& info) {
  if (const VDevice* device = std::get_if<VDevice>(&info))
    return fmt::format("I.vdevice({}, {}, {})", to_string(device->target), device->id,
                       string_literal(device->memory_scope));
  const DeviceMesh* mesh = std::get_if<DeviceMesh>(&info);
  if (!mesh) return "I.dummy_global_info()";
  auto follows = [](int64_t a, int64_t b) { return b == a + 1; };
  auto gap = std::ranges::adjacent_find(mesh->devices, std::not_fn(follows));
  bool consecutive = !mesh->devices.empty() && gap == mesh->devices.end();
  std::string devices = consecutive ? fmt::format("I.Range({}, {})", mesh->devices.front(), mesh->devices.back() + 1)
                                    : fmt::format("[{}]", fmt::join(mesh->devices, ", "));
  return fmt::format("R.device_mesh(({}{}), {})", fmt::join(mesh->shape, ", "), mesh->shape.size() == 1 ? "," : "",
                     devices);
}

std::string Printer::tensor_type(const TensorType& node) {
  std::vector<std::string> items;
  const ShapeExpr* dims = node.shape ? node.shape->as<ShapeExpr>() : nullptr;
  if (node.shape) items.push_back(dims ? shape(dims->values) : expr(*node.shape));
  if (node.dtype) items.push_back("dtype=" + dtype_literal(*node.dtype));
  if (!node.shape && node.ndim >= 0) items.push_back(fmt::format("ndim={}", node.ndim));
  if (!node.vdevice.empty()) items.push_back("vdevice=" + string_literal(node.vdevice));
  return items.empty() ? "R.Tensor" : fmt::format("R.Tensor({})", fmt::join(items, ", "));
}

std::string Printer::func_type(const FuncType& node) {
  if (!node.params) {
    std::string derive = node.derive_func.empty() ? "" : ", derive_func=" + string_literal(node.derive_func);
    if (node.result.is<ObjectType>() && !node.pure && derive.empty()) return "R.Callable";
    std::string ret = derive.empty() ? fmt::format("ret={}, ", type(node.result)) : "";
    return fmt::format("R.Callable({}purity={}{})", ret, node.pure ? "True" : "False", derive);
  }
  // Dims that the function's params introduce are local to it; as strings they need no declaration.
  NameScope scope(names_);
  Temporarily quoted(quote_dims_, true);
  std::string params = joined(*node.params, &Printer::type);
  return fmt::format("R.Callable(({}{}), {}, {})", params, node.params->size() == 1 ? "," : "", type(node.result),
                     node.pure ? "True" : "False");
}

std::string Printer::type(const Type& t) {
  return match(
      t, [&](const ObjectType&) { return std::string(spelled("R.Object")); },
      [&](const PrimType& node) {
        if (node.value) return fmt::format("R.Prim(value={})", dim(*node.value));
        if (default_int_ == kInt64 && options_.dialect == Dialect::kTvm23)
          return fmt::format("R.Prim({})", dtype_literal(node.dtype));
        if (!node.pointee) return scalar_type_name(node.dtype);
        return fmt::format("T.handle({}, {})", dtype_literal(*node.pointee),
                           string_literal(node.scope.empty() ? "global" : node.scope));
      },
      [&](const ShapeType& node) -> std::string {
        if (!node.values) return node.ndim < 0 ? "R.Shape" : fmt::format("R.Shape(ndim={})", node.ndim);
        return fmt::format("R.Shape([{}])", joined(*node.values, &Printer::dim));
      },
      [&](const TensorType& node) { return tensor_type(node); },
      [&](const BufferType& node) {
        BufferType plain = node;
        plain.dtype = kFloat32;  // printed below: in annotations the dtype always stands
        std::string rest = buffer_args(plain), dims = shape(node.shape);
        return fmt::format("T.Buffer({}, {}{})", dims, dtype_literal(node.dtype), rest.substr(dims.size()));
      },
      [&](const TupleType& node) -> std::string {
        return node.items.empty() ? "R.Tuple" : fmt::format("R.Tuple({})", joined(node.items, &Printer::type));
      },
      [&](const DTensorType& node) { return dtensor_type(node); },
      [&](const FuncType& node) { return func_type(node); });
}

}  // namespace relaxc::text
