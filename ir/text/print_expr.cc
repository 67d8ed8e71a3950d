// Prints expressions and types as text: names, numbers, constants, calls, devices.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/intrinsics.h"
#include "ir/kernel_call.h"
#include "ir/op.h"
#include "ir/op_names.h"
#include "ir/text/printing.h"

namespace relaxc::text {

namespace {

std::string lanes_text(int64_t lanes) {
  if (lanes == -1) return "T.vscale()";
  return lanes < 0 ? fmt::format("T.vscale() * {}", -lanes) : fmt::format("{}", lanes);
}

// Spellings that changed after TVM 0.23.
constexpr std::pair<std::string_view, std::string_view> kSpellings[] = {
    {"R.Object", "R.Any"},
    {"T.alloc_buffer", "T.sblock_alloc_buffer"},
    {"T.block", "T.sblock"},
    {"T.block_attr", "T.sblock_attr"},
    {"T.decl_buffer", "T.alloc_buffer"},
    {"from tvm.script import tir as T", "from tvm.script import tirx as T"},
    {"out_sinfo", "out_ty"},
    {"sinfo_args", "ty_args"},
};

std::string in_parentheses(const std::string& items, size_t count) {
  return fmt::format("({}{})", items, count == 1 ? "," : "");
}

std::string digits_of(int64_t value, DType dtype) {
  return dtype.is_uint() ? fmt::format("{}", static_cast<uint64_t>(value)) : fmt::format("{}", value);
}

// Prints "0.5", which reads back to the same value of the dtype; infinities and NaN in quotes.
std::string float_text(double value, DType dtype) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  std::string text = fmt::format("{}", value);
  if (dtype.bits <= 32) {
    // The shortest text of the narrow value is used where it survives the reader's rounding to double first.
    std::string narrow = fmt::format("{}", static_cast<float>(value));
    // For the largest numbers it would be out of range for readers that look at the double.
    if (std::isfinite(value) && std::abs(std::stod(narrow)) > std::abs(value) && std::abs(value) > 1e38) narrow = text;
    if (std::stod(narrow) == value || static_cast<float>(std::stod(narrow)) == static_cast<float>(value)) text = narrow;
  }
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// Returns the text of a float in an expression of Python.
std::string float_expression(double value, DType dtype) {
  std::string text = float_text(value, dtype);
  return text.starts_with('"') ? "float(" + text + ")" : text;
}

std::string element_text(const Tensor& data, int64_t i) {
  DType dtype = data.dtype();
  if (dtype.is_string()) return string_literal(std::string(data.string(i)));
  if (dtype.is_bool()) return data.as_int(i) ? "True" : "False";
  if (dtype.is_uint() || dtype.is_int()) return digits_of(data.as_int(i), dtype);
  if (!dtype.is_complex()) return float_expression(data.as_double(i), dtype);
  const Tensor parts = parts_of(data);
  auto part = [&](int64_t k) { return float_expression(parts.as_double(2 * i + k), parts.dtype()); };
  return fmt::format("complex({}, {})", part(0), part(1));
}

std::string nested_list(const Tensor& data, size_t axis, int64_t& next) {
  if (axis == data.shape().size()) return element_text(data, next++);
  std::string text = "[";
  for (int64_t i = 0; i < data.shape()[axis]; ++i) text += (i > 0 ? ", " : "") + nested_list(data, axis + 1, next);
  return text + "]";
}

// Returns whether a NaN has another payload than the one to which `nan` reads back; such tensors print as bytes.
bool has_odd_nan(const Tensor& tensor) {
  const Tensor data = parts_of(tensor);
  DType dtype = data.dtype();
  if (!dtype.is_float() || dtype.is_packed()) return false;
  Tensor probe = Tensor::empty({1}, dtype);
  probe.set_double(0, std::nan(""));
  const char* bytes = static_cast<const char*>(data.raw());
  for (int64_t i = 0; i < data.size(); ++i) {
    bool same = std::memcmp(probe.raw(), bytes + i * dtype.bytes(), static_cast<size_t>(dtype.bytes())) == 0;
    if (!same && std::isnan(data.as_double(i))) return true;
  }
  return false;
}

}  // namespace

std::string_view Printer::spelled(std::string_view name) const {
  const std::string_view* later = options_.dialect == Dialect::kTvm23 ? nullptr : row_of(kSpellings, name);
  return later ? *later : name;
}

// A number is printed with its dtype unless that is the dtype of a plain number.
std::string Printer::attribute(const AttrValue& value) {
  return to_string(value, [&](const Expr& e) {
    const IntImm* number = e.as<IntImm>();
    if (!number) return expr(e);
    return fmt::format("{}({})", scalar_type_name(dtype_of(e)), digits_of(number->value, dtype_of(e)));
  });
}
std::string Printer::dictionary(const Attrs& attrs) {
  if (options_.dialect == Dialect::kTvm23) return attribute(attrs);
  Attrs later;
  for (const auto& [key, value] : attrs) later.set(key.starts_with("tir.") ? "tirx" + key.substr(3) : key, value);
  return attribute(later);
}

std::string string_literal(std::string_view text) { return to_string(AttrValue(std::string(text))); }

std::string scalar_type_name(DType dtype) { return "T." + to_string(dtype); }

Expr range_end(const Range& range) {
  auto min = as_int(range.min), extent = as_int(range.extent);
  if (min == 0) return range.extent;
  DType dtype = dtype_of(range.min);
  if (min && extent && dtype_of(range.extent) == dtype) return int_imm(*min + *extent, dtype);
  if (dtype_of(range.extent) != dtype) return range.min + cast_to(range.extent, dtype);
  return relaxc::binary(BinaryOp::kAdd, range.min, range.extent);
}

std::vector<VarRef> free_scalars(const NodeRef& node) {
  std::vector<VarRef> vars = free_vars(node);
  std::erase_if(vars, [](const VarRef& var) { return !var.type().is<PrimType>(); });
  return vars;
}

const std::string& Printer::name(const VarRef& var) {
  const std::string* known = names_.find(var);
  return known ? *known : names_.define(var);
}

std::string Printer::list(const std::vector<Expr>& items) { return printed(items, &Printer::expr); }

std::string Printer::dim(const Expr& dim) {
  if (!quote_dims_ || dim.is<IntImm>()) return expr(dim);
  std::string text = expr(dim);  // quoted text has no escapes, so a cast's dtype uses the other kind of quotes
  return text.find('"') == std::string::npos ? string_literal(text) : fmt::format("'{}'", text);
}
std::string Printer::shape(const std::vector<Expr>& dims) {
  return in_parentheses(printed(dims, &Printer::dim), dims.size());
}

std::string Printer::integer(int64_t value, DType dtype) {
  if (dtype.is_bool()) return value ? "T.bool(True)" : "T.bool(False)";
  std::string digits = digits_of(value, dtype);
  return dtype == default_int_ ? digits : fmt::format("T.{}({})", to_string(dtype), digits);
}

std::string Printer::binary(const Binary& node, int level) {
  const BinaryOpInfo& row = info(node.op);
  // The reader folds operators on two constants.
  bool folds = node.a.is<IntImm>() && node.b.is<IntImm>();
  bool integers = !dtype_of(node.a).is_float();
  if (node.op == BinaryOp::kTruncMod) return fmt::format("T.truncmod({}, {})", expr(node.a), expr(node.b));
  if (node.op == BinaryOp::kDiv && integers) return fmt::format("T.truncdiv({}, {})", expr(node.a), expr(node.b));
  if (!row.symbol || folds) return fmt::format("T.{}({}, {})", row.name, expr(node.a), expr(node.b));
  int inner = precedence(row.symbol);
  // Python chains comparisons, so both operands of one must bind tighter. Other operators associate to the left.
  int left = inner == kCompareLevel ? inner + 1 : inner;
  std::string text = fmt::format("{} {} {}", expr(node.a, left), row.symbol, expr(node.b, inner + 1));
  return inner < level ? "(" + text + ")" : text;
}

// Prints an index of a buffer. Vectors of consecutive elements, or of elements at a constant distance, are slices.
std::string Printer::index(const Expr& index) {
  const Ramp* ramp = index.as<Ramp>();
  const IntImm* stride = ramp ? ramp->stride.as<IntImm>() : nullptr;
  bool scalable = ramp && ramp->lanes < 0;
  if (!stride || stride->value == 0 || (scalable && (stride->value != 1 || dtype_of(ramp->base) != kInt32)))
    return expr(index);
  Expr extent = scalable ? intrinsic(ops::kVscale, {}, kInt32) * -ramp->lanes
                         : int_imm(ramp->lanes * stride->value, dtype_of(ramp->base));
  std::string end = expr(range_end({ramp->base, extent}));
  return fmt::format("{}:{}{}", expr(ramp->base), end, stride->value == 1 ? "" : fmt::format(":{}", stride->value));
}
std::string Printer::element(const Buffer& buffer, const std::vector<Expr>& indices) {
  return fmt::format("{}[{}]", name(buffer), indices.empty() ? "()" : printed(indices, &Printer::index));
}

std::string Printer::range(const Range& range) {
  const IntImm* extent = range.extent.as<IntImm>();
  if (extent && extent->value == 1 && dtype_of(range.extent) == dtype_of(range.min)) return expr(range.min);
  return fmt::format("{}:{}", expr(range.min), expr(range_end(range)));
}
std::string Printer::region(const BufferRegion& region) {
  return fmt::format("{}[{}]", name(region.buffer),
                     region.ranges.empty() ? "()" : printed(region.ranges, &Printer::range));
}

// Prints the arguments of T.match_buffer, T.alloc_buffer and T.decl_buffer: `(128, 64), "float32", scope="local"`.
std::string Printer::buffer_args(const BufferType& type) {
  BufferType defaults;
  std::string text = shape(type.shape);
  if (type.dtype != kFloat32) text += ", " + string_literal(to_string(type.dtype));
  if (type.data) text += ", data=" + expr(*type.data);
  if (!type.strides.empty()) text += ", strides=" + shape(type.strides);
  if (type.elem_offset) text += ", elem_offset=" + expr(*type.elem_offset);
  if (type.scope != defaults.scope) text += ", scope=" + string_literal(type.scope);
  if (type.data_alignment != defaults.data_alignment) text += fmt::format(", align={}", type.data_alignment);
  if (type.offset_factor != defaults.offset_factor) text += fmt::format(", offset_factor={}", type.offset_factor);
  if (type.auto_broadcast) text += ", buffer_type=\"auto\"";
  if (!type.axis_separators.empty()) text += fmt::format(", axis_separators=[{}]", joined(type.axis_separators));
  return text;
}

// ---- Constants

std::string tensor_items(const Tensor& data) {
  int64_t next = 0;
  return nested_list(data, 0, next);
}

std::string Printer::constant(const Tensor& data) {
  if (data.size() > options_.inline_elements && !data.dtype().is_string()) {  // no file of constants has strings
    elided_.push_back(data);
    return fmt::format("metadata[\"relax.expr.Constant\"][{}]", elided_.size() - 1);
  }
  std::string dtype = dtype_literal(data.dtype());
  if (has_odd_nan(data) || data.dtype().lanes > 1 || data.dtype().is_handle()) {
    std::span bytes(static_cast<const unsigned char*>(data.raw()), static_cast<size_t>(data.bytes()));
    auto hex = [](unsigned char byte) { return fmt::format("{:02x}", byte); };
    return fmt::format("R.const(\"{}\", {}, shape=[{}], encoding=\"hex\")", joined(bytes, hex, ""), dtype,
                       joined(data.shape()));
  }
  // The list of an empty tensor does not determine its shape.
  if (data.size() == 0 && data.ndim() != 1)
    return fmt::format("R.const([], {}, shape=[{}])", dtype, joined(data.shape()));
  return fmt::format("R.const({}, {})", tensor_items(data), dtype);
}

// ---- Calls

std::string Printer::argument(const Expr& arg) {
  // A scalar is printed as a graph value. Later dialects write integers bare.
  if (options_.dialect == Dialect::kTvm26 && arg.is<IntImm>() && default_int_ == kInt64) return expr(arg);
  // Variables of the graph and calls of operators are values already; dims are not.
  bool is_value = arg.is<Var>() ? !dims_.contains(arg.get()) : ops::is_relax_op(op_name(arg));
  if (default_int_ == kInt64 && arg.type().is<PrimType>() && !is_value)
    return fmt::format("R.prim_value({})", expr(arg));
  return expr(arg);
}

std::string Printer::arguments(const Call& node, size_t first, std::vector<std::string> items) {
  for (size_t i = first; i < node.args.size(); ++i) items.push_back(argument(node.args[i]));
  for (std::string_view key : node.attrs.ordered_keys()) {
    const AttrValue& value = *node.attrs.find(key);
    DeviceMesh devices;
    std::string text = from_attr(value, devices) ? mesh(devices) : to_string(value);
    if (const DType* dtype = value.as<DType>()) text = dtype_literal(*dtype);
    items.push_back(fmt::format("{}={}", key, text));
  }
  const std::vector<Type>& types = node.type_args;
  if (!types.empty())
    items.push_back(
        fmt::format("{}={}", spelled("sinfo_args"), in_parentheses(printed(types, &Printer::type), types.size())));
  return joined(items);
}

std::string Printer::scalar_call(const Expr& expr_, const Call& node) {
  const std::string& full = node.callee.as<OpRef>()->name;
  std::vector<std::string> items = map_each(node.args, [&](const Expr& arg) { return expr(arg); });
  DType dtype = dtype_of(expr_);
  std::string dtype_text = dtype_literal(dtype);
  // These calls have special forms: properties of buffers, functions and tuples as arguments.
  if (full == ops::kBufferData && node.args.size() == 1)
    return pointers_.contains(node.args[0].get()) ? items[0] : items[0] + ".data";
  if (full == kBufferElemOffset && node.args.size() == 1) return items[0] + ".elem_offset";
  if (full == ops::kTarget) return to_string(AttrValue(Attrs{{"T.target", node.attrs}}));
  if (full == ops::kCommReducer && !node.args.empty())
    return fmt::format("T.comm_reducer({}, [{}])", items[0], joined(std::span(items).subspan(1)));
  if (full == ops::kShuffle && node.args.size() == 2) {
    auto of = [&](const Expr& e) { return e.is<Tuple>() ? list(e.as<Tuple>()->items) : expr(e); };
    return fmt::format("T.Shuffle([{}], [{}])", of(node.args[0]), of(node.args[1]));
  }
  if (full == ops::kIterVar && node.args.size() >= 3) {
    std::string dom = node.args.size() == 5 ? fmt::format("T.Range({}, {})", items[3], items[4]) : "None";
    return fmt::format("T.iter_var({}, {}, {}, {})", items[0], dom, items[1], items[2]);
  }
  const Intrinsic* row = find_intrinsic(full);
  bool plain = node.attrs.empty() && node.type_args.empty();
  if (full == ops::kIfThenElse && plain && node.args.size() == 3 && dtype == dtype_of(node.args[1]))
    return fmt::format("T.if_then_else({})", joined(items));
  if (row && plain && node.args.size() == static_cast<size_t>(row->arity)) {
    DType first = dtype_of(node.args[0]);
    DType natural = row->result == Intrinsic::Result::kBool ? kBool.with_lanes(first.lanes) : first;
    if (natural == dtype) return fmt::format("T.{}({})", full.substr(4), joined(items));
  }
  if (const Builtin* builtin = plain ? find_builtin(full) : nullptr) {
    int count = static_cast<int>(node.args.size());
    std::optional<DType> natural = natural_dtype(*builtin, node.args);
    bool fits = count >= builtin->least && (builtin->most < 0 || count <= builtin->most);
    if (fits && builtin->result == Builtin::Result::kStatedFirst) items.insert(items.begin(), dtype_text);
    if (fits && builtin->result == Builtin::Result::kStatedLast) items.push_back(dtype_text);
    if (fits && (!natural || *natural == dtype)) return fmt::format("T.{}({})", spelling(*builtin), joined(items));
  }
  for (const auto& [key, value] : node.attrs) items.push_back(fmt::format("{}={}", key, to_string(value)));
  bool later = options_.dialect == Dialect::kTvm26 && ops::is_tir_op(full);
  items.insert(items.begin(), {dtype_text, string_literal(later ? "tirx" + full.substr(3) : full)});
  return fmt::format("T.call_intrin({})", joined(items));
}

std::string Printer::call(const Expr& expr_, const Call& node) {
  if (const ExternFunc* callee = node.callee.as<ExternFunc>())
    return fmt::format("R.call_packed({})", arguments(node, 0, {string_literal(callee->symbol)}));
  const OpRef* op = node.callee.as<OpRef>();
  if (!op) return fmt::format("{}({})", expr(node.callee, kAtomLevel), arguments(node, 0));
  bool scalar = expr_.type().is<PrimType>();
  if (scalar && ops::is_tir_op(op->name)) return scalar_call(expr_, node);
  std::string spelling = ops::name_in_text(op->name);
  const AttrValue *device = node.attrs.find("device_type"), *index = node.attrs.find("index"),
                  *scope = node.attrs.find("memory_scope");
  if (op->name == ops::kHintOnDevice && node.args.size() == 1 && device && index && scope)
    return fmt::format("{}({}, R.device({}, {}), {})", spelling, expr(node.args[0]), to_string(*device),
                       to_string(*index), to_string(*scope));
  const ExternFunc* callee = node.args.empty() ? nullptr : node.args[0].as<ExternFunc>();
  std::vector<std::string> items;
  if (callee) items.push_back(string_literal(callee->symbol));
  size_t first = items.size();
  if (calls_kernel(op->name) || op->name == ops::kCallTirLocalView)
    return call_tir(node, op->name, spelling, std::move(items));
  return fmt::format("{}({})", spelling, arguments(node, first, std::move(items)));
}

// The arguments are gvar, inputs, out_sinfo=, tir_vars= and further attributes. Later dialects list scalars among the
// inputs. `items` has the callee when it is external.
std::string Printer::call_tir(const Call& node, std::string_view op, std::string spelling,
                              std::vector<std::string> items) {
  const Tuple* inputs = node.args.size() > 1 ? node.args[1].as<Tuple>() : nullptr;
  const ShapeExpr* scalars = node.args.size() > 2 ? node.args[2].as<ShapeExpr>() : nullptr;
  bool joins = options_.dialect == Dialect::kTvm26 && inputs && scalars && op != ops::kCallDpsPacked;
  for (size_t i = items.size(); i < node.args.size() && i < (joins ? 1 : 2); ++i)
    items.push_back(argument(node.args[i]));
  if (joins) {
    std::vector<Expr> both = inputs->items;
    both.insert(both.end(), scalars->values.begin(), scalars->values.end());
    items.push_back(expr(tuple(std::move(both))));
  }
  std::string outputs = printed(node.type_args, &Printer::type);
  bool single = node.type_args.size() == 1;
  items.push_back(fmt::format("{}={}", spelled("out_sinfo"), single ? outputs : fmt::format("[{}]", outputs)));
  if (node.args.size() > 2 && !joins) items.push_back("tir_vars=" + argument(node.args[2]));
  Call rest = node;
  rest.type_args.clear();
  bool distributed = std::ranges::any_of(node.type_args, [](const Type& t) { return t.is<DTensorType>(); });
  if (distributed && op == ops::kCallTir) spelling = "R.dist.call_tir";
  return fmt::format("{}({})", spelling, arguments(rest, 3, std::move(items)));
}

// ---- Expressions

std::string Printer::expr(const Expr& e, int level) {
  return match(
      e, [&](const IntImm& node) { return integer(node.value, dtype_of(e)); },
      [&](const FloatImm& node) {
        const DType dtype = dtype_of(e);
        return fmt::format("{}({})", scalar_type_name(dtype),
                           float_text(node.value, dtype.is_complex() ? dtype.part() : dtype));
      },
      [&](const StringImm& node) {
        return default_int_ == kInt64 ? fmt::format("R.str({})", string_literal(node.value))
                                      : string_literal(node.value);
      },
      [&](const DTypeImm& node) { return fmt::format("R.dtype({})", dtype_literal(node.value)); },
      [&](const Var&) { return name(cast<Var>(e)); },  //
      [&](const GlobalVar& node) { return "cls." + node.name; },
      [&](const OpRef& node) { return fmt::format("I.Op({})", string_literal(node.name)); },
      [&](const ExternFunc& node) { return extern_func(e, node); },
      [&](const Constant& node) {
        if (!e.type().is<DTensorType>()) return constant(node.data);
        return fmt::format("R.dist.const({}, {})", tensor_items(node.data), type(e.type()));
      },
      [&](const Binary& node) { return binary(node, level); },
      [&](const Not& node) {
        std::string text = "not " + expr(node.value, kNotLevel);
        return level > kNotLevel ? "(" + text + ")" : text;
      },
      [&](const Cast& node) { return fmt::format("T.Cast({}, {})", dtype_literal(dtype_of(e)), expr(node.value)); },
      [&](const Select& node) {
        return fmt::format("T.Select({}, {}, {})", expr(node.condition), expr(node.a), expr(node.b));
      },
      [&](const Ramp& node) {
        return fmt::format("T.Ramp({}, {}, {})", expr(node.base), expr(node.stride), lanes_text(node.lanes));
      },
      [&](const Broadcast& node) {
        return fmt::format("T.Broadcast({}, {})", expr(node.value), lanes_text(node.lanes));
      },
      [&](const Let& node) { return let(node); },  //
      [&](const Lambda& node) { return lambda(node); },
      [&](const BufferLoad& node) {
        if (!node.predicate) return element(node.buffer, node.indices);
        return fmt::format("{}.vload([{}], {}, predicate={})", name(node.buffer), list(node.indices),
                           dtype_literal(dtype_of(e)), expr(*node.predicate));
      },
      [&](const Call& node) { return call(e, node); },
      [&](const Tuple& node) {
        std::string items = printed(node.items, &Printer::argument);
        return items.empty() ? "R.tuple()" : in_parentheses(items, node.items.size());
      },
      [&](const TupleGetItem& node) { return fmt::format("{}[{}]", expr(node.tuple, kAtomLevel), node.index); },
      [&](const ShapeExpr& node) { return fmt::format("R.shape([{}])", list(node.values)); },
      // These occur in bindings and modules; elsewhere they have no text form.
      [&](const If&) { return debug_print(e); }, [&](const SeqExpr&) { return debug_print(e); },
      [&](const Function&) { return debug_print(e); }, [&](const PrimFunc&) { return debug_print(e); });
}

std::string Printer::let(const Let& node) {
  std::string value = expr(node.value);
  NameScope scope(names_);
  std::string var = names_.define(node.var);
  // Python wants the name to mean something.
  if (default_int_ == kInt32) line("{} = {}()", var, scalar_type_name(dtype_of(node.var)));
  return fmt::format("T.Let({}, where={{{}: {}}})", expr(node.body), var, value);
}

std::string Printer::lambda(const Lambda& node) {
  NameScope scope(names_);
  std::string params = printed(node.params, &Printer::defined), results = list(node.results);
  return fmt::format("lambda {}: {}", params, node.results.size() == 1 ? results : fmt::format("({})", results));
}

std::string Printer::extern_func(const Expr& e, const ExternFunc& node) {
  bool plain = structural_equal(e.type(), relaxc::extern_func(node.symbol).type());
  return fmt::format("R.ExternFunc({}{})", string_literal(node.symbol), plain ? "" : ", " + type(e.type()));
}

// ---- Types, devices and meshes

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
                                    : fmt::format("[{}]", joined(mesh->devices));
  return fmt::format("R.device_mesh({}, {})", in_parentheses(joined(mesh->shape), mesh->shape.size()), devices);
}

std::string Printer::tensor_type(const TensorType& node) {
  std::vector<std::string> items;
  const ShapeExpr* dims = node.shape ? node.shape->as<ShapeExpr>() : nullptr;
  if (node.shape) items.push_back(dims ? shape(dims->values) : expr(*node.shape));
  if (node.dtype) items.push_back("dtype=" + dtype_literal(*node.dtype));
  if (!node.shape && node.ndim >= 0) items.push_back(fmt::format("ndim={}", node.ndim));
  if (!node.vdevice.empty()) items.push_back("vdevice=" + string_literal(node.vdevice));
  return items.empty() ? "R.Tensor" : fmt::format("R.Tensor({})", joined(items));
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
  std::string params = in_parentheses(printed(*node.params, &Printer::type), node.params->size());
  return fmt::format("R.Callable({}, {}, {})", params, type(node.result), node.pure ? "True" : "False");
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
        return fmt::format("R.Shape([{}])", printed(*node.values, &Printer::dim));
      },
      [&](const TensorType& node) { return tensor_type(node); },
      [&](const BufferType& node) {
        BufferType plain = node;
        plain.dtype = kFloat32;  // printed below: in annotations the dtype always stands
        std::string rest = buffer_args(plain), dims = shape(node.shape);
        return fmt::format("T.Buffer({}, {}{})", dims, dtype_literal(node.dtype), rest.substr(dims.size()));
      },
      [&](const TupleType& node) -> std::string {
        return node.items.empty() ? "R.Tuple" : fmt::format("R.Tuple({})", printed(node.items, &Printer::type));
      },
      [&](const SequenceType& node) { return fmt::format("R.Sequence({})", type(node.item)); },
      [&](const OptionalType& node) { return fmt::format("R.Optional({})", type(node.item)); },
      [&](const MapType& node) { return fmt::format("R.Map({}, {})", dtype_literal(node.key), type(node.value)); },
      [&](const DTensorType& node) { return dtensor_type(node); },
      [&](const FuncType& node) { return func_type(node); });
}

}  // namespace relaxc::text
