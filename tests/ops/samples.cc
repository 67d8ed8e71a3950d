#include "tests/ops/samples.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "ir/builder.h"
#include "ir/text/parser.h"
#include "ir/visit.h"
#include "support/diagnostic.h"
#include "tir/compute.h"

namespace relaxc::test {

namespace {

// Arguments and attributes of the operators that do not take float tensors [n, 8] and default attributes. An operator
// that has a text in tests/modules needs no line here. An argument:
//   f[n,8] i[n] k[] b[n] j[n]   tensor of float32, int64, int32, bool, int8
//   s[n,8] S                    shape, shape variable of rank 2
//   t(f[n],f[n]) p(0,1)         tuple of tensors, of scalars
//   3 1.5 true                  scalar
//   @program 'extern 'f:str d:float32 q:global o   function of the module, external function, dtype, string, object
// type= gives the output type of calls that state it.
const DeviceMesh kMesh = {{1}, {0}};
struct Recipe {
  const char* name;
  const char* args;
  Attrs attrs = {};
  const char* type = "";
};

using Ints = std::vector<int64_t>;

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> kRecipes = {
      {"astype", "f[n,8]", {{"dtype", DType::float_(16)}}},
      {"bitcast", "f[n,8]", {{"dtype", kInt32}}},
      {"bitwise_and", "i[n,8] i[8]"},
      {"bitwise_not", "i[n,8]"},
      {"bitwise_or", "i[n,8] i[8]"},
      {"bitwise_xor", "i[n,8] i[8]"},
      {"left_shift", "i[n,8] i[8]"},
      {"right_shift", "i[n,8] i[8]"},
      {"logical_and", "b[n,8] b[8]"},
      {"logical_not", "b[n,8]"},
      {"logical_or", "b[n,8] b[8]"},
      {"logical_xor", "b[n,8] b[8]"},
      {"where", "b[n,1] f[n,8] f[8]"},
      {"clip", "f[n,8] -1.5 2.5"},
      {"nn.prelu", "f[n,8] f[8]"},
      // Reductions, linear algebra
      {"einsum", "t(f[n,8],f[8,m])", {{"subscripts", "ij,jk->ik"}}},
      {"matmul", "f[n,8] f[8,m]"},
      {"linear", "f[n,8] f[m,8] f[m]"},
      {"outer", "f[n] f[m]"},
      {"linalg.det", "f[n,3,3]"},
      // Windows
      {"nn.conv1d", "f[n,4,16] f[6,4,3]"},
      {"nn.conv2d", "f[n,4,16,16] f[6,4,3,3]"},
      {"nn.conv3d", "f[n,4,8,8,8] f[6,4,3,3,3]"},
      {"nn.conv1d_transpose", "f[n,4,16] f[4,6,3]"},
      {"nn.conv2d_transpose", "f[n,4,16,16] f[4,6,3,3]"},
      {"nn.conv3d_transpose", "f[n,4,8,8,8] f[4,6,3,3,3]"},
      {"nn.max_pool1d", "f[n,4,16]"},
      {"nn.max_pool2d", "f[n,4,16,16]"},
      {"nn.max_pool3d", "f[n,4,8,8,8]"},
      {"nn.avg_pool1d", "f[n,4,16]"},
      {"nn.avg_pool2d", "f[n,4,16,16]"},
      {"nn.avg_pool3d", "f[n,4,8,8,8]"},
      {"nn.sum_pool1d", "f[n,4,16]"},
      {"nn.sum_pool2d", "f[n,4,16,16]"},
      {"nn.sum_pool3d", "f[n,4,8,8,8]"},
      {"nn.adaptive_avg_pool1d", "f[n,4,16]"},
      {"nn.adaptive_avg_pool2d", "f[n,4,16,16]"},
      {"nn.adaptive_avg_pool3d", "f[n,4,8,8,8]"},
      {"nn.lp_pool", "f[n,4,16,16]"},
      {"nn.max_pool_with_indices", "f[n,4,16,16]"},
      // Normalization
      {"nn.batch_norm", "f[n,4,m] f[4] f[4] f[4] f[4]"},
      {"nn.layer_norm", "f[n,8] f[8] f[8]"},
      {"nn.rms_norm", "f[n,8] f[8]"},
      {"nn.group_norm", "f[n,4,16] f[4] f[4]", {{"num_groups", 2}, {"axes", Ints{2}}}},
      {"nn.instance_norm", "f[n,4,16] f[4] f[4]", {{"axes", Ints{2}}}},
      {"dyn.sum", "f[n,8] s[n,1]"},
      {"dyn.prod", "f[n,8] s[n,1]"},
      {"dyn.max", "f[n,8] s[1,8]"},
      {"dyn.min", "f[n,8] s[1,1]"},
      {"dyn.mean", "f[n,8] s[n,1]"},
      // Layout
      {"reshape", "f[n,8] s[n,2,4]"},
      {"broadcast_to", "f[n,1] s[n,8]"},
      {"collapse_sum_to", "f[n,8] s[1,8]"},
      {"collapse_sum_like", "f[n,8] f[8]"},
      {"expand_dims", "f[n,8]", {{"axis", Ints{0}}}},
      {"squeeze", "f[n,1]", {{"axis", Ints{1}}}},
      {"concat", "t(f[n,8],f[m,8])"},
      {"stack", "t(f[n,8],f[n,8])"},
      {"meshgrid", "t(f[n],f[8])"},
      {"split", "f[n,8]", {{"indices_or_sections", 2}, {"axis", 1}}},
      {"tile", "f[n,8]", {{"repeats", Ints{2, 1}}}},
      {"dyn.tile", "f[n,8] s[n,2]"},
      {"layout_transform", "f[n,8]", {{"index_map", Attrs{{"T.index_map", "lambda i, j: (i, j // 4, j % 4)"}}}}},
      {"strided_slice", "f[n,8] p(1) p(2) p(6) p(2)"},
      {"dynamic_strided_slice", "f[n,8] i[2] i[2] i[2]"},
      {"nn.pad", "f[n,8]", {{"pad_width", Ints{1, 2, 0, 3}}}},
      {"dyn.pad", "f[n,8] s[1,n,0,0]"},
      {"nn.pixel_shuffle", "f[n,4,m,8]", {{"upscale_factor", 2}}},
      // Indexing
      {"take", "f[n,8] i[m]", {{"axis", 0}}},
      {"check_indices", "i[m] s[n]"},
      {"gather_elements", "f[n,8] i[n,8]"},
      {"gather_nd", "f[n,8] i[m,1]"},
      {"scatter_elements", "f[n,8] i[n,8] f[n,8]"},
      {"scatter_nd", "f[n,8] i[m,1] f[m,8]"},
      {"slice_scatter", "f[n,8] f[2,8] 0 4 2"},
      {"index_tensor", "f[n,8] t(i[m],i[m])"},
      {"index_put", "f[n,8] t(i[m]) f[m,8]"},
      {"one_hot", "i[n] 1.5 0.5", {{"depth", 10}}},
      {"dyn.one_hot", "i[n] f[] f[] n"},
      {"reverse_sequence", "f[n,m,8] i[m]"},
      {"count.nonzero", "f[n,8]"},
      {"fill.nonzero", "f[n,8] s[n]"},
      {"dyn.warp_path", "f[n,8]"},
      {"count.warp_path", "f[n,8]"},
      {"fill.warp_path", "f[n,8] k[2,m] s[n]"},
      {"count.unique", "f[n,8] true true false"},
      {"fill.unique", "f[n] true true false i[n] i[n] i[n] s[m]"},
      {"unique", "f[n,8] true true false"},
      {"bucketize", "f[n,8] f[m]"},
      {"multinomial_from_uniform", "f[n,8] f[m,1] i[m,1]"},
      {"dyn.count_ngrams", "i[n,m] i[4,2]"},
      {"topk", "f[n,8]", {{"k", 3}}},
      {"dyn.topk", "f[n,8] 3"},
      // Creation
      {"full", "s[n,8] f[]"},
      {"full_like", "f[n,8] f[]"},
      {"zeros", "s[n,8]"},
      {"ones", "s[n,8]"},
      {"arange", "0 n 2"},
      {"eye", "n 8 1"},
      {"eye_like", "f[n,8] 1"},
      {"tril", "f[n,8] 1"},
      {"triu", "f[n,8] 1"},
      {"hamming_window", "n true 0.5 0.25"},
      {"shape_to_tensor", "s[n,8]"},
      {"scalar_to_tensor", "n"},
      // Images, detection
      {"image.resize", "f[n,4,16,16] s[n,4,32,32]", {{"axes", Ints{2, 3}}}},
      {"image.resize2d", "f[n,4,16,16] s[32,32]"},
      {"image.resize3d", "f[n,4,8,8,8] s[16,16,16]"},
      {"image.grid_sample", "f[n,4,16,16] f[n,2,8,m]"},
      {"image.affine_grid", "f[n,2,3] s[16,16]"},
      {"vision.all_class_non_max_suppression", "f[n,m,4] f[n,3,m] i[] f[] f[]"},
      {"count.all_class_non_max_suppression", "f[n,m,4] f[n,3,m] i[] f[] f[]"},
      {"fill.all_class_non_max_suppression", "f[n,m,4] f[n,3,m] i[] f[] f[] i[n,3,m] i[n,3] s[n]"},
      {"dyn.non_max_suppression", "f[n,m,6] k[n] k[n,m] i[n,m]"},
      {"vision.get_valid_counts", "f[n,m,6]"},
      {"vision.non_max_suppression", "f[n,m,6] k[n] k[n,m]"},
      {"vision.multibox_transform_loc", "f[n,3,8] f[n,32] f[1,8,4]"},
      {"vision.roi_align", "f[n,4,16,16] f[m,5]", {{"pooled_size", Ints{7, 7}}}},
      {"vision.roi_pool", "f[n,4,16,16] f[m,5]", {{"pooled_size", Ints{7, 7}}}},
      {"nn.col2im", "f[n,8,m] s[m,3] s[2,2]", {{"padding", Ints{0, 0, 0, 0}}}},
      {"nn.deform_columns", "f[n,4,16,16] f[n,8,m,8] s[2,2]"},
      // Signals, random numbers
      {"signal.dft", "f[n,m,2] 8"},
      {"random.uniform", "s[n,8] n"},
      {"random.normal", "s[n,8] n"},
      {"random.seed", "3"},
      // Attention, quantization, training
      {"nn.attention", "f[n,m,4,8] f[n,m,4,8] f[n,m,4,8]"},
      {"nn.attention_bias", "f[n,m,4,8] f[n,m,4,8] f[n,m,4,8] f[n,4,m,m]"},
      {"nn.attention_var_len", "f[1,n,4,8] f[1,n,4,8] f[1,n,4,8] k[m] k[m] k[] k[]"},
      {"quantize", "f[n,8] f[8] j[8]"},
      {"dequantize", "j[n,8] f[] j[]"},
      {"nn.cross_entropy_with_logits", "f[n,8] f[n,8]"},
      {"nn.nll_loss", "f[n,8,m] i[n,m] f[8]"},
      {"masked_fill", "f[n,8] b[n,1]"},
      {"grad.nll_loss_backward", "f[] f[n,8,m] i[n,m] f[8]"},
      {"grad.max_pool2d_backward", "f[n,4,16,16] f[n,4,16,16]"},
      {"grad.avg_pool2d_backward", "f[n,4,16,16] f[n,4,16,16]"},
      {"grad.take_backward", "f[m,8] f[n,8] i[m]", {{"axis", 0}}},
      // Workers
      {"ccl.allgather", "f[n,8]", {{"num_workers", 1}}},
      {"ccl.scatter_from_worker0", "f[8,n]", {{"num_workers", 1}}},
      {"dist.redistribute_replica_to_shard", "f[8,n]", {{"num_workers", 1}}},
      {"dist.annotate_sharding", "f[8,n]", {{"device_mesh", to_attr(kMesh)}, {"placement", "S[0]"}}},
      {"dist.redistribute", "D", {{"device_mesh", to_attr(kMesh)}, {"placement", "S[0]"}}},
      {"dist.call_tir_local_view", "@program t(f[n,8])", {}, "f[n,8]"},
      // The graph itself
      {"call_tir", "@program t(f[n,8])", {}, "f[n,8]"},
      {"call_tir_inplace", "@program t(f[n,8],f[n,8])", {{"inplace_indices", Ints{1}}}, "f[n,8]"},
      {"call_tir_with_grad", "@program t(f[n,8])", {{"te_grad_name", "gradient"}}, "f[n,8]"},
      {"call_dps_packed", "'kernel t(f[n,8])", {}, "f[n,8]"},
      {"call_pure_packed", "'function f[n,8]", {}, "f[n,8]"},
      {"call_inplace_packed", "'function f[n,8]", {{"inplace_indices", Ints{0}}}, "f[n,8]"},
      {"call_py_func", "q:function t(f[n,8])", {}, "f[n,8]"},
      {"call_builtin_with_ctx", "'function t(f[n,8])", {}, "f[n,8]"},
      {"make_closure", "@graph t(f[n,8])"},
      {"invoke_closure", "o t(f[n,8])", {}, "f[n,8]"},
      {"invoke_pure_closure", "o t(f[n,8])", {}, "f[n,8]"},
      {"vm.call_tir_dyn", "@program t(f[n,8],f[n,8])"},
      {"assert_op", "b[] f[n,8]", {{"format", "{}"}}},
      {"print", "f[n,8]", {{"format", "{}"}}},
      {"null_value", ""},
      {"tensor_to_shape", "i[3]"},
      {"inspect.tensor_item", "i[n]"},
      {"inspect.tensor_shape_i", "f[n,8] 1"},
      {"inspect.tensor_stride_i", "f[n,8] 1"},
      {"to_vdevice", "f[n,8]", {{"dst_vdevice", "llvm:0:global"}}},
      {"builtin.alloc_tensor", "s[n,8] d:float32"},
      {"memory.alloc_storage", "s[1024]"},
      {"memory.alloc_tensor", "o s[0] s[n,8] d:float32"},
      {"memory.join", "t(f[n,8],f[n,8]) s[2,n,8]"},
      {"memory.kill_storage", "o"},
      {"memory.view", "f[n,8] s[8,n] d:int32"},
      {"vm.alloc_storage", "s[1024] 0 d:uint8"},
      {"vm.alloc_tensor", "o s[0] s[n,8] d:float32"},
      {"vm.kill_object", "o"},
  };
  return kRecipes;
}

Recipe recipe_of(const OpRow& row) {
  for (const Recipe& recipe : recipes()) {
    if (row.name == std::string("relax.") + recipe.name) return recipe;
  }
  static constexpr const char* kTensors[] = {"", "f[n,8]", "f[n,8] f[8]", "f[n,8] f[8] f[n,1]"};
  size_t least = 0;
  for (const OpInput& input : row.inputs) least += input.arity == OpInput::Arity::kOne;
  return {"", kTensors[std::min<size_t>(least, 3)]};
}

// How much of a tensor's type is known.
enum class Known : uint8_t { kAll, kRank, kDType, kNothing };

class SampleMaker {
 public:
  explicit SampleMaker(uint64_t seed) : random_(seed), n_(make_dim("n")), m_(make_dim("m")) {
    numbers_ = seed % 4 == 1;
    unknown_ = seed % 4 == 2;
    sample_.params.push_back(make_var("dims", tensor_type({n_, m_}, kFloat32)));
  }

  OpSample make(const OpRow& row, const Recipe& recipe) {
    text_ = recipe.args;
    sample_.call.callee = op_ref(row.name);
    while (skip(' '), !text_.empty()) sample_.call.args.push_back(argument());
    text_ = recipe.type;
    if (!text_.empty()) sample_.call.type_args.push_back(tensor(Known::kAll));
    sample_.call.attrs = recipe.attrs;
    return std::move(sample_);
  }
  // Another value of the attribute's kind; infer may refuse it.
  AttrValue other_value(const OpAttr& attr) {
    switch (attr.kind) {
      case AttrKind::kBool:
        return pick(2) == 1;
      case AttrKind::kInt:
        return static_cast<int64_t>(pick(5)) - 2;
      case AttrKind::kFloat:
        return static_cast<double>(pick(64)) / 16;
      case AttrKind::kDType: {
        constexpr DType kDTypes[] = {kFloat32, kInt32, kInt64, DType::float_(16), DType::int_(8)};
        return kDTypes[pick(std::size(kDTypes))];
      }
      case AttrKind::kInts: {
        const AttrList* list = attr.otherwise.as<AttrList>();
        std::vector<int64_t> values(list && !list->empty() ? list->size() : 1 + pick(2));
        for (int64_t& value : values) value = static_cast<int64_t>(pick(3));
        return values;
      }
      case AttrKind::kString:
        return attr.choices.empty() ? attr.otherwise : std::string(attr.choices[pick(attr.choices.size())]);
      case AttrKind::kFloats:
      case AttrKind::kAny:
        break;
    }
    return attr.otherwise;
  }
  size_t pick(size_t count) { return random_() % count; }

 private:
  bool skip(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  std::string word() {
    size_t end = std::min(text_.find_first_of(" ,)]"), text_.size());
    std::string result(text_.substr(0, end));
    text_.remove_prefix(end);
    return result;
  }
  Expr scalar() {
    std::string text = word();
    if (text == "n") return n_;
    if (text == "m") return m_;
    if (text == "true" || text == "false") return bool_imm(text == "true");
    if (text.find('.') != std::string::npos) return float_imm(std::stod(text));
    return int_imm(std::stoll(text));
  }
  std::vector<Expr> dims() {
    std::vector<Expr> result;
    while (!skip(']')) {
      Expr dim = scalar();
      if (numbers_ && dim.is<Var>()) dim = int_imm(same(dim, n_) ? 4 : 6);
      result.push_back(dim);
      skip(',');
    }
    return result;
  }
  static bool same(const Expr& a, const VarRef& b) { return a.get() == b.get(); }

  Type tensor(Known known) {
    constexpr std::pair<char, DType> kDTypes[] = {
        {'f', kFloat32}, {'i', kInt64}, {'k', kInt32}, {'b', kBool}, {'j', DType::int_(8)}};
    char letter = text_[0];
    text_.remove_prefix(2);
    auto dtype = std::find_if(std::begin(kDTypes), std::end(kDTypes), [&](auto& row) { return row.first == letter; });
    RELAXC_CHECK(dtype != std::end(kDTypes), "'{}' is no dtype", letter);
    std::vector<Expr> shape = dims();
    if (known == Known::kAll) return tensor_type(std::move(shape), dtype->second);
    if (known == Known::kRank) return tensor_type_of_rank(static_cast<int64_t>(shape.size()), dtype->second);
    return tensor_type_of_rank(-1, known == Known::kDType ? std::optional(dtype->second) : std::nullopt);
  }
  Expr param(std::string name, Type type) {
    sample_.params.push_back(make_var(std::move(name), std::move(type)));
    return sample_.params.back();
  }
  std::vector<Expr> list() {
    std::vector<Expr> items;
    while (!skip(')')) {
      items.push_back(argument());
      skip(',');
    }
    return items;
  }

  Expr argument() {
    if (text_.starts_with("t(") || text_.starts_with("p(")) {
      text_.remove_prefix(2);
      return tuple(list());
    }
    if (text_.starts_with("s[")) {
      text_.remove_prefix(2);
      std::vector<Expr> values = dims();
      return unknown_ && pick(2) == 1 ? param("s", shape_type_of_rank(static_cast<int64_t>(values.size())))
                                      : shape_expr(std::move(values));
    }
    if (text_.size() > 1 && text_[1] == '[')
      return param("x", tensor(unknown_ ? static_cast<Known>(pick(4)) : Known::kAll));
    if (skip('@')) return function(word());
    if (skip('\'')) return extern_func(word());
    if (text_.starts_with("d:")) {
      text_.remove_prefix(2);
      return relaxc::make(DTypeImm{*parse_dtype(word())}, object_type());
    }
    if (text_.starts_with("q:")) {
      text_.remove_prefix(2);
      return string_imm(word());
    }
    if (skip('o')) return param("o", object_type());
    if (skip('D')) return param("x", relaxc::make(DTensorType{tensor_type({int_imm(4), n_}, kFloat32), kMesh, "R"}));
    return scalar();
  }

  // A tensor program exp: [k, 8] to [k, 8], or a graph function of such a tensor.
  Expr function(const std::string& name) {
    VarRef k = make_dim("k");
    if (name == "program") {
      ComputeBuilder b;
      Buffer x = b.input("x", kFloat32, {k, int_imm(8)});
      PrimFuncRef program = b.finish({b.compute("y", kFloat32, {k, int_imm(8)}, [&](Axes i) { return at(x, i); })});
      PrimFunc named = *program;
      named.attrs.set("global_symbol", name);
      sample_.functions.emplace(name, make_prim_func(std::move(named)));
      return global_var(name, object_type());
    }
    VarRef x = make_var("x", tensor_type({k, int_imm(8)}, kFloat32));
    Function graph{{x}, seq_expr({}, x), x.type(), true, {{"global_symbol", name}}};
    Type type = relaxc::make(FuncType{std::vector<Type>{x.type()}, x.type(), true});
    sample_.functions.emplace(name, make_function(std::move(graph)));
    return global_var(name, type);
  }

  std::mt19937_64 random_;
  VarRef n_, m_;
  bool numbers_, unknown_;
  std::string_view text_;
  OpSample sample_{{op_ref(""), {}, {}, {}}, {}, {}};
};

bool accepts(const OpTable& ops, const Call& call) {
  try {
    infer_call_type(call, {}, ops);
    return true;
  } catch (const CompileError&) {
    return false;
  }
}

}  // namespace

std::optional<OpSample> sample_in_texts(const OpTable& ops, const OpRow& row) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(RELAXC_SOURCE_DIR "/tests/modules")) {
    if (entry.path().extension() == ".test") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::string use = "R." + std::string(row.name).substr(std::string("relax.").size()) + "(";
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    text.resize(std::min(text.find("\n# ----"), text.size()));
    if (text.find(use) == std::string::npos) continue;
    Diagnostics diagnostics;
    IRModule module = parse_module(text, path.filename().string(), ops, diagnostics);
    std::optional<OpSample> sample;
    for (const auto& [name, value] : module.functions) {
      const Function* function = value.as<Function>();
      if (!function || sample) continue;
      walk(function->body, [&](const Call& call) {
        const OpRef* op = call.callee.as<OpRef>();
        if (op && op->name == row.name && !sample) sample = OpSample{call, function->params, {}};
      });
    }
    if (!sample || diagnostics.has_errors()) continue;
    // Values that the function computes become params; dims are those of the function's params.
    for (const VarRef& var : free_vars(make(Call(sample->call), object_type()))) {
      bool is_param = std::ranges::any_of(sample->params, [&](const VarRef& param) { return same_node(param, var); });
      if (!is_param && !var.type().is<PrimType>()) sample->params.push_back(var);
    }
    return sample;
  }
  return std::nullopt;
}

std::optional<OpSample> sample_call(const OpTable& ops, const OpRow& row, uint64_t seed) {
  Recipe recipe = recipe_of(row);
  SampleMaker maker(seed);
  OpSample sample = maker.make(row, recipe);
  if (!accepts(ops, sample.call)) {
    if (seed == 0) return sample_in_texts(ops, row);
    return sample_call(ops, row, 0);  // a part that is not known here matters
  }
  sample.call = normalize_call(row, std::move(sample.call));
  if (seed == 0) return sample;
  for (const OpAttr& attr : row.attrs) {
    Call other = sample.call;
    if (seed % 4 == 3) other.attrs.set(attr.name, maker.other_value(attr));
    other = normalize_call(row, std::move(other));
    if (accepts(ops, other)) sample.call = std::move(other);
  }
  return sample;
}

IRModule sample_module(const OpTable& ops, const OpRow& row, const OpSample& sample) {
  Type type = infer_call_type(sample.call, {}, ops);
  Builder builder(ops);
  VarRef result =
      builder.emit(call(sample.call.callee, sample.call.args, sample.call.attrs, type, {}, sample.call.type_args));
  Expr body = builder.finish(result);
  IRModule module;
  module.functions = sample.functions;
  module.functions.emplace("main", make_function({sample.params, body, type, row.pure, {{"global_symbol", "main"}}}));
  return module;
}

}  // namespace relaxc::test
