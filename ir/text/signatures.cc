// The arguments that the forms of I, T and R take, so that a surplus argument or an unknown keyword is an error at its
// place. Calls of operators and builtins have separate tables (ops/, ir/intrinsics.cc).
#include <algorithm>
#include <unordered_map>

#include "ir/text/parsing.h"

namespace relaxc::text {

namespace {

// Names of the positional arguments, in order. `*` allows any number of further ones; names after `|` are keywords
// only.
constexpr std::string_view kBuffer =
    "shape dtype data strides elem_offset scope align offset_factor buffer_type axis_separators | annotations layout "
    "logical_scope";
constexpr std::string_view kMatched =
    "param shape dtype data strides elem_offset scope align offset_factor buffer_type axis_separators | layout";
constexpr std::string_view kAxis = "dom binding dtype";

constexpr std::pair<std::string_view, std::string_view> kSignatures[] = {
    {"I.dummy_global_info", ""},
    {"I.module_attrs", "attrs"},
    {"I.module_global_infos", "infos"},
    {"I.vdevice", "target vdevice_id memory_scope"},
    {"R.Callable", "params ret purity derive_func"},
    {"R.DTensor", "shape dtype device_mesh placement | ndim"},
    {"R.ExternFunc", "global_symbol struct_info | name"},
    {"R.Object", ""},
    {"R.Prim", "dtype value"},
    {"R.Shape", "values ndim"},
    {"R.Tensor", "shape dtype vdevice ndim"},
    {"R.Tuple", "*"},
    {"R.TupleGetItem", "tuple_value index"},
    {"R.const", "value dtype | shape encoding"},
    {"R.dataflow", ""},
    {"R.device_mesh", "shape device_ids"},
    {"R.dtype", "dtype | value"},
    {"R.emit", "value"},
    {"R.func_attr", "attrs"},
    {"R.function", "| pure private check_well_formed"},
    {"R.is_impure", ""},
    {"R.match_cast", "value struct_info"},
    {"R.match_shape", "value shape"},
    {"R.output", "*"},
    {"R.prim_value", "value"},
    {"R.shape", "value"},
    {"R.str", "value"},
    {"R.tuple", "*"},
    {"T.Assert", "condition message"},
    {"T.Broadcast", "value lanes"},
    {"T.Buffer", kBuffer},
    {"T.Cast", "dtype value"},
    {"T.Let", "expr where body"},
    {"T.LetStmt", "value type_annotation | var"},
    {"T.Not", "a"},
    {"T.Ramp", "base stride lanes"},
    {"T.Select", "condition true_value false_value"},
    {"T.Shuffle", "vectors indices"},
    {"T.StringImm", "value"},
    {"T.alloc_buffer", kBuffer},
    {"T.alloc_local", kBuffer},
    {"T.alloc_shared", kBuffer},
    {"T.alloc_scalar", "dtype scope"},
    {"T.allocate", "extents dtype scope condition annotations"},
    {"T.allocate_const", "data dtype extents annotations"},
    {"T.attr", "node attr_key value"},
    {"T.axis.opaque", kAxis},
    {"T.axis.reduce", kAxis},
    {"T.axis.remap", "kinds bindings dtype"},
    {"T.axis.scan", kAxis},
    {"T.axis.spatial", kAxis},
    {"T.bind", "value"},
    {"T.block", "name_hint no_realize | name exec_scope"},
    {"T.block_attr", "attrs"},
    {"T.cast", "value dtype"},
    {"T.ceildiv", "lhs rhs"},
    {"T.comm_reducer", "combiner identity"},
    {"T.decl_buffer", kBuffer},
    {"T.env_thread", "thread_tag dtype"},
    {"T.evaluate", "value"},
    {"T.func_attr", "attrs"},
    {"T.grid", "*"},
    {"T.handle", "dtype storage_scope | is_size_var"},
    {"T.if_then_else", "cond t f dtype"},
    {"T.index_map", "mapping | inverse_index_map index_dtype"},
    {"T.infinity", "dtype"},
    {"T.init", ""},
    {"T.iter_var", "var dom iter_type thread_tag"},
    {"T.launch_thread", "thread extent"},
    {"T.llvm_lookup_intrinsic_id", "name"},
    {"T.load", "dtype var index predicate"},
    {"T.local_scalar", "dtype scope"},
    {"T.match_buffer", kMatched},
    {"T.max_value", "dtype"},
    {"T.meta_var", "value"},
    {"T.min_value", "dtype"},
    {"T.prim_func", "| private check_well_formed s_tir persistent"},
    {"T.reads", "*"},
    {"T.sblock_alloc_buffer", kBuffer},
    {"T.shared_scalar", "dtype scope"},
    {"T.store", "var index value predicate"},
    {"T.target", "target_config host"},
    {"T.where", "predicate"},
    {"T.writes", "*"},
};

struct FormSignature {
  std::vector<std::string_view> names;
  size_t positional = 0;  // how many of the names
  bool any = false;

  explicit FormSignature(std::string_view text) {
    bool keywords = false;
    for (std::string_view rest = text; !rest.empty();) {
      std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      if (word == "|") {
        keywords = true;
      } else if (word == "*") {
        any = true;
      } else {
        names.push_back(word);
        positional += !keywords;
      }
    }
  }
};

const FormSignature* find_signature(std::string_view path) {
  static const auto signatures = [] {
    std::unordered_map<std::string_view, FormSignature> result;
    for (const auto& [name, text] : kSignatures) result.emplace(name, FormSignature(text));
    return result;
  }();
  auto row = signatures.find(path);
  return row == signatures.end() ? nullptr : &row->second;
}

}  // namespace

std::vector<std::string_view> form_names() {
  std::vector<std::string_view> result;
  for (const auto& [name, arguments] : kSignatures) result.push_back(name);
  return result;
}

void Parser::check_signature(const std::string& path, const Syntax& call) {
  const FormSignature* row = is_call(call) ? find_signature(path) : nullptr;
  if (!row) return;
  const size_t count = row->positional, given = positional(call);
  bool right = row->any || given <= count;
  if (!right)
    report(*call.children[count + 1], "{} takes {} argument{}, got {}", path, count, count == 1 ? "" : "s", given);
  for (const Keyword& keyword : call.keywords) {
    auto named = std::ranges::find(row->names, canonical_keyword(keyword.name));
    if (named == row->names.end()) {
      report_with_hint(keyword, nearest(keyword.name, {row->names.begin(), row->names.end()}),
                       "unknown argument '{}' of {}", keyword.name, path);
      right = false;
    }
    if (static_cast<size_t>(named - row->names.begin()) < std::min(given, count))
      fail(keyword, "argument '{}' of {} is given twice", keyword.name, path);
  }
  if (!right) throw Failed();
}

void Parser::check_keywords(const Syntax& call, const std::vector<std::string>& known) {
  bool sound = true;
  for (const Keyword& keyword : call.keywords) {
    if (std::ranges::find(known, canonical_keyword(keyword.name)) != known.end()) continue;
    report_with_hint(keyword, nearest(keyword.name, known), "unknown argument '{}'", keyword.name);
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
