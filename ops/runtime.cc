// Operators that functions of the runtime do (vm/builtins.cc): inspection, printing, assertions, views of memory;
// images that a library decodes; and those that only say where a value lies or when it is computed, which are the value
// itself here.
#include <algorithm>
#include <cctype>

#include "ir/builder.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

Expr first_argument(const OpCall& op, Builder&) { return op.arg(0); }

// ---- Inspection

Type infer_size(const OpCall& op) {
  require_tensor(op);
  return tensor_type({}, kInt64);
}
Expr decompose_size(const OpCall& op, Builder& b) {
  const std::vector<Expr>* shape = known_shape(op.arg(0).type());
  Expr count = shape ? simplify(product(*shape))
                     : b.emit(call_builtin("vm.builtin.tensor_size", {op.arg(0)}, prim_type(kInt64)), "size");
  return b.op("scalar_to_tensor", {count}, DTypeAttrs{kInt64});
}
OpRow inspect(const char* name, const char* doc, DType result, bool takes_axis = false) {
  std::vector<OpInput> inputs = {{"tensor", "the tensor"}};
  if (takes_axis) inputs.push_back({"axis", "int64 scalar"});
  auto infer = [=](const OpCall& op) {
    require_tensor(op);
    if (takes_axis) require_scalar(op, 1);
    auto axis = takes_axis ? as_int(op.arg(1)) : std::nullopt;
    int64_t rank = known_rank(op.arg(0).type());
    if (axis && (*axis < 0 || (rank >= 0 && *axis >= rank))) op.fail("axis {} of a tensor of rank {}", *axis, rank);
    return prim_type(result);
  };
  std::string builtin = fmt::format("vm.builtin.{}", name);
  return {.name = fmt::format("relax.inspect.{}", name),
          .doc = doc,
          .inputs = std::move(inputs),
          .moves = true,
          .infer = infer,
          .infer_partial = [=](const OpCall&) { return prim_type(result); },
          .decompose = [=](const OpCall& op, Builder&) { return call_builtin(builtin, op.call.args, infer(op)); },
          .why_runtime = "it reads what the runtime notes about a tensor, and no element"};
}

// ---- Texts

// Returns the parts of a format text, strings and values, where "{}" stands for the next value and "{1}" for that one.
std::vector<Expr> formatted(const OpCall& op, size_t first) {
  const std::string format = op.attrs<FormatAttrs>().format;
  std::vector<Expr> parts;
  std::string text;
  size_t next = first;
  for (size_t i = 0; i < format.size(); ++i) {
    bool is_doubled = i + 1 < format.size() && format[i + 1] == format[i];
    if (format[i] != '{' && format[i] != '}') {
      text += format[i];
    } else if (is_doubled) {
      text += format[i++];
    } else {
      size_t end = std::min(format.find('}', i), format.size());
      std::string field = format.substr(i + 1, end - std::min(i + 1, end));
      bool is_position = field.size() < 4 && std::ranges::all_of(field, [](char c) { return c >= '0' && c <= '9'; });
      if (format[i] == '}' || end == format.size() || !is_position)
        op.unsupported("the format text has '{}' at position {}; only {{}} and {{1}} stand for values",
                       format.substr(i, end + 1 - i), i);
      size_t value = field.empty() ? next++ : first + std::stoul(field);
      if (value >= op.size())
        op.fail("the format text stands for {} values, got {}", value + 1 - first, op.size() - first);
      parts.push_back(string_imm(std::exchange(text, {})));
      parts.push_back(op.arg(value));
      i = end;
    }
  }
  parts.push_back(string_imm(text));
  return parts;
}
Expr decompose_print(const OpCall& op, Builder&) {
  bool is_plain = op.attrs<FormatAttrs>().format.empty();
  return call_impure_builtin(is_plain ? "vm.builtin.print" : "vm.builtin.print_parts",
                             is_plain ? op.call.args : formatted(op, 0));
}
Type infer_assert(const OpCall& op) {
  const Type& type = op.arg(0).type();
  const PrimType* prim = type.as<PrimType>();
  bool is_bool = prim ? prim->dtype.is_bool() : type.is<ObjectType>() ? true : op.dtype(0).is_bool() && op.rank(0) == 0;
  if (!is_bool) op.fail("the condition must be a bool scalar");
  return tuple_type({});
}
Expr decompose_assert(const OpCall& op, Builder&) {
  std::vector<Expr> parts = formatted(op, 1);
  parts.insert(parts.begin(), op.arg(0));
  return call_impure_builtin("vm.builtin.assert", std::move(parts));
}

// ---- Memory

// An empty tuple, which null_value() becomes, stands for an argument that is left out; so may any object.
bool is_nothing(const Expr& arg) {
  const TupleType* tuple = arg.type().as<TupleType>();
  return tuple && tuple->items.empty();
}
bool is_given(const OpCall& op, size_t i) {
  return i < op.size() && !is_nothing(op.arg(i)) && (!op.arg(i).type().is<ObjectType>() || op.arg(i).is<DTypeImm>());
}
// Returns the dtype of the view, if it is known.
std::optional<DType> view_dtype(const OpCall& op) {
  if (op.size() < 3 || is_nothing(op.arg(2))) return tensor_dtype(op.arg(0).type());
  if (const DTypeImm* stated = op.arg(2).as<DTypeImm>()) return stated->value;
  return std::nullopt;
}
// The result is the same memory under another shape or dtype, from an offset on.
Type infer_view(const OpCall& op) {
  require_tensor(op);
  std::optional<DType> dtype = view_dtype(op), from = tensor_dtype(op.arg(0).type());
  bool has_strings = (dtype && dtype->is_string()) || (from && from->is_string());
  if (has_strings) op.fail("strings have no views");
  if (dtype && (dtype->is_void() || dtype->is_handle()))
    op.fail("the dtype is {}, expected that of numbers", to_string(*dtype));
  if (is_given(op, 1) && !op.arg(1).type().is<ShapeType>()) op.fail("argument 1 must be a shape");
  if (op.size() > 3 && is_given(op, 3)) require_scalar(op, 3);
  const std::vector<Expr>* source = known_shape(op.arg(0).type());
  const std::vector<Expr>* shape = is_given(op, 1) ? known_shape(op.arg(1).type()) : source;
  if (source && shape && dtype && from) {
    Expr offset = is_given(op, 3) ? cast_to(op.arg(3), kInt64) : int_imm(0);
    op.require_at_most(int_imm(0), offset, "the offset is negative");
    op.require_at_most(simplify(product(*shape) * dtype->bytes() + offset), simplify(product(*source) * from->bytes()),
                       "the view ends behind its tensor, in bytes");
  }
  if (shape) return tensor_type(*shape, dtype);
  return tensor_type_of_rank(known_rank(op.arg(is_given(op, 1) ? 1 : 0).type()), dtype);
}
Expr decompose_view(const OpCall& op, Builder& b) {
  std::optional<DType> dtype = view_dtype(op);
  if (!dtype) op.unsupported("the dtype of the view is not known; write it as R.dtype(...)");
  Expr shape = is_given(op, 1) ? op.arg(1) : b.op("shape_of", {op.arg(0)});
  return call_builtin(
      "vm.builtin.view",
      {op.arg(0), shape, make(DTypeImm{*dtype}, object_type()), is_given(op, 3) ? op.arg(3) : int_imm(0)},
      infer_view(op));
}

// ---- Devices

// Devices of this runtime are named llvm, cpu or c; a vdevice is "target:index:scope", or a name of the module.
bool is_cpu(const std::string& device) {
  constexpr std::string_view kCpus[] = {"llvm", "cpu", "c", ""};
  return std::ranges::find(kCpus, device.substr(0, device.find(':'))) != std::end(kCpus);
}
Type infer_to_vdevice(const OpCall& op) {
  TensorType type = *infer_like_first(op).as<TensorType>();
  type.vdevice = op.attrs<DeviceAttrs>().dst_vdevice;
  return make(std::move(type));
}
Expr decompose_to_vdevice(const OpCall& op, Builder&) {
  std::string device = op.attrs<DeviceAttrs>().dst_vdevice;
  if (!is_cpu(device)) op.unsupported("device '{}'; only the CPU is supported, such as \"llvm:0:global\"", device);
  return op.arg(0);
}
Expr decompose_wrap_param(const OpCall& op, Builder& b) {
  DType dtype = op.attrs<CastAttrs>().dtype;
  return op.dtype(0) == dtype ? op.arg(0) : b.op("astype", {op.arg(0)}, CastAttrs{dtype});
}

std::vector<OpRow> inspections() {
  return {
      {.name = "relax.size",
       .doc = "the number of elements, as an int64 tensor of rank 0",
       .inputs = {{"expr", "the tensor"}},
       .moves = true,
       .infer = infer_size,
       .infer_partial = infer_size,
       .decompose = decompose_size,
       .why_runtime = "it reads what the runtime notes about a tensor, and no element"},
      inspect("tensor_dtype_code", "DLPack's code of the dtype", DType::uint(8)),
      inspect("tensor_dtype_bits", "bits of an element", DType::uint(8)),
      inspect("tensor_dtype_lanes", "lanes of an element", DType::uint(16)),
      inspect("tensor_ndim", "the rank", kInt32),
      inspect("tensor_shape_i", "a dim", kInt64, true),
      inspect("tensor_stride_i", "elements from one index of an axis to the next", kInt64, true),
      inspect("tensor_byte_offset", "where the tensor begins in its memory: 0", DType::uint(64)),
      inspect("tensor_elem_offset", "where the tensor begins in its memory, in elements: 0", DType::uint(64)),
  };
}

// ---- Compressed images

// Decoding is not a tensor program, and the bytes decide the size. A library of its own does it (images/library.cc).
Type infer_decode_image(const OpCall& op) {
  require_rank(op, 0, 1);
  if (op.dtype(0) != DType::uint(8)) op.fail("the bytes are {}, expected uint8", to_string(op.dtype(0)));
  return tensor_type_of_rank(3, DType::uint(8));
}
Expr decompose_decode_image(const OpCall& op, Builder&) {
  std::string format = op.attrs<DecodeImageAttrs>().pixel_format;
  std::ranges::transform(format, format.begin(), [](unsigned char c) { return std::tolower(c); });
  return call_builtin("relaxc.image.decode_" + format, {op.arg(0)}, tensor_type_of_rank(3, DType::uint(8)));
}

}  // namespace

std::vector<OpRow> runtime_ops() {
  using Arity = OpInput::Arity;
  constexpr const char* kHasEffect = "it has an effect outside of its results, and a tensor program has none";
  const std::vector<OpInput> data = {{"data", "the tensor"}};
  std::vector<OpRow> rows = {
      impure({.name = "relax.print",
              .doc = "prints its arguments, in the places of {} in the format text if there is one",
              .inputs = {{"values", "any", Arity::kVariadic}},
              .attrs = op_attrs<FormatAttrs>(),
              .infer = infer_nothing,
              .infer_partial = infer_nothing,
              .decompose = decompose_print,
              .why_runtime = kHasEffect}),
      impure({.name = "relax.assert_op",
              .doc = "ends the run with an error when the condition is false",
              .inputs = {{"condition", "bool scalar or tensor of rank 0"},
                         {"format_args", "for the message, in the places of {}", Arity::kVariadic}},
              .attrs = op_attrs<FormatAttrs>(),
              .infer = infer_assert,
              .infer_partial = infer_nothing,
              .decompose = decompose_assert,
              .why_runtime = kHasEffect}),
      {.name = "relax.image.decode",
       .doc =
           "the image in a file of BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP, uint8 [height, width, channels]; one "
           "without pixels where there is none",
       .inputs = {{"bytes", "vector of uint8"}},
       .attrs = with_choices(op_attrs<DecodeImageAttrs>(), "pixel_format", {"RGB", "BGR", "Grayscale"}),
       .infer = infer_decode_image,
       .infer_partial = [](const OpCall&) { return tensor_type_of_rank(3, DType::uint(8)); },
       .decompose = decompose_decode_image,
       .why_runtime = "a decoder's work depends on each bit before, and its size on the data"},
      {.name = "relax.memory.view",
       .doc = "the same memory under another shape, dtype or offset",
       .inputs = {{"data", "the tensor"},
                  {"shape", "the new dims", Arity::kOptional},
                  {"dtype", "the new dtype", Arity::kOptional},
                  {"relative_byte_offset", "int64 scalar", Arity::kOptional}},
       .moves = true,
       .infer = infer_view,
       .infer_partial = infer_view,
       .decompose = decompose_view,
       .why_runtime = "it gives memory another shape or dtype, and computes no element"},
      {.name = "relax.memory.ensure_zero_offset",
       .doc = "the tensor, which always begins where its memory does",
       .inputs = data,
       .moves = true,
       .infer = infer_like_first,
       .decompose = first_argument},
      {.name = "relax.null_value",
       .doc = "the value that stands for nothing",
       .infer = infer_unknown,
       .decompose = [](const OpCall&, Builder&) { return tuple({}); }},
      {.name = "relax.builtin.stop_lift_params",
       .doc = "the tensor itself",
       .inputs = {{"x", "the tensor"}},
       .moves = true,
       .infer = infer_like_first,
       .decompose = first_argument},
      {.name = "relax.wrap_param",
       .doc = "a parameter kept in another dtype, converted where it is used",
       .inputs = data,
       .attrs = op_attrs<FillAttrs>(),
       .infer = [](const OpCall& op) { return tensor_type(op.shape(0), op.attrs<CastAttrs>().dtype); },
       .infer_partial = infer_stated_dtype_same_rank,
       .decompose = decompose_wrap_param},
      {.name = "relax.to_vdevice",
       .doc = "the tensor on a device: itself, on the CPU",
       .inputs = data,
       .attrs = op_attrs<DeviceAttrs>(),
       .moves = true,
       .infer = infer_to_vdevice,
       .decompose = decompose_to_vdevice},
      {.name = "relax.hint_on_device",
       .doc = "the tensor itself; the hint where to compute it has no meaning on one device",
       .inputs = data,
       .attrs = op_attrs<DeviceHintAttrs>(),
       .moves = true,
       .infer = infer_like_first,
       .decompose = first_argument},
  };
  for (OpRow& row : inspections()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace relaxc
