#include "frontend/onnx/summary.h"

#include <set>

#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/model_file.h"
#include "frontend/onnx/node.h"
#include "support/checked_math.h"
#include "support/joined.h"

namespace relaxc {

namespace onnx_import {

namespace {

std::string element_name(int element_type, const Span& span) {
  try {
    return to_string(dtype_of_element_type(element_type, span));
  } catch (const CompileError&) {
    std::string name = onnx::TensorProto::DataType_Name(element_type);
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    return name.empty() ? fmt::format("element type {}", element_type) : name;
  }
}

class Summary {
 public:
  explicit Summary(const ModelFile& file) : model_(file.proto()), span_(span_of_file(file.name())) {}

  Attrs read(const ImportOptions& options) {
    for (const auto& import : model_.opset_import()) opsets_[domain_of(import.domain())] = import.version();
    for (const auto& function : model_.functions()) {
      functions_.insert({domain_of(function.domain()), function.name()});
      Opsets opsets = opsets_;
      for (const auto& import : function.opset_import()) opsets[domain_of(import.domain())] = import.version();
      add(function.node(), opsets);
    }
    AttrList inputs = values(model_.graph().input(), true), outputs = values(model_.graph().output(), false);
    add(model_.graph(), opsets_);
    AttrList opsets, dims, operators;
    Attrs dtypes;
    for (const auto& [name, count] : dtypes_) dtypes.set(name, count);
    for (const auto& [domain, version] : opsets_)
      opsets.push_back(Attrs{{"domain", domain.empty() ? "ai.onnx" : domain}, {"version", version}});
    for (const std::string& dim : dims_) dims.push_back(dim);
    for (const auto& [name, count] : operators_) operators.push_back(operator_row(name, count, options));
    Attrs result{{"ir_version", static_cast<int64_t>(model_.ir_version())},
                 {"producer", producer()},
                 {"opsets", opsets},
                 {"inputs", inputs},
                 {"outputs", outputs},
                 {"dims", dims},
                 {"weights", Attrs{{"tensors", weights_}, {"bytes", weight_bytes_}}},
                 {"weight_dtypes", dtypes},
                 {"operators", operators}};
    result.order(
        {"ir_version", "producer", "opsets", "inputs", "outputs", "dims", "weights", "weight_dtypes", "operators"});
    return result;
  }

 private:
  using Opsets = std::map<std::string, int64_t>;                   // by domain
  using Operator = std::tuple<std::string, std::string, int64_t>;  // domain, type and opset

  // Returns name and version, as far as the model has them.
  std::string producer() const {
    std::vector<std::string> parts = {model_.producer_name(), model_.producer_version()};
    std::erase(parts, "");
    return joined(parts, " ");
  }

  Attrs operator_row(const Operator& name, int64_t count, const ImportOptions& options) const {
    const auto& [domain, type, version] = name;
    std::string full = (domain.empty() ? "ai.onnx" : domain) + "::" + type;
    auto is_plugins = [&](const OnnxConverter& row) { return row.name == (domain.empty() ? type : full); };
    const ConverterRow* row_of_table = find_converter(domain, type, version);
    const char* by = functions_.contains({domain, type})                   ? "a function of the model"
                     : row_of_table && *row_of_table->why_refused          ? "refused"
                     : row_of_table                                        ? "built in"
                     : std::ranges::any_of(options.converters, is_plugins) ? "a plug-in"
                                                                           : "unsupported";
    Attrs row{{"operator", full}, {"opset", version}, {"nodes", count}, {"by", by}};
    row.order({"operator", "opset", "nodes", "by"});
    return row;
  }

  std::string type_name(const onnx::TypeProto& type) {
    if (type.has_sequence_type()) return fmt::format("sequence({})", type_name(type.sequence_type().elem_type()));
    if (type.has_optional_type()) return fmt::format("optional({})", type_name(type.optional_type().elem_type()));
    if (type.has_map_type())
      return fmt::format("map({}, {})", element_name(type.map_type().key_type(), span_),
                         type_name(type.map_type().value_type()));
    if (!type.has_tensor_type()) return "any";
    std::string element = element_name(type.tensor_type().elem_type(), span_);
    if (!type.tensor_type().has_shape()) return element + "[...]";
    auto dim_of = [&](const auto& dim) {
      if (dim.has_dim_value()) return std::to_string(dim.dim_value());
      if (is_placeholder(dim.dim_param())) return std::string("?");
      dims_.insert(dim.dim_param());
      return dim.dim_param();
    };
    return fmt::format("{}[{}]", element, joined(type.tensor_type().shape().dim(), dim_of));
  }

  template <class Values>
  AttrList values(const Values& infos, bool are_inputs) {
    std::set<std::string> initializers;
    for (const auto& tensor : model_.graph().initializer()) initializers.insert(tensor.name());
    AttrList result;
    for (const auto& info : infos) {
      if (are_inputs && initializers.contains(info.name())) continue;
      Attrs row{{"name", info.name()}, {"type", type_name(info.type())}};
      result.push_back(row);
    }
    return result;
  }

  void add(const onnx::GraphProto& graph, const Opsets& opsets) {
    for (const auto& tensor : graph.initializer()) {
      ++weights_;
      ++dtypes_[element_name(tensor.data_type(), span_)];
      int64_t bits = 0;
      try {
        DType dtype = dtype_of_element_type(tensor.data_type(), span_);
        bits = int64_t{dtype.bits};
      } catch (const CompileError&) {  // its size is not known
      }
      std::optional<int64_t> count = 1;
      for (int64_t dim : tensor.dims()) count = count ? checked_mul(*count, dim) : count;
      weight_bytes_ += (count.value_or(0) * bits + 7) / 8;
    }
    weights_ += graph.sparse_initializer_size();
    add(graph.node(), opsets);
  }
  template <class Nodes>
    requires requires(const Nodes& nodes) { nodes.begin()->op_type(); }
  void add(const Nodes& nodes, const Opsets& opsets) {
    for (const auto& node : nodes) {
      const std::string domain = domain_of(node.domain());
      ++operators_[{domain, node.op_type(), copy_value(opsets, domain).value_or(1)}];
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) add(attribute.g(), opsets);
        for (const auto& graph : attribute.graphs()) add(graph, opsets);
      }
    }
  }

  const onnx::ModelProto& model_;
  Span span_;
  Opsets opsets_;
  std::set<std::pair<std::string, std::string>> functions_;  // domain and name
  std::map<Operator, int64_t> operators_;
  std::map<std::string, int64_t> dtypes_;  // of weights
  std::set<std::string> dims_;
  int64_t weights_ = 0, weight_bytes_ = 0;
};

}  // namespace

// Returns the kind of values of the type, without their shapes.
static vm::ValueInfo info_of(const std::string& name, const onnx::TypeProto& type,  // NOLINT: protobuf bounds the depth
                             const Span& span) {
  vm::ValueInfo info{name, vm::ValueKind::kTensor, {}, {}};
  if (type.has_optional_type()) {
    info = info_of(name, type.optional_type().elem_type(), span);
    info.is_optional = true;
  } else if (type.has_sequence_type()) {
    info.kind = vm::ValueKind::kSequence;
    info.fields = {info_of("", type.sequence_type().elem_type(), span)};
  } else if (type.has_map_type()) {
    info.kind = vm::ValueKind::kMap;
    vm::ValueInfo key{"", vm::ValueKind::kTensor, dtype_of_element_type(type.map_type().key_type(), span), {}};
    info.fields = {key, info_of("", type.map_type().value_type(), span)};
  } else if (type.has_tensor_type()) {
    info.dtype = dtype_of_element_type(type.tensor_type().elem_type(), span);
  }
  return info;
}

}  // namespace onnx_import

std::vector<vm::ValueInfo> onnx_inputs(const std::string& path, const ImportOptions& options) {
  auto file = onnx_import::ModelFile::open(path, options.limits);
  const onnx::GraphProto& graph = file->proto().graph();
  std::set<std::string> constants = onnx_import::names_of_constants(graph, options);
  std::vector<vm::ValueInfo> result;
  for (bool has_default : {false, true}) {
    for (const auto& input : graph.input()) {
      if (constants.contains(input.name()) == has_default)
        result.push_back(onnx_import::info_of(input.name(), input.type(), span_of_file(path)));
    }
  }
  return result;
}

std::set<std::string> onnx_defaults(const std::string& path) {
  auto file = onnx_import::ModelFile::open(path, {});
  const onnx::GraphProto& graph = file->proto().graph();
  std::set<std::string> constants = onnx_import::names_of_constants(graph, {}), result;
  for (const auto& input : graph.input()) {
    if (constants.contains(input.name())) result.insert(input.name());
  }
  return result;
}

Attrs summarize_onnx(const std::string& path, const ImportOptions& options) {
  auto file = onnx_import::ModelFile::open(path, options.limits);
  return onnx_import::Summary(*file).read(options);
}

}  // namespace relaxc
