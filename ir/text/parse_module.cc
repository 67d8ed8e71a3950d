// Reads the module around the functions: its attributes, devices and meshes, external functions, and the declaration of
// each definition. Bodies of graph functions are read later (parser.cc), so definitions may come in any order.
#include <algorithm>
#include <charconv>
#include <numeric>

#include "ir/text/parsing.h"
#include "support/checked_math.h"

namespace relaxc::text {

void Parser::imports(const Line& line) {
  for (const auto& [path, local] : line.imports) {
    std::string_view last = std::string_view(path).substr(path.rfind('.') + 1);
    mutable_scalars_ = mutable_scalars_ || last == "tirx";
    auto known = prefixes_.find(last);
    if (known != prefixes_.end()) prefixes_.insert_or_assign(local, std::string(known->second));
  }
}

bool Parser::is_docstring(const Line& line) const {
  return line.kind == LineKind::kExpression && line.value->kind == SyntaxKind::kString;
}

void Parser::class_head(const Line& line) {
  class_name_ = std::string(line.text);
  in_class_ = true;
  for (const Syntax* decorator : line.decorators) {
    bool is_call = decorator->kind == SyntaxKind::kCall;
    const Syntax& callee = is_call ? *decorator->children[0] : *decorator;
    bool known = callee.text == "ir_module" || dotted(callee) == "I.ir_module";
    if (!known) fail_with_hint(*decorator, "unknown decorator of a class", "@I.ir_module");
    if (!is_call) continue;
    check_keywords(*decorator, {"check_well_formed", "s_tir"});
    if (const Syntax* flag = keyword(*decorator, "s_tir")) mutable_scalars_ = mutable_scalars_ || constant_bool(*flag);
  }
}

// Reads n = TypeVar("n"), a dim that signatures may name without quotes.
bool Parser::type_variables(const Line& line) {
  if (line.kind != LineKind::kAssign || !line.value) return false;
  std::vector<const Syntax*> targets = items(*line.target), values = items(*line.value);
  for (const Syntax* value : values) {
    bool is_call = value->kind == SyntaxKind::kCall && value->children.size() >= 2;
    if (!is_call) return false;
    const Syntax& callee = *value->children[0];
    if (callee.text != "TypeVar" && dotted(callee) != "I.dynamic") return false;
  }
  if (targets.size() != values.size()) fail(line, "{} names for {} values", targets.size(), values.size());
  for (const Syntax* target : targets) type_variables_.insert(name_of_target(*target));
  return true;
}

void Parser::module_line(const Line& line) {
  if (line.kind == LineKind::kExpression && line.value->kind == SyntaxKind::kCall) {
    std::string callee = called(*line.value);
    if (callee == "I.module_attrs") {
      for (const auto& [key, value] : attrs(required(*line.value, 0, "attrs"))) module_.attrs.set(key, value);
      return;
    }
    if (callee == "I.module_global_infos") return global_infos(required(*line.value, 0, "infos"));
  }
  bool external = line.kind == LineKind::kAssign && line.value && line.value->kind == SyntaxKind::kCall &&
                  dotted(*line.value->children[0]) == "R.ExternFunc";
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

Parser::Pending Parser::declare(const Line& line) {
  Pending pending{std::string(line.text), &line};
  bool known = false;
  for (const Syntax* decorator : line.decorators) {
    bool is_call = decorator->kind == SyntaxKind::kCall;
    const Syntax& callee = is_call ? *decorator->children[0] : *decorator;
    std::string name = dotted(callee);
    if (name != "T.prim_func" && name != "R.function") {
      constexpr std::pair<std::string_view, const char*> kRefused[] = {
          {"I.pyfunc", "functions of Python cannot be compiled"},
          {"R.macro", "macros need a Python interpreter; write out what they expand to"},
          {"R.rewriter", "rewriters are no functions of a module"},
          {"T.inline", "macros need a Python interpreter; write out what they expand to"},
          {"T.jit", "templates need a Python interpreter; write out what they expand to"},
          {"T.macro", "macros need a Python interpreter; write out what they expand to"}};
      for (const auto& [form, why] : kRefused) {
        if (name == form) fail(*decorator, "{}", why);
      }
      fail_with_hint(*decorator, fmt::format("unknown decorator of function '{}'", line.text),
                     name.starts_with("T.") ? "@T.prim_func" : "@R.function");
    }
    known = true;
    pending.is_program = name == "T.prim_func";
    if (!is_call) continue;
    check_signature(name, *decorator);
    if (const Syntax* flag = keyword(*decorator, "s_tir")) mutable_scalars_ = mutable_scalars_ || constant_bool(*flag);
    if (const Syntax* flag = keyword(*decorator, "private")) pending.is_private = constant_bool(*flag);
    if (const Syntax* flag = keyword(*decorator, "pure")) pending.pure = constant_bool(*flag);
  }
  if (!known)
    fail_with_hint(Syntax(SyntaxKind::kName, line.line, line.column, line.length),
                   fmt::format("function '{}' has no decorator", line.text), "@R.function or @T.prim_func");
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
  std::optional<std::string> near = nearest(path, {"I.vdevice", "I.dummy_global_info", "R.device_mesh"});
  fail_with_hint(at, "expected I.vdevice, R.device_mesh or I.dummy_global_info", near.value_or(""));
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

namespace {

std::string target_kind(const VDevice& device) {
  if (const Attrs* target = device.target.as<Attrs>()) return target->get_string("kind", "");
  const std::string& text = *device.target.as<std::string>();
  return text.substr(0, text.find(' '));
}

}  // namespace

// Returns the canonical name of a device, "llvm:0:global"; `at` is I.vdevice(...) or a name whose last parts may be
// missing.
std::string Parser::vdevice_name(const Syntax& at) {
  auto found = module_.global_infos.find("vdevice");
  const std::vector<GlobalInfo> none;
  const std::vector<GlobalInfo>& infos = found == module_.global_infos.end() ? none : found->second;
  std::string known;
  std::map<std::string, int64_t> numbers;
  std::optional<VDevice> wanted;
  std::string kind, scope;
  int64_t number = 0;
  if (at.kind == SyntaxKind::kCall) {
    wanted = vdevice(at);
    kind = target_kind(*wanted);
  } else {
    std::string text = string(at);
    if (text.empty()) return text;  // the default device
    size_t colon = text.find(':'), second = colon == std::string::npos ? colon : text.find(':', colon + 1);
    kind = text.substr(0, colon);
    if (second != std::string::npos) scope = text.substr(second + 1);
    if (colon != std::string::npos) {
      const char* end = text.data() + std::min(second, text.size());
      auto [stop, error] = std::from_chars(text.data() + colon + 1, end, number);
      if (error != std::errc() || stop != end || number < 0)
        fail(at, "expected a device such as \"llvm:0:global\", got '{}'", text);
    }
  }
  int64_t position = 0;
  for (const GlobalInfo& info : infos) {
    const VDevice* device = std::get_if<VDevice>(&info);
    if (!device) continue;
    std::string own = target_kind(*device);
    std::string name = fmt::format("{}:{}:{}", own, numbers[own], device->memory_scope);
    bool by_position = kind == "vdevice" && position == number;
    if (wanted ? *device == *wanted : by_position || (own == kind && numbers[own] == number)) return name;
    known += (known.empty() ? "" : ", ") + name;
    ++numbers[own];
    ++position;
  }
  // A function outside a module has no declared devices, and the kind of a target tag is not known here.
  bool opaque = known.find('/') != std::string::npos;
  // A full name suffices in a module that declares no devices.
  bool in_full = known.empty() && !wanted && !scope.empty();
  if (broken_infos_.contains("vdevice") || broken_infos_.contains("")) throw Failed();  // it may be one of those
  if (in_class_ && !opaque && !in_full)
    fail(at, "the module has no such device; it has: {}", known.empty() ? "none" : known);
  return fmt::format("{}:{}:{}", kind, number, scope.empty() ? "global" : scope);
}

// Reads R.device_mesh((2, 2), I.Range(0, 4)), or the form with a list of devices; "mesh[0]" names one of the module's.
DeviceMesh Parser::device_mesh(const Syntax& at) {
  DeviceMesh mesh;
  if (at.kind == SyntaxKind::kString) {
    std::string text = string(at);
    auto found = module_.global_infos.find(text.substr(0, text.find('[')));
    size_t open = text.find('[');
    size_t index = 0;
    bool indexed = open != std::string::npos && text.back() == ']' &&
                   std::from_chars(text.data() + open + 1, text.data() + text.size() - 1, index).ec == std::errc();
    bool known = indexed && found != module_.global_infos.end() && index < found->second.size();
    const DeviceMesh* named = known ? std::get_if<DeviceMesh>(&found->second[index]) : nullptr;
    if (!named && (broken_infos_.contains(text.substr(0, open)) || broken_infos_.contains(""))) throw Failed();
    if (!named) fail(at, "the module has no device mesh '{}'", text);
    return *named;
  }
  if (called(at) != "R.device_mesh")
    fail(at, "expected a device mesh: \"mesh[0]\" or R.device_mesh((2, 2), I.Range(0, 4))");
  for (const Syntax* item : items(required(at, 0, "shape"))) mesh.shape.push_back(constant_int(*item));
  const Syntax& devices = required(at, 1, "device_ids");
  std::optional<int64_t> count = element_count(mesh.shape);
  constexpr int64_t kMostDevices = 1 << 16;
  if (!count || *count > kMostDevices) fail(at, "a mesh of more than {} devices", kMostDevices);
  if (devices.kind == SyntaxKind::kCall && dotted(*devices.children[0]) == "I.Range") {
    const Syntax& first = required(devices, 0, "begin");
    const Syntax* last = arg(devices, 1, "end");
    int64_t begin = last ? constant_int(first) : 0, end = constant_int(last ? *last : first);
    auto size = checked_sub(end, begin);
    if (!size || *size != *count) fail(devices, "expected {} devices", *count);
    mesh.devices.resize(static_cast<size_t>(*count));
    std::iota(mesh.devices.begin(), mesh.devices.end(), begin);
  } else {
    for (const Syntax* item : items(devices)) mesh.devices.push_back(constant_int(*item));
    if (static_cast<int64_t>(mesh.devices.size()) != *count)
      fail(devices, "expected {} devices, got {}", *count, mesh.devices.size());
  }
  return mesh;
}

}  // namespace relaxc::text
