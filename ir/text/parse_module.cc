// Reads the module around the functions: its attributes, devices and meshes, external functions, and the declaration of
// each definition. Bodies of graph functions are read later (parser.cc), so definitions may come in any order.
#include <algorithm>
#include <numeric>

#include "ir/text/parsing.h"
#include "support/checked_math.h"
#include "support/joined.h"

namespace relaxc::text {

void Parser::imports(const Line& line) {
  for (const auto& [path, local] : line.imports) {
    std::string_view last = std::string_view(path).substr(path.rfind('.') + 1);
    if (path.starts_with("tilelang") && local == "T")
      report_text({line, {}, "paste its module as TVM prints it after lowering: mod.script()"},
                  "'T' of tilelang is another language than TVM's tensor programs");
    mutable_scalars_ = mutable_scalars_ || last == "tirx";
    size_t script = path.find("script.");
    bool from_forms = script != std::string::npos && (path.find(".tir.", script) != std::string::npos ||
                                                      path.find(".relax.", script) != std::string::npos);
    bare_forms_ = bare_forms_ || from_forms;
    if (auto known = copy_value(prefixes_, last)) prefixes_.insert_or_assign(local, *known);
  }
}

bool Parser::is_docstring(const Line& line) const {
  return line.kind == LineKind::kExpression && line.value->kind == SyntaxKind::kString;
}

void Parser::class_head(const Line& line) {
  class_name_ = std::string(line.text);
  in_class_ = true;
  decorated_class_ = !line.decorators.empty() && early_decorator(head_of(*line.decorators.front())).empty();
  for (const Syntax* decorator : line.decorators) {
    const Syntax& callee = head_of(*decorator);
    bool known = callee.text == "ir_module" || callee.text == "py_module" || !early_decorator(callee).empty();
    if (!known) fail({*decorator, "@I.ir_module"}, "unknown decorator of a class");
    check_keywords(*decorator, {"check_well_formed", "s_tir"});
    if (const Syntax* flag = keyword(*decorator, "s_tir")) mutable_scalars_ = mutable_scalars_ || constant_bool(*flag);
  }
}

// Reads n = TypeVar("n"), T.dynamic("n"), tir.Var("n", "int64") or te.var("n"): a dim that signatures may name without
// quotes.
bool Parser::type_variables(const Line& line) {
  if (line.kind != LineKind::kAssign || !line.value) return false;
  std::vector<const Syntax*> targets = items(*line.target), values = items(*line.value);
  std::vector<DType> dtypes;
  for (const Syntax* value : values) {
    if (!is_call(*value)) return false;
    std::string path = callee_path(*value);
    bool any_dtype = value->children[0]->text == "TypeVar" || path == "I.dynamic" || path == "T.dynamic";
    if (path == "T.int64" && positional(*value) == 0) {  // of a BlockBuilder's dims
      dtypes.push_back(kInt64);
      continue;
    }
    bool is_var = path == "T.Var" || path == "T.SizeVar" || path == "T.var" || path == "T.size_var";
    if (positional(*value) == 0 || !(any_dtype || is_var)) return false;
    const Syntax* stated = arg(*value, 1, "dtype");
    dtypes.push_back(stated ? dtype(*stated) : any_dtype ? DType::void_() : kInt32);
  }
  if (values.empty()) return false;
  if (targets.size() != values.size()) fail(line, "{} names for {} values", targets.size(), values.size());
  for (size_t i = 0; i < targets.size(); ++i) type_variables_.insert_or_assign(name_of_target(*targets[i]), dtypes[i]);
  return true;
}

void Parser::module_line(const Line& line) {
  if (line.kind == LineKind::kExpression) {
    std::string callee = called(*line.value);
    if (callee == "I.module_global_infos") return global_infos(required(*line.value, 0, "infos"));
    if (callee == "I.module_attrs") return add_attrs(*line.value, module_.attrs);
  }
  bool external = line.kind == LineKind::kAssign && line.value && callee_path(*line.value) == "R.ExternFunc";
  if (!external) fail(line, "expected a function, R.ExternFunc or module attributes here");
  std::string name = name_of_target(*line.target);
  if (declared_.contains(name)) fail(line, "function '{}' is defined twice", name);
  Expr function = external_function(*line.value);
  declared_.emplace(name, function.type());
  module_.functions.emplace(name, function);
}

Expr Parser::external_function(const Syntax& at) {
  check_signature("R.ExternFunc", at);
  const Syntax& symbol = required(at, 0, keyword(at, "name") ? "name" : "global_symbol");
  Expr function = extern_func(string(symbol), span(at));
  const Syntax* stated = arg(at, 1, "struct_info");
  return !is_none(stated) ? with_type(function, type(*stated)) : function;
}

namespace {

// Decorators whose functions cannot be read, and why.
constexpr const char* kNeedsPython = "macros need a Python interpreter; write out their expansion";
constexpr const char* kHybrid =
    "hybrid script is no longer part of TVM; write its output as te.compute((n, m), lambda i, j: ...), or its loops as "
    "@T.prim_func";
constexpr std::pair<std::string_view, const char*> kRefused[] = {
    {"R.macro", kNeedsPython},
    {"T.hybrid.script", kHybrid},
    {"R.rewriter", "rewriters are not functions of a module"},
    {"T.inline", kNeedsPython},
    {"T.jit", "templates need a Python interpreter; write out their expansion"},
    {"T.macro", kNeedsPython}};

std::string target_kind(const VDevice& device) {
  if (const Attrs* target = device.target.as<Attrs>()) return target->get_string("kind", "");
  const std::string& text = *device.target.as<std::string>();
  return text.substr(0, text.find(' '));
}

}  // namespace

// Returns the canonical form of a decorator of 2020 to 2022; "" for others.
std::string Parser::early_decorator(const Syntax& at) const {
  constexpr std::pair<std::string_view, const char*> kEarly[] = {
      {"tvm.hybrid.script", "T.prim_func"}, {"hybrid.script", "T.prim_func"},   {"tvm.script.tir", "T.prim_func"},
      {"script.tir", "T.prim_func"},        {"tvm.script.relax", "R.function"}, {"relax.script", "R.function"},
      {"rx.script", "R.function"},          {"tvm.relax.script", "R.function"}, {"tensorir_function", "T.prim_func"},
      {"prim_func", "T.prim_func"},         {"relax_function", "R.function"},   {"function", "R.function"}};
  const char* const* canonical = row_of(kEarly, spelling(at));
  return canonical ? *canonical : "";
}

Parser::Pending Parser::read_decorators(const Line& line) {
  Pending pending{std::string(line.text), &line};
  if (line.decorators.empty()) {
    // In the classes of 2020 the types of the parameters say what the function is.
    auto has_types_of = [&](std::string_view prefix) {
      return !line.params.empty() && std::ranges::all_of(line.params, [&](const Param& param) {
        return param.annotation && type_name(*param.annotation).starts_with(prefix);
      });
    };
    pending.is_program = has_types_of("T.");
    bare_forms_ = bare_forms_ || early_;
    if (decorated_class_ || (!pending.is_program && !has_types_of("R.")))
      fail({line, "@R.function or @T.prim_func"}, "function '{}' has no decorator", line.text);
  }
  for (const Syntax* decorator : line.decorators) {
    std::string name = early_decorator(head_of(*decorator));
    bare_forms_ = bare_forms_ || (is_name(head_of(*decorator)) && !name.empty());
    if (name.empty()) name = dotted(head_of(*decorator));
    if (const char* const* why = row_of(kRefused, name)) fail(*decorator, "{}", *why);
    pending.is_program = name == "T.prim_func";
    if (!pending.is_program && name != "R.function")
      fail({*decorator, name.starts_with("T.") ? "@T.prim_func" : "@R.function"}, "unknown decorator of function '{}'",
           line.text);
    check_signature(name, *decorator);
    auto flag = [&](std::string_view keyword_name, bool otherwise) {
      const Syntax* at = keyword(*decorator, keyword_name);
      return at ? constant_bool(*at) : otherwise;
    };
    std::string spelled = spelling(head_of(*decorator));  // T.function is of 2026, as Ts.prim_func is
    bool is_late = spelled.starts_with("Ts.") || (pending.is_program && spelled.ends_with(".function"));
    mutable_scalars_ = flag("s_tir", is_late) || mutable_scalars_;
    pending.is_private = flag("private", pending.is_private);
    pending.pure = flag("pure", pending.pure);
  }
  return pending;
}

Parser::Pending Parser::declare(const Line& line) {
  for (const Param& param : line.params) {
    if (param.otherwise) fail(*param.otherwise, "parameters have no defaults");
    if (!param.stars.empty()) fail(param, "parameters have no '{}'", param.stars);
  }
  Pending pending = read_decorators(line);
  if (declared_.contains(pending.name)) fail(line, "function '{}' is defined twice", pending.name);
  declared_.emplace(pending.name, object_type());
  if (pending.is_program && line.annotation) {
    std::optional<Type> result = try_type(*line.annotation);
    if (result && result->is<PrimType>()) program_results_.emplace(pending.name, result->as<PrimType>()->dtype);
  }
  return pending;
}

// ---- Devices

void Parser::global_infos(const Syntax& at) {
  if (at.kind != SyntaxKind::kDict) fail(at, "expected a dictionary");
  for (size_t i = 0; i + 1 < at.children.size(); i += 2) {
    std::string key = string(*at.children[i]);
    if (module_.global_infos.contains(key)) fail(*at.children[i], "key '{}' is given twice", key);
    std::vector<GlobalInfo>& infos = module_.global_infos[key];
    for (const Syntax* item : items(*at.children[i + 1])) {
      if (!guarded([&] { infos.push_back(global_info(*item)); })) broken_infos_.insert(key);
    }
  }
}

GlobalInfo Parser::global_info(const Syntax& at) {
  std::string path = called(at);
  if (path == "I.dummy_global_info") return DummyInfo{};
  if (path == "I.vdevice") return vdevice(at);
  if (path == "R.device_mesh") return device_mesh(at);
  fail({at, near_form(path)}, "expected I.vdevice, R.device_mesh or I.dummy_global_info");
}

VDevice Parser::vdevice(const Syntax& at) {
  check_signature("I.vdevice", at);
  VDevice result;
  const Syntax& target = required(at, 0, "target");
  result.target = attr_value(target);
  if (!result.target.as<std::string>() && !result.target.as<Attrs>())
    fail(target, "expected a target: \"llvm\" or a dictionary with \"kind\"");
  if (const Syntax* id = arg(at, 1, "vdevice_id")) result.id = constant_int(*id);
  if (const Syntax* scope = arg(at, 2, "memory_scope")) result.memory_scope = string(*scope);
  return result;
}

// Returns a device's name, "llvm:0:global", for I.vdevice(...) or a name whose last parts may be missing.
std::string Parser::vdevice_name(const Syntax& at) {
  std::optional<VDevice> wanted;
  std::string kind, scope;
  int64_t number = 0;
  if (is_call(at)) {
    wanted = vdevice(at);
    kind = target_kind(*wanted);
  } else {
    std::string text = string(at);
    if (text.empty()) return text;  // the default device
    size_t colon = std::min(text.find(':'), text.size()), second = std::min(text.find(':', colon + 1), text.size());
    kind = text.substr(0, colon);
    if (second < text.size()) scope = text.substr(second + 1);
    if (colon < text.size()) {
      std::optional<int64_t> stated = whole_number(std::string_view(text).substr(colon + 1, second - colon - 1));
      if (!stated) fail(at, "expected a device such as \"llvm:0:global\", got '{}'", text);
      number = *stated;
    }
  }
  std::vector<std::string> known;
  std::map<std::string, int64_t> numbers;
  for (const GlobalInfo& info : global_infos_of("vdevice")) {
    const VDevice* device = std::get_if<VDevice>(&info);
    if (!device) continue;
    std::string device_kind = target_kind(*device);
    int64_t same_kind = numbers[device_kind]++;
    bool by_position = kind == "vdevice" && std::ssize(known) == number;
    known.push_back(fmt::format("{}:{}:{}", device_kind, same_kind, device->memory_scope));
    if (wanted ? *device == *wanted : by_position || (device_kind == kind && same_kind == number)) return known.back();
  }
  // A function outside a module has no declared devices, and the kind of a target tag is not known here.
  auto is_tag = [](const std::string& name) { return name.find('/') != std::string::npos; };
  bool opaque = std::ranges::any_of(known, is_tag);
  // A full name suffices in a module that declares no devices.
  if (wanted) {
    number = wanted->id;
    scope = wanted->memory_scope;
  }
  bool in_full = known.empty() && !scope.empty();
  if (broken_infos_.contains("vdevice") || broken_infos_.contains("")) throw Failed();  // it may be one of those
  if (in_class_ && !opaque && !in_full)
    fail(at, "the module has no such device; it has: {}", known.empty() ? "none" : joined(known));
  return fmt::format("{}:{}:{}", kind, number, scope.empty() ? "global" : scope);
}

std::span<const GlobalInfo> Parser::global_infos_of(const std::string& key) const {
  auto found = module_.global_infos.find(key);
  return found == module_.global_infos.end() ? std::span<const GlobalInfo>() : found->second;
}

// Reads R.device_mesh((2, 2), I.Range(0, 4)), or the form with a list of devices; "mesh[0]" names one of the module's.
DeviceMesh Parser::device_mesh(const Syntax& at) {
  DeviceMesh mesh;
  if (at.kind == SyntaxKind::kString) {
    std::string text = string(at);
    size_t open = std::min(text.find('['), text.size());
    std::string key = text.substr(0, open);
    std::span<const GlobalInfo> infos = global_infos_of(key);
    std::optional<int64_t> index;
    if (text.ends_with(']') && open < text.size())
      index = whole_number(std::string_view(text).substr(open + 1, text.size() - open - 2));
    bool known = index && *index < std::ssize(infos);
    const DeviceMesh* named = known ? std::get_if<DeviceMesh>(&infos[static_cast<size_t>(*index)]) : nullptr;
    if (named) return *named;
    if (broken_infos_.contains(key) || broken_infos_.contains("")) throw Failed();
    fail(at, "the module has no device mesh '{}'", text);
  }
  if (called(at) != "R.device_mesh")
    fail(at, "expected a device mesh: \"mesh[0]\" or R.device_mesh((2, 2), I.Range(0, 4))");
  mesh.shape = read_each(items(required(at, 0, "shape")), &Parser::constant_int);
  const Syntax& devices = required(at, 1, "device_ids");
  std::optional<int64_t> count = element_count(mesh.shape);
  constexpr int64_t kMostDevices = 1 << 16;
  if (!count || *count > kMostDevices) fail(at, "a mesh has at most {} devices", kMostDevices);
  if (callee_path(devices) == "I.Range") {
    const Syntax& first = required(devices, 0, "begin");
    const Syntax* last = arg(devices, 1, "end");
    int64_t begin = last ? constant_int(first) : 0, end = constant_int(last ? *last : first);
    auto size = checked_sub(end, begin);
    if (!size || *size != *count) fail(devices, "expected {} devices", *count);
    mesh.devices.resize(static_cast<size_t>(*count));
    std::iota(mesh.devices.begin(), mesh.devices.end(), begin);
  } else {
    mesh.devices = read_each(items(devices), &Parser::constant_int);
    if (std::ssize(mesh.devices) != *count) fail(devices, "expected {} devices, got {}", *count, mesh.devices.size());
  }
  return mesh;
}

}  // namespace relaxc::text
