// Weights stay in the model's file: imported constants share memory with its mapping, and neither import nor inspection
// reads them.
#include <cstring>
#include <fstream>

#include "frontend/onnx/model_file.h"
#include "frontend/onnx/summary.h"
#include "ir/visit.h"
#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

// The figure of /proc/self/status in bytes: "VmRSS", or "VmHWM", the most that it was.
int64_t memory(const std::string& figure) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(figure + ":")) return std::stoll(line.substr(figure.size() + 1)) * 1024;
  }
  return 0;
}
// Returns by how much the memory in use grew in between, at most.
int64_t growth_during(const std::function<void()>& work) {
  std::ofstream("/proc/self/clear_refs") << "5";  // the most so far is what is in use now
  const int64_t before = memory("VmRSS");
  work();
  return memory("VmHWM") - before;
}

std::vector<Tensor> constants_of(const IRModule& module, int64_t least_bytes) {
  std::vector<Tensor> result;
  for (const auto& [_, function] : module.functions) {
    walk(function, [&](const Constant& constant) {
      if (constant.data.bytes() >= least_bytes) result.push_back(constant.data);
    });
  }
  return result;
}
bool lies_in(const Tensor& tensor, const vm::MappedFiles& files) {
  const auto* data = static_cast<const std::byte*>(tensor.raw());
  return std::ranges::any_of(files, [&](const auto& file) {
    const std::byte* begin = file->bytes().data();
    return data >= begin && data + tensor.bytes() <= begin + file->bytes().size();
  });
}

constexpr int64_t kRows = 512, kColumns = 8;

// Adds contents of rows x columns numbers, of which element i is i % 7.
template <class T>
void add_numbers(google::protobuf::RepeatedField<T>* values) {
  for (int64_t i = 0; i < kRows * kColumns; ++i) values->Add(static_cast<T>(i % 7));
}
onnx::TensorProto header(const char* name, DType dtype) {
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(onnx_import::element_type_of_dtype(dtype));
  proto.add_dims(kRows), proto.add_dims(kColumns);
  return proto;
}
// A model that adds a tensor, which is an initializer or the value of a Constant node, perhaps in a branch.
std::string model_of(onnx::TensorProto tensor, DType dtype, const std::string& place) {
  OnnxModel model;
  model.input("x", dtype, "8").input("c", kBool, "").output("y", dtype);
  auto constant_in = [&](auto&& add_node) {
    onnx::NodeProto& node = add_node();
    node.set_op_type("Constant"), node.add_output("w");
    onnx::AttributeProto& value = *node.add_attribute();
    value.set_name("value"), value.set_type(onnx::AttributeProto::TENSOR);
    *value.mutable_t() = tensor;
  };
  if (place == "initializer") *model.proto().mutable_graph()->add_initializer() = tensor;
  if (place == "constant")
    constant_in([&]() -> onnx::NodeProto& { return *model.proto().mutable_graph()->add_node(); });
  if (place != "branch") model.node("Add", "x w", "y");
  if (place == "branch") {
    onnx::NodeProto& node = model.node("If", "c", "y");
    for (const char* name : {"then_branch", "else_branch"}) {
      onnx::AttributeProto& branch = *node.add_attribute();
      branch.set_name(name), branch.set_type(onnx::AttributeProto::GRAPH);
      constant_in([&]() -> onnx::NodeProto& { return *branch.mutable_g()->add_node(); });
      onnx::NodeProto& add = *branch.mutable_g()->add_node();
      add.set_op_type("Add"), add.add_input("x"), add.add_input("w"), add.add_output("r");
      branch.mutable_g()->add_output()->set_name("r");
    }
  }
  return model.proto().SerializeAsString();
}

}  // namespace

TEST_CASE("contents of large tensors are shared with the file, wherever they stand", "[frontend]") {
  Folder folder("large_data");
  struct Case {
    const char* field;
    DType dtype;
    bool is_shared;  // else the numbers are varints, which are read
    std::function<void(onnx::TensorProto&)> fill;
  };
  const std::string raw = [] {
    Tensor values = Tensor::empty({kRows * kColumns}, kFloat32);
    for (int64_t i = 0; i < values.size(); ++i) values.set_double(i, static_cast<double>(i % 7));
    return std::string(static_cast<char*>(values.raw()), static_cast<size_t>(values.bytes()));
  }();
  const Case kCases[] = {
      {"raw_data", kFloat32, true, [&](auto& t) { t.set_raw_data(raw); }},
      {"float_data", kFloat32, true, [](auto& t) { add_numbers(t.mutable_float_data()); }},
      {"double_data", kFloat64, true, [](auto& t) { add_numbers(t.mutable_double_data()); }},
      {"int32_data", kInt32, false, [](auto& t) { add_numbers(t.mutable_int32_data()); }},
      {"int32_data of int16", DType::int_(16), false, [](auto& t) { add_numbers(t.mutable_int32_data()); }},
      {"int64_data", kInt64, false, [](auto& t) { add_numbers(t.mutable_int64_data()); }},
      {"uint64_data", DType::uint(64), false, [](auto& t) { add_numbers(t.mutable_uint64_data()); }},
      {"uint64_data of uint32", DType::uint(32), false, [](auto& t) { add_numbers(t.mutable_uint64_data()); }},
  };
  int shared = 0;
  for (const Case& c : kCases) {
    for (const char* place : {"initializer", "constant", "branch"}) {
      onnx::TensorProto tensor = header("w", c.dtype);
      c.fill(tensor);
      INFO(c.field << " in " << place);
      vm::MappedFiles files;
      ImportOptions options;
      options.files = &files;
      const std::string path = folder.write("model.onnx", model_of(tensor, c.dtype, place));
      IRModule module = import_onnx(path, op_table(), options);
      std::vector<Tensor> constants = constants_of(module, kRows * kColumns);
      REQUIRE(constants.size() == (place == std::string("branch") ? 2 : 1));
      for (const Tensor& constant : constants) {
        CHECK(constant.dtype() == c.dtype);
        CHECK(constant.as_int(0) == 0);
        CHECK(constant.as_int(kRows * kColumns - 1) == (kRows * kColumns - 1) % 7);
        const bool is_aligned = lies_in(constant, files);  // else it is a copy
        shared += is_aligned;
        if (!c.is_shared) CHECK(!is_aligned);
      }
    }
  }
  CHECK(shared > 0);
}

TEST_CASE("numbers of a large tensor that do not fit its shape or its dtype are errors", "[frontend]") {
  auto error_of = [](onnx::TensorProto tensor, DType dtype) {
    const std::string model = model_of(std::move(tensor), dtype, "initializer");
    try {
      import_onnx_bytes(std::as_bytes(std::span(model)), "m.onnx", op_table());
    } catch (const CompileError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  onnx::TensorProto more = header("w", kInt64), fewer = header("w", kInt64), other = header("w", kFloat32);
  add_numbers(more.mutable_int64_data()), more.add_int64_data(1);
  add_numbers(fewer.mutable_int64_data()), fewer.mutable_int64_data()->RemoveLast();
  add_numbers(other.mutable_int64_data());
  CHECK_THAT(error_of(more, kInt64), Catch::Contains("initializer 'w'") && Catch::Contains("4096"));
  CHECK_THAT(error_of(fewer, kInt64), Catch::Contains("initializer 'w'") && Catch::Contains("4096"));
  CHECK_THAT(error_of(other, kFloat32), Catch::Contains("not in the field for elements of float32"));
}

TEST_CASE("a model with two gigabytes of external data is imported and inspected in little memory", "[frontend]") {
  Folder folder("large_data");
  constexpr int64_t kSize = 8192, kLayers = 8, kBytes = kSize * kSize * 4;
  OnnxModel model;
  model.input("x", kFloat32, "n,8192").output(fmt::format("y{}", kLayers));
  model.node("Relu", "x", "y0");
  for (int64_t i = 0; i < kLayers; ++i) {
    onnx::TensorProto& weight = *model.proto().mutable_graph()->add_initializer();
    weight.set_name(fmt::format("w{}", i)), weight.set_data_type(1);
    weight.add_dims(kSize), weight.add_dims(kSize);
    weight.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] :
         {std::pair("location", std::string("weights.bin")), std::pair("offset", std::to_string(i * kBytes)),
          std::pair("length", std::to_string(kBytes))}) {
      auto* entry = weight.add_external_data();
      entry->set_key(key), entry->set_value(value);
    }
    model.node("MatMul", fmt::format("y{} w{}", i, i), fmt::format("y{}", i + 1));
  }
  const std::string path = folder.write("model.onnx", model.proto().SerializeAsString());
  std::filesystem::resize_file(folder.write("weights.bin", ""), kLayers * kBytes);  // without blocks on the disk
  vm::MappedFiles files;
  int64_t imported = growth_during([&] {
    ImportOptions options;
    options.files = &files;
    IRModule module = import_onnx(path, op_table(), options);
    std::vector<Tensor> constants = constants_of(module, kBytes);
    CHECK(constants.size() == kLayers);
    for (const Tensor& constant : constants) CHECK(lies_in(constant, files));
  });
  int64_t inspected = growth_during([&] { summarize_onnx(path); });
  CHECK(imported < 32 << 20);
  CHECK(inspected < 32 << 20);
}

TEST_CASE("a missing file of weights is one error, which names the initializers and the remedy", "[frontend]") {
  Folder folder("large_data");
  OnnxModel model;
  model.input("x", kFloat32, "n").output("y3");
  model.node("Relu", "x", "y0");
  for (int i = 0; i < 4; ++i) {
    onnx::TensorProto& weight = *model.proto().mutable_graph()->add_initializer();
    weight.set_name(fmt::format("w{}", i)), weight.set_data_type(1);
    weight.set_data_location(onnx::TensorProto::EXTERNAL);
    auto* entry = weight.add_external_data();
    entry->set_key("location"), entry->set_value(i < 3 ? "weights.bin" : "other.bin");
    model.node("Add", fmt::format("y{} w{}", i, i), fmt::format("y{}", i + 1));
  }
  model.node("Add", "y3 w3", "z");
  model.output("z");
  const std::string path = folder.write("model.onnx", model.proto().SerializeAsString());
  try {
    import_onnx(path, op_table(), {});
    FAIL("expected an error");
  } catch (const CompileError& error) {
    CHECK(error.diagnostics().size() == 2);
    CHECK_THAT(error.what(), Catch::Contains("initializer 'w0': error: external data file 'weights.bin' cannot be "
                                             "opened: No such file or directory; 3 initializers have their data "
                                             "there: 'w0', 'w1', 'w2'"));
    CHECK_THAT(error.what(), Catch::Contains("initializer 'w3': error: external data file 'other.bin'"));
    CHECK_THAT(error.what(), Catch::Contains("put it at '" + folder.at("weights.bin") + "'"));
  }
}

}  // namespace relaxc::test
