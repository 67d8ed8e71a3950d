#include "frontend/onnx/model_file.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "ir/text/lexer.h"
#include "support/checked_math.h"
#include "support/file_kind.h"
#include "support/joined.h"
#include "vm/error.h"
#include "vm/file_memory.h"

namespace relaxc::onnx_import {

namespace {

constexpr int64_t kDeepestGraphs = 100;

struct Header {
  std::vector<int64_t> shape;
  DType dtype;
  int64_t elements = 0, bytes = 0;
};
Header read_header(const onnx::TensorProto& proto, const Span& span) {
  Header header{{proto.dims().begin(), proto.dims().end()}, dtype_of_element_type(proto.data_type(), span)};
  for (size_t d = 0; d < header.shape.size(); ++d) {
    if (header.shape[d] < 0) fail(span, "dim {} is {}, expected >= 0", d, header.shape[d]);
  }
  auto count = element_count(header.shape);
  auto bytes = tensor_bytes(header.shape, header.dtype);
  if (!bytes) fail(span, "shape [{}] is too large", joined(header.shape));
  header.elements = *count;
  header.bytes = *bytes;
  return header;
}
void check_size(int64_t have, const Header& header, const Span& span) {
  if (have != header.bytes)
    fail(span, "{} bytes of data, expected {} for {}[{}]", have, header.bytes, to_string(header.dtype),
         joined(header.shape));
}

template <class Out, class Values>
Tensor from_typed(const Header& header, const Values& values, const Span& span) {
  if (values.size() != header.elements)
    fail(span, "{} elements of data, expected {}", std::ssize(values), header.elements);
  Tensor tensor = Tensor::empty(header.shape, header.dtype);
  Out* out = static_cast<Out*>(tensor.raw());
  for (int i = 0; i < values.size(); ++i) out[i] = static_cast<Out>(values[i]);
  return tensor;
}
// Each number holds a byte, with several elements.
Tensor from_packed(const Header& header, const google::protobuf::RepeatedField<int32_t>& bytes, const Span& span) {
  check_size(bytes.size(), header, span);
  Tensor tensor = Tensor::empty(header.shape, header.dtype);
  for (int i = 0; i < bytes.size(); ++i) tensor.data<uint8_t>()[i] = static_cast<uint8_t>(bytes[i]);
  return tensor;
}
Tensor decode_typed(const onnx::TensorProto& proto, const Header& header, const Span& span) {
  DType dtype = header.dtype;
  if (dtype.is_complex()) {
    Header parts{header.shape, dtype.part(), 2 * header.elements, header.bytes};
    parts.shape.push_back(2);
    const Tensor numbers = decode_typed(proto, parts, span);
    return Tensor::view(header.shape, dtype, numbers.raw(), numbers.owner());
  }
  if (dtype == kFloat32) return from_typed<float>(header, proto.float_data(), span);
  if (dtype == kFloat64) return from_typed<double>(header, proto.double_data(), span);
  if (dtype == kInt64) return from_typed<int64_t>(header, proto.int64_data(), span);
  if (dtype == DType::uint(64)) return from_typed<uint64_t>(header, proto.uint64_data(), span);
  if (dtype == DType::uint(32)) return from_typed<uint32_t>(header, proto.uint64_data(), span);
  if (dtype.is_packed()) return from_packed(header, proto.int32_data(), span);
  if (dtype.bytes() == 4) return from_typed<int32_t>(header, proto.int32_data(), span);
  if (dtype.bytes() == 2) return from_typed<uint16_t>(header, proto.int32_data(), span);
  Tensor tensor = from_typed<uint8_t>(header, proto.int32_data(), span);
  for (int64_t i = 0; dtype.is_bool() && i < tensor.size(); ++i) tensor.set_int(i, proto.int32_data(i) != 0);
  return tensor;
}
// Rejects a bool byte other than 0 or 1, which would be undefined behaviour in generated code.
void check_bools(const Tensor& tensor, const Span& span) {
  if (!tensor.dtype().is_bool()) return;
  const auto* bytes = static_cast<const uint8_t*>(tensor.raw());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (bytes[i] > 1) fail(span, "bool element {} is {}, expected 0 or 1", i, bytes[i]);
  }
}

// ---- External data --------------------------------------------------------------------------------------------------

int64_t parse_number(const std::string& text, const char* what, const Span& span) {
  std::optional<int64_t> value = relaxc::text::whole_number(text);
  if (!value) fail(span, "external data {} '{}' is not a number of bytes", what, text);
  return *value;
}

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

// Opens a file below the folder, component by component. Symbolic links are refused, since they can lead anywhere.
std::shared_ptr<const vm::MappedFile> map_below(const std::string& folder, const std::string& location,
                                                const Span& span) {
  if (location.empty()) fail(span, "external data has no location");
  bool leaves = location.front() == '/' || location.find('\0') != std::string::npos;
  std::vector<std::string> parts;
  for (const std::filesystem::path& part : std::filesystem::path(location)) {
    leaves = leaves || part == "..";
    if (!part.empty() && part != ".") parts.push_back(part);
  }
  if (leaves || parts.empty()) fail(span, "external data path '{}' leaves the model's folder", location);
  Descriptor current{open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  for (size_t i = 0; i < parts.size() && current.fd >= 0; ++i) {
    int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (i + 1 < parts.size() ? O_DIRECTORY : 0);
    Descriptor next{openat(current.fd, parts[i].c_str(), flags)};
    if (next.fd < 0 && (errno == ELOOP || errno == EMLINK || errno == ENOTDIR))
      fail(span, "external data path '{}' goes through a symbolic link or a file; copy the data beside the model",
           location);
    std::swap(current.fd, next.fd);
  }
  if (current.fd < 0) {
    const int code = errno;
    const std::string why = fmt::format("external data file '{}' cannot be opened: {}", location, std::strerror(code));
    std::vector<std::string> notes;
    if (code == ENOENT)
      notes.push_back(
          fmt::format("weights of the model are in this file; put it at '{}', or save the model with them inside "
                      "(onnx.save of onnx.load)",
                      (std::filesystem::path(folder) / location).string()));
    throw CompileError({{.span = span, .message = why, .notes = std::move(notes)}});
  }
  struct stat status{};
  if (fstat(current.fd, &status) != 0 || !S_ISREG(status.st_mode))
    fail(span, "external data file '{}' is not a regular file", location);
  try {
    return vm::MappedFile::map(current.fd, folder + "/" + location);
  } catch (const RuntimeError& error) {
    fail(span, "external data: {}", error.what());
  }
}

struct ExternalData {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
};
std::string location_of(const onnx::TensorProto& proto) {
  std::string location;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
  }
  return location;
}
ExternalData read_external_data(const onnx::TensorProto& proto, const Span& span) {
  ExternalData data{.location = location_of(proto), .length = {}};
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "offset") data.offset = parse_number(entry.value(), "offset", span);
    if (entry.key() == "length") data.length = parse_number(entry.value(), "length", span);
  }
  return data;
}

// Returns the tensor that the proto describes over these bytes of data.
Tensor shared_tensor(const onnx::TensorProto& proto, std::span<const std::byte> bytes,
                     const std::shared_ptr<const void>& owner, const Span& span) {
  Header header = read_header(proto, span);
  if (header.dtype.is_string()) fail(span, "strings stand in string_data, not in raw bytes");
  check_size(std::ssize(bytes), header, span);
  Tensor tensor = tensor_over(header.shape, header.dtype, bytes, owner);
  check_bools(tensor, span);
  return tensor;
}
// Returns the field that holds numbers of the dtype; complex ones are pairs of floats there.
int field_of(DType dtype) {
  if (dtype.is_complex()) return field_of(dtype.part());
  if (dtype == kFloat32) return onnx::TensorProto::kFloatDataFieldNumber;
  if (dtype == kFloat64) return onnx::TensorProto::kDoubleDataFieldNumber;
  if (dtype == kInt64) return onnx::TensorProto::kInt64DataFieldNumber;
  bool is_wide = dtype == DType::uint(64) || dtype == DType::uint(32);
  return is_wide ? onnx::TensorProto::kUint64DataFieldNumber : onnx::TensorProto::kInt32DataFieldNumber;
}
// Floats lie in their field as they do in raw_data; integers are varints there, of which a copy must be made.
Tensor large_tensor(const onnx::TensorProto& proto, const LargeData& data, const std::shared_ptr<const void>& owner,
                    const Span& span) {
  Header header = read_header(proto, span);
  const bool is_raw = data.field == onnx::TensorProto::kRawDataFieldNumber;
  if (!is_raw && data.field != field_of(header.dtype))
    fail(span, "the data is not in the field for elements of {}", to_string(header.dtype));
  if (is_raw || header.dtype == kFloat32 || header.dtype == kFloat64 || header.dtype.is_complex())
    return shared_tensor(proto, data.bytes, owner, span);
  return tensor_of_varints(header.shape, header.dtype, data.bytes, owner, span);
}

Tensor external_tensor(const std::shared_ptr<const vm::MappedFile>& file, const ExternalData& data,
                       const onnx::TensorProto& proto, const Span& span) {
  Header header = read_header(proto, span);
  if (header.dtype.is_string()) fail(span, "strings stand in string_data, not in external data");
  const auto& [location, offset, length] = data;
  int64_t size = std::ssize(file->bytes());
  if (offset > size) fail(span, "external data offset {} is beyond the end of '{}' ({} bytes)", offset, location, size);
  if (length) check_size(*length, header, span);
  if (header.bytes > size - offset)
    fail(span, "external data '{}' has {} bytes, expected {}", location, size, offset + header.bytes);
  auto bytes = file->bytes().subspan(static_cast<size_t>(offset), static_cast<size_t>(header.bytes));
  return shared_tensor(proto, bytes, file, span);
}

}  // namespace

// The supported element types of onnx.proto.
static constexpr std::pair<int, DType> kElementTypes[] = {{1, kFloat32},
                                                          {2, DType::uint(8)},
                                                          {3, DType::int_(8)},
                                                          {4, DType::uint(16)},
                                                          {5, DType::int_(16)},
                                                          {6, kInt32},
                                                          {7, kInt64},
                                                          {8, DType::string()},
                                                          {9, kBool},
                                                          {10, DType::float_(16)},
                                                          {11, kFloat64},
                                                          {12, DType::uint(32)},
                                                          {13, DType::uint(64)},
                                                          {14, DType::complex(64)},
                                                          {15, DType::complex(128)},
                                                          {16, DType::bfloat16()},
                                                          {17, {DTypeCode::kFloat8E4M3FN, 8}},
                                                          {18, {DTypeCode::kFloat8E4M3FNUZ, 8}},
                                                          {19, {DTypeCode::kFloat8E5M2, 8}},
                                                          {20, {DTypeCode::kFloat8E5M2FNUZ, 8}},
                                                          {21, DType::uint(4)},
                                                          {22, DType::int_(4)},
                                                          {23, {DTypeCode::kFloat4E2M1FN, 4}},
                                                          {24, {DTypeCode::kFloat8E8M0FNU, 8}},
                                                          {25, DType::uint(2)},
                                                          {26, DType::int_(2)}};

std::vector<std::string> field_values(const google::protobuf::Message& message, int number) {
  std::vector<std::string> values;
  const auto* reflection = message.GetReflection();
  if (const auto* field = message.GetDescriptor()->FindFieldByNumber(number)) {
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 0;
    for (int i = 0; i < count; ++i)
      values.push_back(reflection->GetRepeatedMessage(message, field, i).SerializeAsString());
    if (!field->is_repeated()) values.push_back(reflection->GetString(message, field));
    return values;
  }
  const auto& unknown = reflection->GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto& field = unknown.field(i);
    if (field.number() == number && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      values.push_back(field.length_delimited());
  }
  return values;
}
static std::string joined_name(const std::string& domain, const std::string& name,
                               const std::vector<std::string>& overload) {
  return domain_of(domain) + "." + name + (overload.empty() || overload[0].empty() ? "" : ":" + overload[0]);
}
std::string name_of_function(const onnx::FunctionProto& function) {
  return joined_name(function.domain(), function.name(), field_values(function, 13));
}
std::string name_of_function(const onnx::NodeProto& call) {
  return joined_name(call.domain(), call.op_type(), field_values(call, 8));
}

DType dtype_of_element_type(int element_type, const Span& span) {
  if (const DType* dtype = relaxc::text::row_of(kElementTypes, element_type)) return *dtype;
  fail(span, "element type {} is unknown", element_type);
}
int element_type_of_dtype(DType wanted) {
  auto row = std::ranges::find(kElementTypes, wanted, &std::pair<int, DType>::second);
  return row == std::end(kElementTypes) ? 0 : row->first;
}

static Tensor decode_strings(const onnx::TensorProto& proto, const Header& header, const Span& span) {
  if (proto.has_raw_data()) fail(span, "strings stand in string_data, not in raw_data");
  if (proto.string_data_size() != header.elements)
    fail(span, "{} strings, expected {}", proto.string_data_size(), header.elements);
  return Tensor::strings(header.shape,
                         std::vector<std::string_view>(proto.string_data().begin(), proto.string_data().end()));
}
Tensor decode_tensor(const onnx::TensorProto& proto, const Span& span) {
  Header header = read_header(proto, span);
  if (header.dtype.is_string()) return decode_strings(proto, header, span);
  if (!proto.has_raw_data()) return decode_typed(proto, header, span);
  check_size(std::ssize(proto.raw_data()), header, span);
  Tensor tensor = Tensor::empty(header.shape, header.dtype);
  std::memcpy(tensor.raw(), proto.raw_data().data(), proto.raw_data().size());
  check_bools(tensor, span);
  return tensor;
}

void ModelFile::parse(std::span<const std::byte> bytes) {
  Span span = span_of_file(name_);
  if (bytes.empty()) fail(span, "the file is empty");
  if (std::ssize(bytes) > limits_.model_bytes)
    fail(span, "the model has {} bytes, the limit is {}", bytes.size(), limits_.model_bytes);
  std::string rest = without_large_data(bytes, large_data_);
  const void* data = large_data_.empty() ? static_cast<const void*>(bytes.data()) : rest.data();
  size_t size = large_data_.empty() ? bytes.size() : rest.size();
  bool parsed = false;
  if (size < (size_t{1} << 31)) {
    google::protobuf::io::CodedInputStream stream(static_cast<const uint8_t*>(data), static_cast<int>(size));
    // A graph in a graph is three messages deep: in an attribute of a node of it. A type in it takes a few more.
    stream.SetRecursionLimit(static_cast<int>(std::min<int64_t>(limits_.depth, kDeepestGraphs)) * 3 + 20);
    parsed = proto_.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  }
  if (parsed && proto_.has_graph()) return;
  // Some formats can be read as messages of unknown fields.
  const auto content = recognized_content({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const bool is_module = content && content->kind == ContentKind::kText && name_.ends_with(".py");
  if (is_module) fail(span, "not an ONNX model: it is a module as text, which is not taken here");
  if (content && content->kind != ContentKind::kModel) fail(span, "not an ONNX model: {}", to_string(*content));
  if (!parsed) fail(span, "not an ONNX model, or a truncated one");
  const bool has_no_field = proto_.ir_version() == 0 && proto_.opset_import_size() == 0;
  if (has_no_field) fail(span, "not an ONNX model");
  fail(span, "the model has no graph; a tensor or a sequence of ONNX (.pb) is an input of a model");
}

std::shared_ptr<const ModelFile> ModelFile::open(const std::string& path, const ImportLimits& limits) {
  auto model = std::make_shared<ModelFile>(path, limits);
  size_t slash = path.rfind('/');
  model->folder_ = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  model->mapped_ = with_compile_errors(span_of_file(path), [&] { return vm::MappedFile::open(path); });
  model->bytes_owner_ = model->mapped_;
  model->parse(model->mapped_->bytes());
  return model;
}

std::shared_ptr<const ModelFile> ModelFile::from_bytes(std::span<const std::byte> bytes, const std::string& name,
                                                       const ImportLimits& limits) {
  auto model = std::make_shared<ModelFile>(name, limits);
  auto copy = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  model->bytes_owner_ = copy;
  model->parse(*copy);
  return model;
}

vm::MappedFiles ModelFile::files() const {
  vm::MappedFiles files;
  if (mapped_) files.push_back(mapped_);
  for (const auto& [location, file] : external_) {
    if (file) files.push_back(file);
  }
  return files;
}

Tensor ModelFile::tensor(const std::shared_ptr<const ModelFile>& self, const onnx::TensorProto& proto,
                         const Span& span) {
  if (proto.has_segment()) fail_unsupported(span, "tensors in segments");
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    if (self->folder_.empty())
      fail(span,
           "external data cannot be read for a model in memory; compile the model from its file, or put its weights "
           "into "
           "it (onnx.load and onnx.save do)");
    ExternalData data = read_external_data(proto, span);
    std::shared_ptr<const vm::MappedFile>& file = self->external_[data.location];
    if (!file) file = map_below(self->folder_, data.location, span);
    return external_tensor(file, data, proto, span);
  }
  std::optional<size_t> large = index_of_large_data(proto);
  if (large && *large < self->large_data_.size())
    return large_tensor(proto, self->large_data_[*large], self->bytes_owner_, span);
  return decode_tensor(proto, span);
}

std::optional<std::string> ModelFile::unopened(const onnx::TensorProto& proto) const {
  if (proto.data_location() != onnx::TensorProto::EXTERNAL) return std::nullopt;
  std::string location = location_of(proto);
  auto file = external_.find(location);
  return file == external_.end() || !file->second ? std::optional(std::move(location)) : std::nullopt;
}
std::vector<std::string> ModelFile::initializers_at(const std::string& location) const {
  std::vector<std::string> names;
  auto add = [&](auto& self, const onnx::GraphProto& graph) -> void {  // protobuf bounds the depth
    for (const auto& tensor : graph.initializer()) {
      if (tensor.data_location() == onnx::TensorProto::EXTERNAL && location_of(tensor) == location)
        names.push_back(tensor.name());
    }
    for (const auto& node : graph.node()) {
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) self(self, attribute.g());
      }
    }
  };
  add(add, proto_.graph());
  return names;
}

// The indices are positions in the flat tensor, or rows of an index per dim.
Tensor ModelFile::tensor(const std::shared_ptr<const ModelFile>& self, const onnx::SparseTensorProto& proto,
                         const Span& span) {
  constexpr int64_t kMostBytes = int64_t{1} << 32;
  Tensor values = tensor(self, proto.values(), span), indices = tensor(self, proto.indices(), span);
  const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  int64_t rank = std::ssize(dims), count = values.size();
  auto bytes = tensor_bytes(dims, values.dtype());
  if (!bytes || *bytes > std::min(kMostBytes, self->limits_.tensor_bytes))
    fail(span, "a sparse tensor of shape [{}] is too large, or not one", joined(dims));
  bool is_flat = indices.ndim() == 1 && indices.size() == count;
  bool is_rows = indices.ndim() == 2 && indices.shape() == std::vector<int64_t>{count, rank};
  if (values.ndim() != 1 || indices.dtype() != kInt64 || (!is_flat && !is_rows))
    fail(span, "a sparse tensor of rank {} has {} values and indices {}", rank, count, describe(indices));
  Tensor dense = Tensor::empty(dims, values.dtype());
  if (dense.bytes() > 0) std::memset(dense.raw(), 0, static_cast<size_t>(dense.bytes()));
  if (values.dtype().bits % 8 != 0 && !values.dtype().is_bool())
    fail_unsupported(span, "a sparse tensor of packed numbers");
  int64_t size = values.dtype().bytes();
  for (int64_t k = 0; k < count; ++k) {
    int64_t at = is_flat ? indices.as_int(k) : 0;
    for (int64_t d = 0; is_rows && d < rank; ++d) {
      int64_t index = indices.as_int(k * rank + d), dim = dims[static_cast<size_t>(d)];
      if (index < 0 || index >= dim) fail(span, "index {} of a sparse tensor is out of range for dim {}", index, dim);
      at = at * dim + index;
    }
    if (at < 0 || at >= dense.size()) fail(span, "position {} is outside of a sparse tensor", at);
    std::memcpy(static_cast<char*>(dense.raw()) + at * size, static_cast<char*>(values.raw()) + k * size,
                static_cast<size_t>(size));
  }
  return dense;
}

onnx::TensorProto proto_of_tensor(const Tensor& tensor, const Span& span) {
  onnx::TensorProto proto;
  int type = element_type_of_dtype(tensor.dtype());
  if (type == 0) fail_unsupported(span, "{} has no ONNX element type", to_string(tensor.dtype()));
  proto.set_data_type(type);
  for (int64_t dim : tensor.shape()) proto.add_dims(dim);
  if (tensor.bytes() >= int64_t{1} << 31)
    fail_unsupported(span, "a tensor of {} bytes; the limit is 2 GB", tensor.bytes());
  if (tensor.dtype().is_string()) {
    for (int64_t i = 0; i < tensor.size(); ++i) proto.add_string_data(std::string(tensor.string(i)));
  } else {
    proto.set_raw_data(tensor.raw(), static_cast<size_t>(tensor.bytes()));
  }
  return proto;
}

}  // namespace relaxc::onnx_import
