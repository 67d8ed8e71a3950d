// Classes of Python around a module, and their objects: models of nn.Module, configurations.
#include <algorithm>

#include "ir/text/parsing.h"
#include "ir/text/python_run.h"

namespace relaxc::text {

namespace {

bool has_decorator(const PythonValue& function, std::string_view name) {
  const Line* line = function.is(PythonValue::kFunction) ? function.function->line : nullptr;
  return line &&
         std::ranges::any_of(line->decorators, [&](const Syntax* each) { return each && head_of(*each).text == name; });
}

bool is_dataclass(const Line& line) {
  return line.decorators.size() == 1 && head_of(*line.decorators[0]).text == "dataclass";
}

}  // namespace

// Returns whether the class is followed here: a model or a configuration, not a module and not a class that a library
// unknown here gives its meaning.
bool Python::follows_class(const Line& line) {
  if (heap_.of_call()) return true;  // of the library
  bool is_data = is_dataclass(line);
  if (!is_data && line.decorators.empty() && !line.extra) return makes_objects(line);
  if (!is_data && (!line.decorators.empty() || !line.extra)) return false;
  if (!line.extra) return true;
  try {
    PythonValue base = eval(*line.extra);
    bool is_plain =
        base.is(Kind::kSyntax) && is_one_of(base.text, {"object", "abc.ABC", "enum.IntEnum", "typing.NamedTuple"});
    return base.is(Kind::kClass) || is_plain;
  } catch (const PythonUnknown&) {
  } catch (const PythonRaised&) {
  }
  return false;
}

// Returns whether a class without a base has objects, or macros, and is not a module: what stands below its head tells.
bool Python::makes_objects(const Line& line) const {
  auto says = [](std::string_view text, std::string_view part) { return text.find(part) != text.npos; };
  std::string_view text = source_.text;
  size_t at = 0;
  for (uint32_t number = source_.line; number < line.line && at != text.npos; ++number) {
    at = text.find('\n', at);
    at = at == text.npos ? at : at + 1;
  }
  if (at == text.npos) return false;
  size_t end = text.find('\n', at);
  auto is_inside = [&](size_t start) { return is_one_of(text.substr(start, 1), {" ", "\t", "\n", "\r", "#"}); };
  while (end != text.npos && end + 1 < text.size() && is_inside(end + 1)) end = text.find('\n', end + 1);
  std::string_view body = text.substr(at, end == text.npos ? end : end - at);
  bool is_module = says(body, "prim_func") || says(body, "R.function") || says(body, "T.match_buffer");
  return !is_module && (says(body, "def __init__(") || says(body, ".macro") || says(body, "@staticmethod"));
}

// Binds the name of a class to it. Its methods are run where they are called.
void Python::bind_class(const Line& line) {
  PythonClass& result = classes_.emplace_back(PythonClass{.name = line.text, .is_data = is_dataclass(line)});
  PythonValue base = line.extra ? eval(*line.extra) : PythonValue();
  if (base.is(Kind::kClass)) result.base = base.type;
  result.of_library = heap_.of_call().has_value();
  result.is_data = result.is_data || (result.base && result.base->is_data) || base.text == "typing.NamedTuple";
  // Names of the class are no names of its methods.
  PythonScope& scope = scopes_.emplace_back(PythonScope{.parent = scope_});
  for (const Line* inner : line.body) {
    if (inner->kind == LineKind::kFunction) {
      PythonValue method = is_macro(*inner) ? macro_value(*inner) : function_value(inner, nullptr);
      method.function->owner = &result;
      result.members.emplace_back(inner->text, method);
    }
    bool is_field = inner->kind == LineKind::kAssign && is_name(*inner->target);
    if (!is_field) continue;
    PythonValue value{.kind = Kind::kSyntax};  // a field that has no value yet
    Temporarily inside(scope_, &scope);
    if (inner->value) value = eval(*inner->value);
    if (inner->value) scope.values.insert_or_assign(inner->target->text, value);
    result.members.emplace_back(inner->target->text, value);
  }
  worth_ = true;
  bind(line.text, {.kind = Kind::kClass, .type = &result});
}

// Returns x.name of an object or a class.
PythonValue Python::member(const Syntax& at, const PythonValue& owner) {
  std::string_view name = at.text;
  if (owner.object && owner.object->computed != 0) return heap_.computed("the object", at, owner.object->computed);
  const bool is_super = owner.is(Kind::kObject) && owner.type;
  PythonValue* own = owner.is(Kind::kObject) && !is_super ? owner.object->find(name) : nullptr;
  if (own) return *own;
  PythonClass* type = owner.type ? owner.type : owner.object->type;
  if (name == "__name__" && owner.is(Kind::kClass)) return heap_.string(type->name);
  const PythonValue* found = type->find(name);
  if (!found) throw PythonRaised{"AttributeError"};
  PythonValue result = *found;
  if (result.is(Kind::kSyntax) && !result.syntax) throw PythonRaised{"AttributeError"};
  if (!result.is(Kind::kFunction) || has_decorator(result, "staticmethod")) return result;
  if (has_decorator(result, "classmethod")) {
    result.type = type;
  } else if (owner.is(Kind::kObject)) {
    result.object = owner.object;
  }
  return has_decorator(result, "property") ? invoke(result, {}) : result;
}

// Calls a function, or a method with its object.
PythonValue Python::invoke(const PythonValue& function, Args args) {
  PythonResult self;
  if (function.object) self = PythonValue{.kind = Kind::kObject, .object = function.object};
  if (function.type) self = PythonValue{.kind = Kind::kClass, .type = function.type};
  if (self) {
    args.positional.insert(args.positional.begin(), *self);
    args.places.insert(args.places.begin(), Place());
  }
  return call(*function.function, args);
}

// Makes an object of the class.
PythonValue Python::instantiate(PythonClass& type, const Args& args) {
  if (!args.complete) throw PythonUnknown();
  heap_.spend(20);
  PythonValue result{.kind = Kind::kObject, .object = &heap_.object(type)};
  if (const PythonValue* init = type.find("__init__")) {
    PythonValue method = *init;
    method.object = result.object;
    invoke(method, args);
    return result;
  }
  if (!type.is_data && !(args.positional.empty() && args.named.empty())) throw PythonUnknown();
  if (type.is_data) set_fields(type, *result.object, args);
  return result;
}

// Makes the class of namedtuple("Tile", ["rows", "columns"]) or namedtuple("Tile", "rows columns"): one of fields.
PythonResult Python::named_tuple(const Args& args) {
  const PythonValue &name = args.positional[0], &fields = args.positional[1];
  std::vector<std::string_view> names;
  if (fields.is(Kind::kString)) {
    for (size_t at = 0; at < fields.text.size();) {
      size_t end = std::min(fields.text.find_first_of(" ,", at), fields.text.size());
      if (end > at) names.push_back(fields.text.substr(at, end - at));
      at = end + 1;
    }
  }
  for (const PythonValue& field : fields.is_list() ? fields.items->values : std::vector<PythonValue>()) {
    if (!field.is(Kind::kString)) return std::nullopt;
    names.push_back(field.text);
  }
  if (!name.is(Kind::kString) || names.empty()) return std::nullopt;
  PythonClass& result = classes_.emplace_back(PythonClass{.name = name.text, .is_data = true});
  for (std::string_view field : names) result.members.emplace_back(field, PythonValue{.kind = Kind::kSyntax});
  return PythonValue{.kind = Kind::kClass, .type = &result};
}

// Computes dataclasses.fields(type), whose items have names, and dataclasses.asdict(object).
PythonResult Python::data_fields(std::string_view name, const Args& args) {
  if (!is_one_of(name, {"dataclasses.fields", "dataclasses.asdict"}) || args.positional.size() != 1)
    return std::nullopt;
  const PythonValue& given = args.positional[0];
  if (name == "dataclasses.asdict") {
    if (!given.is(Kind::kObject) || !given.object->type->is_data || given.object->computed != 0) return std::nullopt;
    PythonValue result = heap_.list(Kind::kDict, {});
    for (const auto& [field, value] : given.object->attributes) set_item(result, heap_.string(field), value, heap_);
    return result;
  }
  PythonClass* type = given.is(Kind::kObject) ? given.object->type : given.is(Kind::kClass) ? given.type : nullptr;
  if (!type || !type->is_data) return std::nullopt;
  static PythonClass field_type{.name = "Field"};
  std::vector<PythonValue> fields;
  std::vector<const PythonClass*> chain;
  for (const PythonClass* each = type; each; each = each->base) chain.insert(chain.begin(), each);
  for (const PythonClass* each : chain) {
    for (const auto& [field, otherwise] : each->members) {
      if (otherwise.is(Kind::kFunction)) continue;
      PythonValue item{.kind = Kind::kObject, .object = &heap_.object(field_type)};
      item.object->attributes.emplace_back("name", heap_.string(field));
      fields.push_back(item);
    }
  }
  return heap_.list(Kind::kTuple, std::move(fields));
}

// Gives an object of a @dataclass its fields, those of its bases first.
void Python::set_fields(PythonClass& type, PythonObject& object, const Args& args) {
  std::vector<const PythonClass*> chain;
  for (const PythonClass* each = &type; each; each = each->base) chain.insert(chain.begin(), each);
  size_t next = 0, named = 0;
  for (const PythonClass* each : chain) {
    for (const auto& [name, otherwise] : each->members) {
      if (otherwise.is(Kind::kFunction) || object.find(name)) continue;
      auto given = std::ranges::find(args.named, name, &std::pair<std::string_view, PythonValue>::first);
      PythonValue value = *type.find(name);
      if (given != args.named.end()) {
        value = given->second;
        ++named;
      } else if (next < args.positional.size()) {
        value = args.positional[next++];
      } else if (value.is(Kind::kSyntax)) {
        value = default_of(value);
      }
      object.attributes.emplace_back(name, value);
    }
  }
  if (next < args.positional.size() || named < args.named.size()) throw PythonUnknown();
  const PythonValue* after = type.find("__post_init__");
  if (!after) return;
  PythonValue method = *after;
  method.object = &object;
  invoke(method, {});
}

// Returns what dataclasses.field(default_factory=dict) stands for.
PythonValue Python::default_of(const PythonValue& value) {
  bool is_field = value.syntax && is_call(*value.syntax) && value.syntax->children[0]->text == "field";
  if (!is_field) throw PythonUnknown();
  for (const Syntax::Keyword& each : value.syntax->keywords) {
    if (each.name == "default") return eval(*each.value);
    if (each.name == "default_factory" && each.value->text == "dict") return heap_.list(Kind::kDict, {});
    if (each.name == "default_factory" && each.value->text == "list") return heap_.list(Kind::kList, {});
  }
  throw PythonUnknown();
}

// Returns super() in a method: its object, of which the methods of the class's base count.
PythonValue Python::base_object() {
  PythonClass* owner = running_ ? running_->owner : nullptr;
  if (!owner || running_->line->params.empty()) throw PythonUnknown();
  auto self = scope_->values.find(running_->line->params[0].name);
  if (self == scope_->values.end() || !self->second.is(Kind::kObject)) throw PythonUnknown();
  PythonValue result = self->second;
  static PythonClass none{.name = "object"};
  result.type = owner->base ? owner->base : &none;
  return result;
}

// Sets x.name of an object.
void Python::set_member(const PythonValue& owner, std::string_view name, const PythonValue& value) {
  if (!owner.is(Kind::kObject) || owner.object->computed != 0) throw PythonUnknown();
  add_aliases(value);
  if (PythonValue* known = owner.object->find(name)) {
    *known = value;
  } else {
    owner.object->attributes.emplace_back(name, value);
  }
}

// Computes what asks for a class or an attribute: isinstance(x, nn.Linear), getattr(x, "name").
PythonResult Python::reflection(std::string_view name, const Args& args, const Place& at) {
  size_t count = args.positional.size();
  if (count < 2 || !args.named.empty()) return std::nullopt;
  const PythonValue &value = args.positional[0], &asked = args.positional[1];
  if (name == "isinstance" && asked.is(Kind::kClass))
    return python_bool(value.is(Kind::kObject) ? value.object->type->is_a(asked.type->name)
                                               : value.is(Kind::kSyntax) && asked.type->name == "Tensor");
  bool is_asked = value.is(Kind::kObject) && asked.is(Kind::kString);
  if (!is_asked || value.object->computed != 0 || !is_one_of(name, {"getattr", "hasattr"})) return std::nullopt;
  bool has = value.object->find(asked.text) || value.object->type->find(asked.text);
  if (name == "hasattr") return python_bool(has);
  if (!has && count > 2) return args.positional[2];
  return member(heap_.node(SyntaxKind::kName, at, asked.text), value);
}

// Does setattr(object, "name", value) of an object that is known; returns false for other calls.
bool Python::sets_attribute(const Syntax& at) {
  const Syntax& callee = *at.children[0];
  if (!is_name(callee) || callee.text != "setattr" || find(callee.text).value || at.children.size() != 4) return false;
  PythonValue owner = eval(*at.children[1]), name = eval(*at.children[2]);
  if (!owner.is(Kind::kObject) || !name.is(Kind::kString)) return false;
  set_member(owner, name.text, named(eval(*at.children[3]), name.text, at));
  return true;
}

// ---- A class of the text, whose statements come one after the other

bool Python::opens_class(const Line& line) {
  if (line.kind != LineKind::kClass || !line.body.empty() || !follows_class(line)) return false;
  Line& copy = kept_->line();
  copy = with_names(line, {}, *kept_);
  open_class_ = &copy;
  return true;
}

// Reports the statement of a model at which its export ended; returns false where none is being exported.
bool Python::report_stuck(const Place& at) {
  if (!exported_.empty() && !stuck_) stuck_ = at;
  if (!stuck_) return false;
  exported_.clear();
  const std::string why = std::exchange(stuck_why_, {});
  model_errors_.push_back(
      {Severity::kError,
       ErrorKind::kUnsupported,
       source_.span(*std::exchange(stuck_, std::nullopt)),
       why.empty() ? "this statement of a model needs a Python interpreter" : why,
       {"print the exported module as a text: mod, params = model.export_tvm(...), print(mod.script())"}});
  return true;
}

void Python::close_class() {
  if (!open_class_) return;
  const Line& line = *std::exchange(open_class_, nullptr);
  try {
    bind_class(line);
  } catch (const PythonUnknown&) {
    forget(line.text, line);
  } catch (const PythonRaised&) {
    forget(line.text, line);
  }
}

}  // namespace relaxc::text
