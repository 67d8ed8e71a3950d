// Reads constants in TVM's metadata section: metadata = tvm.ir.load_json("""{...}"""), a graph of nodes that refer to
// each other by number, and its tensors in base64. The expression parser reads the JSON, which is Python except for
// three names.
#include <array>
#include <cstring>
#include <filesystem>

#include "ir/text/parsing.h"
#include "ir/text/safetensors.h"
#include "support/checked_math.h"

namespace relaxc::text {

namespace {

const Syntax* entry(const Syntax* dict, std::string_view key) {
  if (!dict || dict->kind != SyntaxKind::kDict) return nullptr;
  for (size_t i = 0; i + 1 < dict->children.size(); i += 2) {
    const Syntax& at = *dict->children[i];
    if (at.kind == SyntaxKind::kString && at.text.size() == key.size() + 2 && at.text.substr(1, key.size()) == key)
      return dict->children[i + 1];
  }
  return nullptr;
}

std::optional<std::string> decode_base64(std::string_view text) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    if (c == '=' || c == '\n') continue;
    int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                : c >= 'a' && c <= 'z' ? c - 'a' + 26
                : c >= '0' && c <= '9' ? c - '0' + 52
                : c == '+'             ? 62
                : c == '/'             ? 63
                                       : -1;
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xff);
    }
  }
  return bytes;
}

// Decodes TVM's file format of a tensor: magic, reserved word, device, rank, dtype, dims, number of bytes, the bytes.
std::optional<Tensor> decode_tensor(std::string_view bytes) {
  constexpr uint64_t kMagic = 0xDD5E40F096B4A13F;
  auto take = [&](auto& value) {
    if (bytes.size() < sizeof value) return false;
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes.remove_prefix(sizeof value);
    return true;
  };
  uint64_t magic = 0, reserved = 0;
  int32_t device_type = 0, device_id = 0, ndim = 0;
  uint8_t code = 0, bits = 0;
  uint16_t lanes = 0;
  bool read = take(magic) && take(reserved) && take(device_type) && take(device_id) && take(ndim) && take(code) &&
              take(bits) && take(lanes);
  if (!read || magic != kMagic || ndim < 0 || ndim > 64 || lanes != 1) return std::nullopt;
  constexpr std::array<const char*, 3> kCodes = {"int", "uint", "float"};
  std::string name = code < 3 ? fmt::format("{}{}", kCodes[code], bits) : code == 4 ? "bfloat16" : "bool";
  bool is_bool = (code == 1 && bits == 1) || code == 6;
  std::optional<DType> dtype = parse_dtype(is_bool ? "bool" : name);
  if (!dtype || (code > 2 && code != 4 && code != 6)) return std::nullopt;
  std::vector<int64_t> shape(static_cast<size_t>(ndim));
  for (int64_t& dim : shape) {
    if (!take(dim)) return std::nullopt;
  }
  int64_t size = 0;
  std::optional<int64_t> count = element_count(shape);
  std::optional<int64_t> wanted = count ? checked_mul(*count, dtype->bytes()) : std::nullopt;
  if (!take(size) || !wanted || size != *wanted || static_cast<size_t>(size) > bytes.size()) return std::nullopt;
  Tensor result = Tensor::empty(shape, *dtype);
  std::memcpy(result.raw(), bytes.data(), static_cast<size_t>(size));
  return result;
}

}  // namespace

void Parser::metadata(const Line& line) {
  const Syntax& call = *line.value;
  std::string_view loader = call.kind == SyntaxKind::kCall ? call.children[0]->text : "";
  if ((loader != "load_json" && loader != "load_safetensors") || positional(call) != 1)
    fail(line, "expected metadata = tvm.ir.load_json(...) or I.load_safetensors(...)");
  const Syntax& at = *call.children[1];
  if (loader == "load_safetensors") {
    // The file must be in the text's folder: a text of foreign origin must not reach other files.
    std::filesystem::path file = string(at);
    if (file.has_parent_path()) fail(at, "expected the name of a file in the folder of this text, without a path");
    try {
      side_tensors_ = read_safetensors((std::filesystem::path(origin_->file).parent_path() / file).string());
    } catch (const CompileError& error) {
      fail(at, "{}", error.diagnostics().at(0).message);
    }
    return;
  }
  metadata_text_ = string(at);
  size_t before = diagnostics_.all().size();
  const Syntax* graph =
      parse_expression(Source{origin_, metadata_text_, at.line, at.column}, *tree_, diagnostics_, SyntaxLimits{});
  if (!graph || diagnostics_.all().size() > before) throw Failed();
  metadata_ = graph;
}

namespace {

// Returns item i of a list; null when there is none.
const Syntax* list_item(const Syntax* list, int64_t i) {
  bool found = list && list->kind == SyntaxKind::kList && i >= 0 && i < static_cast<int64_t>(list->children.size());
  return found ? list->children[static_cast<size_t>(i)] : nullptr;
}

}  // namespace

// Reads metadata["relax.expr.Constant"][k]
Value Parser::metadata_constant(const Syntax& at) {
  auto missing = [&](std::string_view why) {
    report(at, "{}", why).notes.push_back("print the module with its constants inline");
    throw Failed();
  };
  bool is_there = metadata_ || side_tensors_;
  if (!is_there && unknown_.contains("metadata")) throw Failed();  // it could not be read
  if (!is_there) missing("the constant is not in this text");
  bool is_entry =
      at.children.size() == 2 && at.children[0]->kind == SyntaxKind::kSubscript && at.children[0]->children.size() == 2;
  if (!is_entry) fail(at, "expected metadata[\"kind\"][number]");
  std::string kind = string(*at.children[0]->children[1]);
  int64_t number = constant_int(*at.children[1]);
  if (side_tensors_) {
    auto it = side_tensors_->find(fmt::format("constant_{}", number));
    if (kind != "relax.expr.Constant" || it == side_tensors_->end()) missing("the file of constants has no such entry");
    return {relaxc::constant(it->second, span(at))};
  }
  const Syntax* object = metadata_node(list_item(entry(metadata_entries(kind), "data"), number));
  if (!object) missing("the metadata of this text has no such entry");
  if (kind != "relax.expr.Constant") fail_unsupported(span(at), "metadata of kind '{}' is not supported yet", kind);
  const Syntax* encoded = metadata_bytes(object);
  std::optional<std::string> bytes =
      encoded && encoded->kind == SyntaxKind::kString ? decode_base64(string(*encoded)) : std::nullopt;
  std::optional<Tensor> tensor = bytes ? decode_tensor(*bytes) : std::nullopt;
  if (!tensor) missing("the metadata's tensor cannot be decoded");
  return {relaxc::constant(*tensor, span(at))};
}

// Returns the node of the metadata's graph with this number; null when there is none.
const Syntax* Parser::metadata_node(const Syntax* number) {
  if (!number) return nullptr;
  // Older versions write the numbers of attributes as strings.
  AttrValue value = attr_value(*number);
  const std::string* text = value.as<std::string>();
  const int64_t* whole = value.as<int64_t>();
  return list_item(entry(metadata_, "nodes"), text ? std::atoll(text->c_str()) : whole ? *whole : -1);
}

// Returns the node that lists the entries of a kind. The root maps names of kinds to lists: keys and data side by side,
// or (later) one after the other.
const Syntax* Parser::metadata_entries(const std::string& kind) {
  const Syntax* old_root = entry(metadata_, "root");
  const Syntax* root = metadata_node(old_root ? old_root : entry(metadata_, "root_index"));
  const Syntax* keys = entry(root, "keys");
  const Syntax* data = entry(root, "data");
  if (!data || data->kind != SyntaxKind::kList) return nullptr;
  const Syntax* found = nullptr;
  for (size_t i = 0; keys && i < keys->children.size() && i < data->children.size(); ++i) {
    if (string(*keys->children[i]) == kind) found = metadata_node(data->children[i]);
  }
  for (size_t i = 0; !keys && i + 1 < data->children.size(); i += 2) {
    const Syntax* key = entry(metadata_node(data->children[i]), "data");
    if (key && key->kind == SyntaxKind::kString && string(*key) == kind) found = metadata_node(data->children[i + 1]);
  }
  return found;
}

// Returns the text of a constant's tensor in base64: it is in a list beside the graph, or (later) in a separate node.
const Syntax* Parser::metadata_bytes(const Syntax* object) {
  const Syntax* tensors = entry(metadata_, "b64ndarrays");
  const Syntax* attributes = entry(object, "attrs");
  if (!attributes || !tensors) return entry(metadata_node(entry(entry(object, "data"), "data")), "data");
  const Syntax* index = entry(attributes, "data");
  return list_item(tensors, index ? std::atoll(string(*index).c_str()) : -1);
}

}  // namespace relaxc::text
