// The forms of I, T and R: their other spellings, the arguments that they take, so that a surplus argument or an
// unknown keyword is an error at its place, and which function reads them. Calls of operators and builtins have
// separate tables (ops/, ir/intrinsics.cc).
#include <algorithm>

#include "ir/text/parsing.h"
#include "support/joined.h"

namespace relaxc::text {

namespace {

// Spellings of later and earlier versions, by the name after the prefix is resolved.
const std::unordered_map<std::string_view, std::string_view> kAliases = {
    {"R.Any", "R.Object"},
    {"R.AnyType", "R.Object"},
    {"R.DataTypeImm", "R.dtype"},
    {"R.FuncStructInfo", "R.Callable"},
    {"R.FuncType", "R.Callable"},
    {"R.ObjectType", "R.Object"},
    {"R.ShapeType", "R.Shape"},
    {"R.TupleType", "R.Tuple"},
    {"I.PrimType", "R.Prim"},
    {"R.Constant", "R.const"},
    {"R.alloc_tensor", "R.builtin.alloc_tensor"},
    {"R.call_dps", "R.call_tir"},
    {"R.concatenate", "R.concat"},
    {"R.const_value", "R.const"},
    {"R.ObjectStructInfo", "R.Object"},
    {"R.PrimStructInfo", "R.Prim"},
    {"R.PrimValue", "R.prim_value"},
    {"R.ShapeExpr", "R.shape"},
    {"R.ShapeStructInfo", "R.Shape"},
    {"R.StringImm", "R.str"},
    {"R.TensorStructInfo", "R.Tensor"},
    {"R.TensorType", "R.Tensor"},
    {"R.TupleStructInfo", "R.Tuple"},
    {"R.dist.call_tir", "R.call_tir"},
    {"R.dense", "R.linear"},
    {"R.dot", "R.matmul"},
    {"R.dummy_global_info", "I.dummy_global_info"},
    {"R.extern", "R.ExternFunc"},
    {"R.get_shape_of", "R.shape_of"},
    {"R.nn.dense", "R.linear"},
    {"R.nn.matmul", "R.matmul"},
    {"R.transpose", "R.permute_dims"},
    {"R.outputs", "R.output"},
    {"R.vdevice", "I.vdevice"},
    {"T.Max", "T.max"},
    {"T.Tensor", "T.Buffer"},
    {"T.TensorType", "T.Buffer"},
    {"T.add", "T.Add"},
    {"T.alloc_tensor", "T.alloc_buffer"},
    {"T.multiply", "T.Mul"},
    {"T.subtract", "T.Sub"},
    {"T.decl_tensor", "T.decl_buffer"},
    {"T.function", "T.prim_func"},
    {"T.Ptr", "T.handle"},
    {"T.Min", "T.min"},
    {"T.axis.R", "T.axis.reduce"},
    {"T.axis.S", "T.axis.spatial"},
    {"T.block_alloc_buffer", "T.sblock_alloc_buffer"},
    {"T.boolean", "T.bool"},
    {"T.broadcast", "T.Broadcast"},
    {"T.buffer", "T.Buffer"},
    {"T.buffer_allocate", "T.alloc_buffer"},
    {"T.buffer_bind", "T.match_buffer"},
    {"T.buffer_decl", "T.decl_buffer"},
    {"T.div", "T.Div"},
    {"T.expr.ProducerLoad", "T.ProducerLoad"},
    {"T.fabs", "T.abs"},
    {"T.floordiv", "T.FloorDiv"},
    {"T.Bind", "T.bind"},
    {"T.floormod", "T.FloorMod"},
    {"T.fmod", "T.Mod"},
    {"T.indexdiv", "T.FloorDiv"},
    {"T.indexmod", "T.FloorMod"},
    {"T.match_buffer_region", "T.match_buffer"},
    {"T.power", "T.pow"},
    {"T.ptr", "T.handle"},
    {"T.let", "T.Let"},
    {"T.ramp", "T.Ramp"},
    {"T.sblock", "T.block"},
    {"T.sblock_attr", "T.block_attr"},
    {"T.LetExpr", "T.Let"},
    {"T.call_tvm_packed", "T.call_packed"},
    {"T.select", "T.Select"},
    {"T.thread_axis", "T.env_thread"},
    {"T.tvm_call_cpacked", "T.call_cpacked"},
    {"T.truncdiv", "T.Div"},
    {"T.truncmod", "T.Mod"},
    {"T.tvm_call_packed", "T.call_packed"},
    {"T.unrolled", "T.unroll"}};
constexpr std::pair<std::string_view, std::string_view> kKeywordAliases[] = {
    {"gvar", "func"},          {"out_ty", "out_sinfo"},   {"output_dtype", "dtype"},
    {"output_shape", "shape"}, {"rank", "ndim"},          {"sinfo", "struct_info"},
    {"ty", "struct_info"},     {"ty_args", "sinfo_args"}, {"type_args", "sinfo_args"}};

// Names of the positional arguments, in order; names after `|` are keywords only. `*` allows any number of further
// arguments, or (after `|`) keywords that are not close to a known name; the reader of such a form checks them.
constexpr std::string_view kBuffer =
    "shape dtype data strides elem_offset scope align offset_factor buffer_type axis_separators | annotations layout "
    "logical_scope";
constexpr std::string_view kMatched =
    "param shape dtype data strides elem_offset scope align offset_factor buffer_type axis_separators | layout";

constexpr std::string_view kAny = "* | *";  // the reader checks them

}  // namespace

std::string canonical_form(std::string path) { return std::string(copy_value(kAliases, path).value_or(path)); }
std::string_view canonical_keyword(std::string_view name) {
  const std::string_view* canonical = row_of(kKeywordAliases, name);
  return canonical ? *canonical : name;
}

// Forms with the same arguments and reader share a row. The reader is that of a value; other forms have none.
struct Parser::FormRow {
  std::string_view names, arguments;
  Form Parser::* read = nullptr;
};

struct Parser::FormEntry {
  std::vector<std::string_view> names;
  size_t positional = 0;  // the number of names that positional arguments have
  bool any = false, any_keyword = false;
  Form Parser::* read;

  explicit FormEntry(const FormRow& row) : read(row.read) {
    bool keywords = false;
    for (std::string_view word : parts_of(row.arguments, ' ')) {
      if (word == "|") {
        keywords = true;
      } else if (word == "*") {
        (keywords ? any_keyword : any) = true;
      } else {
        names.push_back(word);
        positional += !keywords;
      }
    }
  }
};

const std::unordered_map<std::string_view, Parser::FormEntry>& Parser::forms() {
  static constexpr FormRow kForms[] = {
      {"I.Op I.Op.get", kAny, &Parser::value_form},
      {"I.dummy_global_info R.Object R.dataflow R.is_impure T.Else T.Then T.init", ""},
      {"I.module_attrs R.func_attr T.block_attr T.func_attr", "attrs"},
      {"I.module_global_infos", "infos"},
      {"I.vdevice", "target vdevice_id memory_scope"},
      {"R.Callable", "params ret purity derive_func"},
      {"R.DTensor", "shape dtype device_mesh placement | ndim"},
      {"R.ExternFunc", "global_symbol struct_info | name", &Parser::value_form},
      {"R.Map", "key value"},
      {"R.Optional R.Sequence", "item"},
      {"R.Prim", "dtype value"},
      {"R.Shape", "values ndim"},
      {"R.Tensor", "shape dtype vdevice ndim"},
      {"R.Tuple R.tuple", "*", &Parser::tuple_form},
      {"R.TupleGetItem", "tuple_value index", &Parser::tuple_form},
      {"R.call_builtin_with_ctx R.call_py_func R.invoke_closure R.invoke_pure_closure R.make_closure", kAny,
       &Parser::applied_form},
      {"R.call_dps_packed R.call_tir R.dist.call_tir_local_view", "func args out_sinfo tir_vars | shape dtype *",
       &Parser::call_tir_form},
      {"R.call_tir_inplace", "func args inplace_indices out_sinfo tir_vars | shape dtype *", &Parser::call_tir_form},
      {"R.call_tir_with_grad", "func args out_sinfo te_grad_name te_grad_kwargs tir_vars | shape dtype *",
       &Parser::call_tir_form},
      {"R.call_inplace_packed R.call_packed R.call_pure_packed", kAny, &Parser::packed_form},
      {"R.const", "value dtype | shape encoding", &Parser::value_form},
      {"R.device_mesh", "shape device_ids"},
      {"R.dist.const", kAny, &Parser::distributed_form},
      {"R.dtype", "dtype | value", &Parser::value_form},
      {"R.emit R.prim_value R.str", "value", &Parser::value_form},
      {"R.shape", "value *", &Parser::value_form},
      {"R.emit_te", kAny, &Parser::value_form},
      {"R.function", "| pure private check_well_formed"},
      {"R.hint_on_device", kAny, &Parser::device_form},
      {"R.match_cast", "value struct_info", &Parser::value_form},
      {"R.match_shape", "value shape"},
      {"R.output T.grid T.reads T.writes", "*"},
      {"R.Call R.call_tir_packed", kAny, &Parser::node_form},
      {"R.vm.call_tir_dyn", kAny, &Parser::applied_form},
      {"T.Assert", "condition message"},
      {"T.Broadcast", "value lanes", &Parser::broadcast_form},
      {"T.Buffer T.alloc_buffer T.alloc_local T.alloc_shared T.decl_buffer T.sblock_alloc_buffer", kBuffer},
      {"T.Cast", "dtype value", &Parser::cast_form},
      {"T.FloatImm T.IntImm", "dtype value", &Parser::cast_form},
      {"T.If", "condition"},
      {"T.Let", "expr where body", &Parser::let_form},
      {"T.LetStmt", "value type_annotation | var"},
      {"T.Not", "a", &Parser::logical_form},
      {"T.Ramp", "base stride lanes", &Parser::ramp_form},
      {"T.Select", "condition true_value false_value", &Parser::select_form},
      {"T.Shuffle", "vectors indices", &Parser::shuffle_form},
      {"T.StringImm", "value", &Parser::string_form},
      {"T.all T.any", kAny, &Parser::logical_form},
      {"T.alloc_cell", "dtype init scope"},
      {"T.alloc_scalar T.local_scalar T.shared_scalar", "dtype scope"},
      {"T.ProducerLoad", "producer indices", &Parser::producer_form},
      {"T.allocate", "extents dtype scope condition annotations"},
      {"T.allocate_const", "data dtype extents annotations"},
      {"T.attr", "node attr_key value"},
      {"T.axis.opaque T.axis.reduce T.axis.scan T.axis.spatial", "dom binding dtype"},
      {"T.axis.remap", "kinds bindings dtype"},
      {"T.bind", "value binding | var type_annotation"},
      {"T.block", "name_hint no_realize | name exec_scope"},
      {"T.cast", "value dtype", &Parser::cast_form},
      {"T.buffer_store", "buffer value indices predicate"},
      {"T.ceildiv", "lhs rhs", &Parser::ceildiv_form},
      {"T.comm_reducer", "combiner identity name", &Parser::reducer_form},
      {"T.compute", "shape fcompute name tag attrs varargs_names"},
      {"T.const", "value dtype", &Parser::cast_form},
      {"T.create_prim_func", "ops index_dtype_override"},
      {"T.env_thread", "thread_tag dtype"},
      {"T.evaluate", "value"},
      {"T.extern", "shape inputs fcompute name dtype in_buffers out_buffers tag attrs"},
      {"T.handle", "dtype storage_scope | is_size_var"},
      {"T.if_then_else", "cond t f dtype", &Parser::select_form},
      {"T.index_map", "mapping | inverse_index_map index_dtype"},
      {"T.infinity T.max_value T.min_value", "dtype", &Parser::limit_form},
      {"T.iter_var", "var dom iter_type thread_tag", &Parser::iter_var_form},
      {"T.launch_thread", "thread extent"},
      {"T.llvm_lookup_intrinsic_id", "name", &Parser::string_form},
      {"T.load", "dtype var index predicate", &Parser::load_form},
      {"T.masked_load", kAny, &Parser::masked_load_form},
      {"T.match_buffer", kMatched},
      {"T.meta_var", "value", &Parser::value_form},
      {"T.opaque_axis T.reduce_axis T.scan_axis", "dom name thread_tag span"},
      {"T.placeholder", "shape dtype name"},
      {"T.prim_func", "| private check_well_formed s_tir persistent"},
      {"T.realize", "bounds storage_scope condition"},
      {"T.scan", "init update state_placeholder inputs name tag attrs"},
      {"T.store", "var index value predicate"},
      {"T.sum", kAny, &Parser::reduction_form},
      {"T.target", "target_config host", &Parser::target_form},
      {"T.Var T.SizeVar T.size_var T.var", "name dtype span", &Parser::te_variable_form},
      {"T.where", "predicate"},
  };
  static const auto entries = [] {
    std::unordered_map<std::string_view, FormEntry> result;
    for (const FormRow& row : kForms) {
      for (std::string_view name : parts_of(row.names, ' ')) result.emplace(name, row);
    }
    return result;
  }();
  return entries;
}

// Returns the form that a name without a prefix means in texts that leave prefixes out, as those of papers and graph
// functions of 2021 do.
std::string Parser::bare_form(const Syntax& at) const {
  if (!leaves_out_prefixes() || lookup(at.text) || declared_.contains(at.text)) return {};
  std::string path = canonical_form(fmt::format("{}.{}", in_graph_ ? "R" : "T", at.text));
  bool known = forms().contains(path) || path.ends_with(".sym_var");
  if (in_graph_) known = known || ops_.find("relax." + path.substr(2));
  if (!in_graph_)
    known = known || find_intrinsic("tir." + path.substr(2)) || kind_named(kForKinds, path.substr(2)) ||
            operator_of(path.substr(2), &BinaryOpInfo::name) || parse_dtype(path.substr(2));
  return known ? path : "";
}

std::string Parser::near_form(std::string_view path) const {
  std::vector<std::string> known = {"T.bool", "T.call_intrin", "T.float32", "T.int32", "T.int64"};
  for (const auto& [name, entry] : forms()) known.emplace_back(name);
  for (const auto& [name, canonical] : kAliases) known.emplace_back(name);
  for (const ForKindRow& kind : kForKinds) known.push_back(fmt::format("T.{}", kind.name));
  for (const Intrinsic& intrinsic : intrinsics()) known.push_back("T" + std::string(intrinsic.name).substr(3));
  for (const Builtin& builtin : builtins()) known.push_back(fmt::format("T.{}", spelling(builtin)));
  for (const BinaryOpInfo& operation : binary_ops()) known.push_back(fmt::format("T.{}", operation.name));
  for (const OpRow& row : ops_.rows()) known.push_back("R" + row.name.substr(5));
  std::erase_if(known, [&](const std::string& name) { return name.substr(0, 2) != path.substr(0, 2); });
  std::ranges::sort(known);  // so that hints do not depend on the order of a hash table
  return nearest(path, known);
}

void Parser::check_signature(const std::string& path, const Syntax& call) {
  const FormEntry* form = is_call(call) ? find_value(forms(), path) : nullptr;
  if (form && !form->any_keyword && !fits_signature(path, call)) throw Failed();
}

bool Parser::fits_signature(const std::string& path, const Syntax& call) {
  const FormEntry& row = forms().at(path);
  const size_t count = row.positional, given = positional(call);
  bool right = row.any || given <= count;
  if (!right)
    report(*call.children[count + 1], "{} takes {} argument{}, got {}", path, count, count == 1 ? "" : "s", given);
  for (const Keyword& keyword : call.keywords) {
    auto named = std::ranges::find(row.names, canonical_keyword(keyword.name));
    if (named == row.names.end()) {
      std::string near = nearest(keyword.name, {row.names.begin(), row.names.end()});
      if (row.any_keyword && near.empty()) continue;
      report({keyword, near}, "unknown argument '{}' of {}", keyword.name, path);
      right = false;
    }
    if (static_cast<size_t>(named - row.names.begin()) < std::min(given, count))
      fail(keyword, "argument '{}' of {} is given twice", keyword.name, path);
  }
  return right;
}

const std::vector<std::string_view>& Parser::argument_names(const std::string& path) { return forms().at(path).names; }

std::optional<Value> Parser::form_value(const std::string& path, const Syntax& at) {
  const FormEntry* form = find_value(forms(), path);
  return form && form->read ? std::optional((this->*form->read)(path, at)) : std::nullopt;
}

void Parser::check_keywords(const Syntax& call, const std::vector<std::string>& known) {
  bool sound = true;
  for (const Keyword& keyword : call.keywords) {
    if (std::ranges::find(known, canonical_keyword(keyword.name)) != known.end()) continue;
    report({keyword, nearest(keyword.name, known)}, "unknown argument '{}'", keyword.name);
    sound = false;
  }
  if (!sound) throw Failed();
}

std::string Parser::called(const Syntax& at) {
  std::string path = callee_path(at);
  check_signature(path, at);
  return path;
}

}  // namespace relaxc::text
