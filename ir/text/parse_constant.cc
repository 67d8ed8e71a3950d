// Reads constants. R.const has numbers, lists of them, or the hexadecimal bytes that the printer writes. TVM's metadata
// section, metadata = tvm.ir.load_json("""{...}"""), is a graph of nodes that refer to each other by number, with its
// tensors in base64. The expression parser reads the JSON, which is Python except for three names.
#include <array>
#include <cstring>
#include <filesystem>

#include "ir/text/parsing.h"
#include "ir/text/safetensors.h"
#include "support/base64.h"

namespace relaxc::text {

namespace {

// Returns the dtype of elements that state none.
DType common_dtype(const std::vector<AttrValue>& elements) {
  bool real = false, truth = !elements.empty();
  for (const AttrValue& element : elements) {
    real = real || element.as<double>();
    truth = truth && element.as<bool>();
  }
  bool text =
      !elements.empty() && elements.front().as<std::string>() && !special_float(*elements.front().as<std::string>());
  return text ? DType::string() : truth ? kBool : real || elements.empty() ? kFloat32 : kInt32;
}

// Returns the text of a string, which has no escapes; empty for other syntax.
std::string_view plain_string(const Syntax* at) {
  bool is_string = at && at->kind == SyntaxKind::kString && at->text.size() >= 2;
  return is_string ? at->text.substr(1, at->text.size() - 2) : std::string_view();
}

const Syntax* entry(const Syntax* dict, std::string_view key) {
  if (!dict || dict->kind != SyntaxKind::kDict) return nullptr;
  for (size_t i = 0; i + 1 < dict->children.size(); i += 2) {
    if (plain_string(dict->children[i]) == key) return dict->children[i + 1];
  }
  return nullptr;
}

// Returns item i of a list; null when there is none.
const Syntax* list_item(const Syntax* list, int64_t i) {
  bool found = list && list->kind == SyntaxKind::kList && i >= 0 && i < std::ssize(list->children);
  return found ? list->children[static_cast<size_t>(i)] : nullptr;
}
// Reads a number, which older versions write as a string; -1 for other syntax.
int64_t number_of(const Syntax* at) {
  if (!at) return -1;
  return whole_number(at->kind == SyntaxKind::kInt ? at->text : plain_string(at)).value_or(-1);
}

// The metadata's graph: a list of nodes that refer to each other by number.
struct MetadataGraph {
  const Syntax* root;

  const Syntax* node(const Syntax* number) const { return list_item(entry(root, "nodes"), number_of(number)); }

  // Returns the list of a kind's entries. The root has names and lists side by side, or (later) in turns.
  const Syntax* entries(std::string_view kind) const {
    const Syntax* old_start = entry(root, "root");
    const Syntax* start = node(old_start ? old_start : entry(root, "root_index"));
    const Syntax *keys = entry(start, "keys"), *data = entry(start, "data");
    if (!data || data->kind != SyntaxKind::kList) return nullptr;
    for (int64_t i = 0; i < std::ssize(data->children); ++i) {
      bool found = keys ? plain_string(list_item(keys, i)) == kind
                        : i % 2 == 1 && plain_string(entry(node(list_item(data, i - 1)), "data")) == kind;
      if (found) return node(list_item(data, i));
    }
    return nullptr;
  }

  // Returns the text of a constant's tensor in base64: it is in a list beside the graph, or (later) in a separate node.
  const Syntax* bytes(const Syntax* object) const {
    const Syntax* tensors = entry(root, "b64ndarrays");
    const Syntax* attributes = entry(object, "attrs");
    if (!attributes || !tensors) return entry(node(entry(entry(object, "data"), "data")), "data");
    return list_item(tensors, number_of(entry(attributes, "data")));
  }
};

// The head of a tensor in TVM's file format. The dims, the number of bytes, and the bytes follow it.
struct TensorHead {
  uint64_t magic, reserved;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
};
static_assert(sizeof(TensorHead) == 32);

std::optional<Tensor> decode_tensor(std::string_view bytes) {
  constexpr uint64_t kMagic = 0xDD5E40F096B4A13F;
  auto take = [&](void* to, size_t size) {
    if (bytes.size() < size) return false;
    std::memcpy(to, bytes.data(), size);
    bytes.remove_prefix(size);
    return true;
  };
  TensorHead head{};
  bool read = take(&head, sizeof head);
  if (!read || head.magic != kMagic || head.ndim < 0 || head.ndim > 64 || head.lanes != 1) return std::nullopt;
  constexpr std::array<const char*, 7> kCodes = {"int", "uint", "float", nullptr, "bfloat", nullptr, "bool"};
  if (head.code >= kCodes.size() || !kCodes[head.code]) return std::nullopt;
  bool is_bool = (head.code == 1 && head.bits == 1) || head.code == 6;
  std::optional<DType> dtype = is_bool ? kBool : parse_dtype(fmt::format("{}{}", kCodes[head.code], head.bits));
  std::vector<int64_t> shape(static_cast<size_t>(head.ndim));
  int64_t size = 0;
  if (!dtype || !take(shape.data(), shape.size() * sizeof(int64_t)) || !take(&size, sizeof size)) return std::nullopt;
  if (size != tensor_bytes(shape, *dtype) || static_cast<size_t>(size) > bytes.size()) return std::nullopt;
  return Tensor::copy_of(shape, *dtype, bytes.data());
}

}  // namespace

Value Parser::constant(const Syntax& at) {
  const Syntax& value = required(at, 0, "value");
  const Syntax* stated = arg(at, 1, "dtype");
  std::optional<DType> wanted = stated ? std::optional(dtype(*stated)) : std::nullopt;
  const Syntax* stated_shape = keyword(at, "shape");
  if (const Syntax* encoding = keyword(at, "encoding")) {
    if (string(*encoding) != "hex" || !wanted || !stated_shape)
      fail(at, "expected a dtype, a shape and encoding=\"hex\"");
    std::vector<int64_t> shape = read_each(items(*stated_shape), &Parser::constant_int);
    return {relaxc::constant(hex_tensor(value, shape, *wanted), span(at))};
  }
  if (std::optional<Tensor> array = python_array(value)) {
    if (wanted && wanted->is_complex()) fail(value, "complex numbers are written as a list: [complex(1.0, -2.0)]");
    return {relaxc::constant(wanted ? converted(*array, *wanted) : *array, span(at))};
  }
  std::vector<int64_t> shape;
  std::vector<AttrValue> elements = elements_of(value, shape);
  if (stated_shape) shape = read_each(items(*stated_shape), &Parser::constant_int);
  if (stated_shape && (element_count(shape) != 0 || !elements.empty()))
    fail(at, "a shape is given for empty constants only; got {} elements", elements.size());
  DType dtype = wanted.value_or(common_dtype(elements));
  if (dtype.is_handle() || dtype.lanes != 1) fail(at, "a constant cannot have the dtype {}", to_string(dtype));
  return {relaxc::constant(tensor_of(elements, shape, dtype, value), span(at))};
}

Tensor Parser::hex_tensor(const Syntax& at, const std::vector<int64_t>& shape, DType dtype) {
  std::string hex = string(at);
  // The size is checked before memory is allocated: the shape may be hostile.
  std::optional<int64_t> bytes = tensor_bytes(shape, dtype);
  if (!bytes || static_cast<size_t>(*bytes) * 2 != hex.size())
    fail(at, "expected {} bytes, got {} hexadecimal digits", bytes.value_or(0), hex.size());
  if (dtype.is_string()) fail(at, "strings are written as a list");
  Tensor data = Tensor::empty(shape, dtype);
  unsigned char* out = static_cast<unsigned char*>(data.raw());
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (size_t wrong = hex.find_first_not_of(kDigits); wrong != std::string::npos)
    fail(at, "'{}' is not a hexadecimal digit", hex[wrong]);
  for (size_t i = 0; i < hex.size(); i += 2)
    out[i / 2] = static_cast<unsigned char>(kDigits.find(hex[i]) * 16 + kDigits.find(hex[i + 1]));
  return data;
}

// Reads nested lists in row-major order; every list of a level has the same length. Appends the lengths to `shape`.
std::vector<AttrValue> Parser::elements_of(const Syntax& at, std::vector<int64_t>& shape) {
  for (const Syntax* list = &at; is_list(*list); list = list->children[0]) {
    shape.push_back(std::ssize(list->children));
    if (list->children.empty()) break;
  }
  // Reads complex(1.0, -2.0), whatever that name means elsewhere, as a list of the two parts.
  auto element = [&](const Syntax& part) -> AttrValue {
    bool is_complex = is_call(part) && is_name(*part.children[0]) && part.children[0]->text == "complex";
    if (!is_complex) return attr_value(part);
    if (positional(part) != 2) fail(part, "expected complex(real part, imaginary part)");
    return AttrList{attr_value(*part.children[1]), attr_value(*part.children[2])};
  };
  std::vector<AttrValue> result;
  auto append = [&](auto& self, const Syntax& part, size_t depth) -> void {
    if (depth == shape.size() && is_list(part)) fail(part, "the lists are nested unevenly");
    if (depth == shape.size()) return result.push_back(element(part));
    if (!is_list(part) || std::ssize(part.children) != shape[depth])
      fail(part, "the lists are nested unevenly: expected {} items", shape[depth]);
    for (const Syntax* item : part.children) self(self, *item, depth + 1);
  };
  append(append, at, 0);
  return result;
}

Tensor Parser::tensor_of(const std::vector<AttrValue>& elements, const std::vector<int64_t>& shape, DType dtype,
                         const Syntax& at) {
  if (dtype.is_string()) {
    std::vector<std::string> texts;
    for (const AttrValue& element : elements) {
      const std::string* text = element.as<std::string>();
      if (!text) fail(at, "expected strings, got {}", to_string(element));
      texts.push_back(*text);
    }
    return Tensor::strings(shape, texts);
  }
  if (dtype.is_complex()) {
    std::vector<AttrValue> parts;
    for (const AttrValue& element : elements) {
      const AttrList* pair = element.as<AttrList>();
      parts.push_back(pair ? pair->at(0) : element);
      parts.push_back(pair ? pair->at(1) : AttrValue(0));
    }
    std::vector<int64_t> with_parts = shape;
    with_parts.push_back(2);
    const Tensor data = tensor_of(parts, with_parts, dtype.part(), at);
    return Tensor::view(shape, dtype, data.raw(), data.owner());
  }
  Tensor data = Tensor::empty(shape, dtype);
  for (int64_t i = 0; const AttrValue& element : elements) {
    int64_t whole = 0;
    double real = 0;
    if (dtype.is_float()) {
      const std::string* text = element.as<std::string>();
      std::optional<double> number = text ? special_float(*text) : std::nullopt;
      if (!number && !from_attr(element, real)) fail(at, "expected numbers, got {}", to_string(element));
      data.set_double(i++, number.value_or(real));
      continue;
    }
    if (!from_attr(element, whole)) fail(at, "expected elements of {}, got {}", to_string(dtype), to_string(element));
    if (!fits(whole, dtype)) fail(at, "{} does not fit in {}", whole, to_string(dtype));
    data.set_int(i++, whole);
  }
  return data;
}

// ---- Metadata

void Parser::metadata(const Line& line) {
  const Syntax& call = *line.value;
  std::string_view loader = head_of(call).text;
  if ((loader != "load_json" && loader != "load_safetensors") || !is_call(call) || positional(call) != 1)
    fail(line, "expected metadata = tvm.ir.load_json(...) or I.load_safetensors(...)");
  const Syntax& at = *call.children[1];
  if (loader == "load_safetensors") {
    // The file must be in the text's folder: a text of foreign origin must not reach other files.
    std::filesystem::path file = string(at);
    if (file.has_parent_path()) fail(at, "expected the name of a file in the folder of this text, without a path");
    try {
      side_tensors_ = read_safetensors((std::filesystem::path(origin_->file).parent_path() / file).string());
    } catch (const CompileError& error) {
      fail(at, "{}: {}", file.string(), error.diagnostics().at(0).message);
    }
    return;
  }
  metadata_text_ = string(at);
  size_t before = diagnostics_.all().size();
  const Syntax* graph = parse_expression(Source{origin_, metadata_text_, at.line, at.column}, *tree_, diagnostics_);
  if (!graph || diagnostics_.all().size() > before) throw Failed();
  metadata_ = graph;
}

// Reads metadata["relax.expr.Constant"][k]
Value Parser::metadata_constant(const Syntax& at) {
  auto missing = [&](const char* why) {
    fail({at, {}, "print the module with its constants: --constants FILE, or --inline with a number of elements"}, "{}",
         why);
  };
  bool is_there = metadata_ || side_tensors_;
  if (!is_there && unknown_.contains("metadata")) throw Failed();  // it could not be read
  if (!is_there) missing("the constant is not in this text");
  const Syntax& kind_at = *at.children[0];
  bool is_entry = positional(at) == 1 && kind_at.kind == SyntaxKind::kSubscript && positional(kind_at) == 1;
  if (!is_entry) fail(at, "expected metadata[\"kind\"][number]");
  std::string kind = string(*kind_at.children[1]);
  int64_t number = constant_int(*at.children[1]);
  if (side_tensors_) {
    auto it = side_tensors_->find(fmt::format("constant_{}", number));
    if (kind != "relax.expr.Constant" || it == side_tensors_->end()) missing("the file of constants has no such entry");
    return {relaxc::constant(it->second, span(at))};
  }
  MetadataGraph graph{metadata_};
  const Syntax* object = graph.node(list_item(entry(graph.entries(kind), "data"), number));
  if (!object) missing("the metadata of this text has no such entry");
  if (kind != "relax.expr.Constant") fail(unsupported(at), "metadata of kind '{}' is not supported yet", kind);
  const Syntax* encoded = graph.bytes(object);
  bool is_string = encoded && encoded->kind == SyntaxKind::kString;
  std::optional<std::string> bytes = is_string ? from_base64(string(*encoded)) : std::nullopt;
  std::optional<Tensor> tensor = bytes ? decode_tensor(*bytes) : std::nullopt;
  if (!tensor) missing("the metadata's tensor cannot be decoded");
  return {relaxc::constant(*tensor, span(at))};
}

}  // namespace relaxc::text
