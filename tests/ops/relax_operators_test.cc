// The operator table against the operators of Relax, and against the text: each row has its arguments and attributes in
// Relax's order, and a call of it is inferred, verified, printed and read back.
#include <algorithm>
#include <set>

#include "codegen/compile.h"
#include "ir/builder.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify/verify.h"
#include "ir/visit.h"
#include "tests/ops/samples.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

// Operators of TVM 0.17 to 0.23 by name, number of arguments ("2", "2-4" with optional ones, "1+" for any number), and
// attributes in the order of their reflection, or of the Python function where that differs. Our own attributes may
// follow.
struct Expected {
  const char* names;  // all of which have this signature
  const char* arity;
  const char* attrs = "";
};
constexpr Expected kRelax[] = {
    {"abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh erf exp floor isfinite isinf isnan log "
     "logical_not "
     "negative round rsqrt sigmoid sign sin sinh sqrt square tan tanh trunc flatten nn.relu nn.relu6 nn.gelu "
     "nn.gelu_tanh nn.silu nn.selu nn.batch_flatten nonzero shape_of tensor_to_shape shape_to_tensor size "
     "ccl.broadcast_from_worker0 grad.no_grad grad.start_checkpoint grad.end_checkpoint builtin.stop_lift_params "
     "memory.ensure_zero_offset memory.kill_storage memory.kill_tensor vm.kill_object inspect.tensor_dtype_code "
     "inspect.tensor_dtype_bits inspect.tensor_dtype_lanes inspect.tensor_ndim inspect.tensor_byte_offset "
     "inspect.tensor_elem_offset",
     "1"},
    {"add divide floor_divide floor_mod left_shift log_add_exp maximum minimum mod multiply power right_shift subtract "
     "equal greater greater_equal less less_equal not_equal logical_and logical_or logical_xor bitwise_and bitwise_or "
     "bitwise_xor outer broadcast_to collapse_sum_like collapse_sum_to reshape index_tensor "
     "nn.cross_entropy_with_logits inspect.tensor_shape_i inspect.tensor_stride_i make_closure invoke_closure "
     "invoke_pure_closure call_builtin_with_ctx vm.call_tir_dyn call_py_func",
     "2"},
    {"clip ewise_fma where", "3"},
    {"null_value", "0"},
    {"astype wrap_param", "1", "dtype"},
    // Statistics, search, sorting, sets, sampling
    {"max mean min prod std sum variance median", "1", "axis keepdims"},
    {"cumprod cumsum", "1", "axis dtype exclusive"},
    {"argmax argmin", "1", "axis keepdims"},
    {"bucketize", "2", "out_int32 right"},
    {"sort", "1", "axis descending"},
    {"argsort", "1", "axis descending dtype"},
    {"topk", "1", "k axis ret_type largest dtype"},
    {"unique", "1-6"},
    {"multinomial_from_uniform", "3", "dtype"},
    // Creation
    {"full full_like", "2", "dtype"},
    {"ones ones_like zeros zeros_like", "1", "dtype"},
    {"eye", "1-3", "dtype"},
    {"eye_like", "1-2", "dtype"},
    {"arange", "1-3", "dtype"},
    {"hamming_window", "4", "dtype"},
    {"tril triu", "1-2"},
    // Manipulation, indexing
    {"concat stack", "1", "axis"},
    {"expand_dims squeeze flip", "1", "axis"},
    {"layout_transform", "1", "index_map pad_value axis_separators input_axis_separators"},
    {"permute_dims", "1", "axes"},
    {"split", "1", "indices_or_sections axis"},
    {"repeat", "1", "repeats axis"},
    {"tile", "1", "repeats"},
    {"gather_elements", "2", "axis"},
    {"gather_nd", "2", "batch_dims"},
    {"index_put", "3", "accumulate"},
    {"meshgrid", "1", "indexing"},
    {"scatter_elements", "3", "axis reduction"},
    {"scatter_nd", "3", "reduction"},
    {"slice_scatter", "5", "axis"},
    {"one_hot", "3", "depth axis"},
    {"take", "2", "axis mode"},
    {"strided_slice", "4-5", "assume_inbound"},
    {"dynamic_strided_slice", "4"},
    {"masked_fill", "2", "value"},
    // Linear algebra, quantization
    {"matmul", "2", "out_dtype"},
    {"linear", "2-3", "out_dtype"},
    {"einsum", "1", "subscripts"},
    {"quantize dequantize", "3", "axis out_dtype"},
    // Networks
    {"nn.conv1d nn.conv2d nn.conv3d", "2",
     "strides padding dilation groups data_layout kernel_layout out_layout out_dtype"},
    {"nn.conv1d_transpose nn.conv2d_transpose nn.conv3d_transpose", "2",
     "strides padding output_padding dilation groups data_layout kernel_layout out_layout out_dtype"},
    {"nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d", "1",
     "pool_size strides padding dilation ceil_mode count_include_pad layout out_layout"},
    {"nn.adaptive_avg_pool1d nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d", "1", "output_size layout out_layout"},
    {"nn.leakyrelu", "1", "alpha"},
    {"nn.prelu", "2", "axis"},
    {"nn.softplus", "1", "beta threshold"},
    {"nn.softmax nn.log_softmax", "1", "axis"},
    {"nn.pad", "1", "pad_width pad_mode pad_value"},
    {"nn.pixel_shuffle", "1", "upscale_factor"},
    {"nn.batch_norm", "5", "axis epsilon center scale momentum training"},
    {"nn.layer_norm", "3", "axes epsilon center scale"},
    {"nn.group_norm", "3", "num_groups channel_axis axes epsilon center scale"},
    {"nn.instance_norm", "3", "channel_axis axes epsilon center scale"},
    {"nn.rms_norm", "2", "axes epsilon"},
    {"nn.dropout", "1", "rate"},
    {"nn.nll_loss", "2-3", "reduction ignore_index"},
    {"nn.attention", "3-4", "scale causal_mask window_size"},
    {"nn.attention_bias", "4", "scale causal_mask window_size"},
    {"nn.attention_var_len", "3-7", "scale causal_mask window_size"},
    // Images, detection
    {"image.resize2d image.resize3d", "2",
     "roi layout method coordinate_transformation_mode rounding_method cubic_alpha cubic_exclude extrapolation_value "
     "out_dtype"},
    {"image.grid_sample", "2", "method layout padding_mode align_corners"},
    {"image.affine_grid", "2", "align_corners"},
    {"vision.all_class_non_max_suppression", "5", "output_format"},
    {"vision.get_valid_counts", "1", "score_threshold id_index score_index"},
    {"vision.non_max_suppression", "3",
     "max_output_size iou_threshold force_suppress top_k coord_start score_index id_index return_indices "
     "invalid_to_bottom soft_nms_sigma score_threshold"},
    {"vision.multibox_transform_loc", "3", "clip threshold variances keep_background apply_softmax"},
    {"vision.roi_align", "2", "pooled_size spatial_scale sample_ratio aligned layout mode"},
    {"vision.roi_pool", "2", "pooled_size spatial_scale layout"},
    // Differentiation, workers
    {"grad.nll_loss_backward", "3-4", "reduction ignore_index"},
    {"grad.max_pool2d_backward grad.avg_pool2d_backward", "2",
     "pool_size strides padding dilation ceil_mode count_include_pad layout out_layout"},
    {"grad.take_backward", "3", "axis"},
    {"ccl.allreduce", "1", "op_type in_group"},
    {"ccl.allgather", "1", "num_workers in_group"},
    {"ccl.scatter_from_worker0 dist.redistribute_replica_to_shard", "1", "num_workers axis"},
    {"dist.annotate_sharding dist.redistribute", "1", "device_mesh placement"},
    {"dist.call_tir_local_view", "2-3"},
    // Calls, memory, the virtual machine
    {"call_tir call_dps_packed", "2-3"},
    {"call_tir_inplace", "2-3", "inplace_indices"},
    {"call_tir_with_grad", "2-3", "te_grad_name te_grad_kwargs"},
    {"call_pure_packed", "1+"},
    {"call_inplace_packed", "1+", "inplace_indices"},
    {"print", "0+", "format"},
    {"assert_op", "1+", "format"},
    {"to_vdevice", "1", "dst_vdevice"},
    {"hint_on_device", "1", "device_type index memory_scope"},
    {"builtin.alloc_tensor", "2-4"},
    {"memory.alloc_tensor vm.alloc_tensor", "4-5"},
    {"memory.view memory.alloc_storage vm.alloc_storage", "1-4"},
};
// These change more than their result, or what they do may.
const std::set<std::string> kImpure = {"print", "assert_op", "call_builtin_with_ctx", "invoke_closure",
                                       "vm.call_tir_dyn"};

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> result;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(' ', begin), text.size());
    if (end > begin) result.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}
std::string arity_of(const OpRow& row) {
  size_t least = 0;
  for (const OpInput& input : row.inputs) least += input.arity == OpInput::Arity::kOne;
  if (!row.inputs.empty() && row.inputs.back().arity == OpInput::Arity::kVariadic) return fmt::format("{}+", least);
  return least == row.inputs.size() ? fmt::format("{}", least) : fmt::format("{}-{}", least, row.inputs.size());
}

// Prints, parses and prints the same; nothing is wrong with it.
void check_round_trip(const OpRow& row, const std::optional<OpSample>& sample) {
  if (!sample) {
    FAIL_CHECK("no sample: add a call to a text in tests/modules, or a line to tests/ops/samples.cc");
    return;
  }
  IRModule module = sample_module(op_table(), row, *sample);
  std::string text = print_module(module);
  INFO(text);
  Diagnostics problems, diagnostics;
  verify(module, op_table(), problems);
  std::optional<IRModule> again;
  try {
    again = parse_module(text, "f.py", op_table(), diagnostics);
  } catch (const CompileError& error) {
    FAIL_CHECK(error.what());
    return;
  }
  for (const Diagnostics* list : {&problems, &diagnostics}) {
    for (const Diagnostic& diagnostic : list->all()) FAIL_CHECK(to_string(diagnostic));
  }
  Difference difference;
  EqualOptions options;
  options.difference = &difference;
  options.print = print_node;
  bool equal = structural_equal(module, *again, options);
  INFO("first difference: " << difference.text);
  CHECK(equal);
  CHECK(print_module(*again) == text);
}

}  // namespace

TEST_CASE("every operator of Relax has its row", "[ops]") {
  size_t count = 0;
  for (const Expected& expected : kRelax) {
    for (const std::string& name : words(expected.names)) {
      ++count;
      INFO(name);
      const OpRow* row = op_table().find("relax." + name);
      if (!row) {
        FAIL_CHECK("no row");
        continue;
      }
      CHECK(arity_of(*row) == expected.arity);
      std::vector<std::string> attrs = words(expected.attrs);
      CHECK(row->attrs.size() >= attrs.size());
      for (size_t i = 0; i < std::min(attrs.size(), row->attrs.size()); ++i) CHECK(row->attrs[i].name == attrs[i]);
      for (size_t i = 0; i < row->attrs.size(); ++i) CHECK(row->attrs[i].is_extension == (i >= attrs.size()));
      CHECK(row->pure == !kImpure.contains(name));
      CHECK(!row->doc.empty());
    }
  }
  CHECK(count >= 225);
}

TEST_CASE("no operator has an argument and an attribute of one name", "[ops]") {
  for (const OpRow& row : op_table().rows()) {
    std::set<std::string> names;
    for (const OpInput& input : row.inputs) names.insert(input.name);
    for (const OpAttr& attr : row.attrs) names.insert(attr.name);
    INFO(row.name);
    CHECK(names.size() == row.inputs.size() + row.attrs.size());
  }
}

TEST_CASE("every operator has a sample that is inferred, verified, printed and read back", "[ops]") {
  for (const OpRow& row : op_table().rows()) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
      INFO(row.name << ", seed " << seed);
      check_round_trip(row, sample_call(op_table(), row, seed));
    }
  }
}

TEST_CASE("a call in a text of tests/modules is a sample", "[ops]") {
  const OpRow& matmul = *op_table().find("relax.matmul");
  std::optional<OpSample> sample = sample_in_texts(op_table(), matmul);
  check_round_trip(matmul, sample);
  CHECK_FALSE(sample_in_texts(op_table(), *op_table().find("relax.linalg.det")));
}

TEST_CASE("calls of one meaning are one call, whoever makes them", "[ops]") {
  Expr x = make_var("x", tensor_type({int_imm(1), int_imm(4), int_imm(8), int_imm(8)}, kFloat32));
  Expr w = make_var("w", tensor_type({int_imm(6), int_imm(4), int_imm(3), int_imm(3)}, kFloat32));
  auto made = [&](const char* name, std::vector<Expr> args, Attrs attrs) {
    Builder builder(op_table());
    builder.op(name, std::move(args), std::move(attrs));
    Expr body = builder.finish(x);
    return body.as<SeqExpr>()->blocks[0].bindings[0].value;
  };
  using Ints = std::vector<int64_t>;
  Expr conv = made("nn.conv2d", {x, w}, {{"strides", 2}, {"padding", Ints{1, 1}}, {"out_dtype", ""}});
  CHECK(structural_equal(conv, made("nn.conv2d", {x, w},
                                    {{"out_layout", "NCHW"}, {"strides", Ints{2, 2}}, {"padding", Ints{1, 1, 1, 1}}})));
  CHECK(!structural_equal(conv, made("nn.conv2d", {x, w}, {{"strides", 2}})));
  Expr one = int_imm(1), minus = int_imm(-1);
  Expr slice = made("strided_slice", {x, tuple({one}), tuple({one}), tuple({minus})}, {});
  CHECK(structural_equal(slice, made("strided_slice", {x, shape_expr({one}), shape_expr({one}), tuple({minus})},
                                     {{"assume_inbound", 0}})));
  // And once more makes no difference.
  for (const OpRow& row : op_table().rows()) {
    Call call = sample_call(op_table(), row, 7)->call;
    INFO(row.name);
    CHECK(is_normal(row, call));
  }
}

TEST_CASE("compiling an operator without a lowering says so with its name and place", "[ops]") {
  CompileSettings settings;
  settings.opt_level = 0;
  settings.jobs = 1;
  for (const OpRow& row : op_table().rows()) {
    if (row.legalize) continue;
    std::string text = print_module(sample_module(op_table(), row, *sample_call(op_table(), row, 1)));
    INFO(text);
    Diagnostics diagnostics;
    IRModule module = parse_module(text, "f.py", op_table(), diagnostics);
    try {
      compile(module, settings);
      CHECK(has_lowering(row));
    } catch (const CompileError& error) {
      std::string message = error.what();
      INFO(message);
      CHECK(error.kind() == ErrorKind::kUnsupported);
      CHECK(message.find("f.py:") != std::string::npos);
      bool distributed = message.find("a distributed tensor") != std::string::npos;
      CHECK((distributed || message.find(row.name) != std::string::npos));
      CHECK(!has_lowering(row));
    }
  }
}

TEST_CASE("operands of which not all is known give what is known of the result", "[ops]") {
  VarRef n = make_dim("n");
  Expr known = make_var("x", tensor_type({n, int_imm(8)}, kFloat32));
  Expr rank = make_var("x", tensor_type_of_rank(2, kFloat32)), dtype = make_var("x", tensor_type_of_rank(-1, kFloat32));
  Expr shape = make_var("x", tensor_type({n, int_imm(8)}, std::nullopt));
  Expr nothing = make_var("x", tensor_type_of_rank(-1, std::nullopt));
  Expr images = make_var("x", tensor_type_of_rank(4, kFloat32));
  Expr weight = make_var("w", tensor_type({int_imm(6), int_imm(4), int_imm(3), int_imm(3)}, kFloat32));
  auto infer = [&](const char* name, std::vector<Expr> args, Attrs attrs = {}) {
    Call call{op_ref(std::string("relax.") + name), std::move(args), std::move(attrs), {}};
    return print_type(infer_call_type(call, {}, op_table()));
  };
  CHECK(infer("exp", {rank}) == "R.Tensor(dtype=\"float32\", ndim=2)");
  CHECK(infer("exp", {dtype}) == "R.Tensor(dtype=\"float32\")");
  CHECK(infer("exp", {nothing}) == "R.Tensor");
  CHECK(infer("exp", {shape}) == "R.Tensor((n, 8))");
  CHECK(infer("add", {rank, known}) == "R.Tensor(dtype=\"float32\", ndim=2)");
  CHECK(infer("equal", {nothing, nothing}) == "R.Tensor(dtype=\"bool\")");
  CHECK(infer("sum", {dtype}) == "R.Tensor((), dtype=\"float32\")");
  CHECK(infer("sum", {rank}, {{"axis", 1}}) == "R.Tensor(dtype=\"float32\", ndim=1)");
  CHECK(infer("squeeze", {rank}) == "R.Tensor(dtype=\"float32\")");
  CHECK(infer("nn.conv2d", {images, weight}) == "R.Tensor(dtype=\"float32\", ndim=4)");
  CHECK(infer("nn.conv2d", {dtype, dtype}) == "R.Tensor(dtype=\"float32\", ndim=4)");
  CHECK(infer("matmul", {dtype, dtype}) == "R.Tensor(dtype=\"float32\")");
  CHECK(infer("reshape", {nothing, shape_expr({n, int_imm(2)})}) == "R.Tensor((n, 2))");
  CHECK(infer("shape_of", {rank}) == "R.Shape(ndim=2)");
  CHECK(infer("split", {rank}, {{"indices_or_sections", 2}}) ==
        "R.Tuple(R.Tensor(dtype=\"float32\", ndim=2), R.Tensor(dtype=\"float32\", ndim=2))");
  CHECK(infer("strided_slice", {known, shape_expr({int_imm(0)}), shape_expr({int_imm(0)}),
                                shape_expr({int_imm(INT64_MAX)})}) == "R.Tensor((n, 8), dtype=\"float32\")");
  TensorType placed = *known.type().as<TensorType>();
  placed.vdevice = "llvm:1:global";
  Expr elsewhere = make_var("x", make(placed));
  CHECK(infer("add", {elsewhere, known}) == "R.Tensor((n, 8), dtype=\"float32\", vdevice=\"llvm:1:global\")");
  CHECK_THROWS_AS(infer("nn.conv2d", {rank, weight}), CompileError);
  CHECK_THROWS_AS(infer("bitwise_not", {dtype}), CompileError);
  CHECK_THROWS_AS(infer("permute_dims", {rank}, {{"axes", std::vector<int64_t>{0, 1, 2}}}), CompileError);
}

}  // namespace relaxc::test
