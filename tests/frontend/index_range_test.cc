// Indices at and beyond the ends of their axis, for every operator that reads or writes at indices.
#include "ir/visit.h"
#include "tests/frontend/onnx_model.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

constexpr int64_t kRows = 4, kColumns = 3;

struct Form {
  std::string op;
  std::string index_dims;  // of the indices; the data is [4, 3]
  int64_t axis = 0;        // -1: the operator has none
  bool scatters = false;
  std::string update_dims = {};
  // The size of the axis that the index at this flat position is of.
  int64_t size(int64_t position) const {
    if (op.ends_with("ND")) return index_dims.ends_with("2") && position % 2 ? kColumns : kRows;
    return axis == 0 ? kRows : kColumns;
  }
};
const std::vector<Form> kForms = {
    {"Gather", "2,3", 0},
    {"Gather", "5", 1},
    {"GatherElements", "2,3", 0},
    {"GatherElements", "4,2", 1},
    {"GatherND", "3,1", -1},
    {"GatherND", "2,2", -1},
    {"ScatterElements", "2,3", 0, true, "2,3"},
    {"ScatterElements", "4,2", 1, true, "4,2"},
    {"ScatterND", "3,1", -1, true, "3,3"},
    {"ScatterND", "2,2", -1, true, "2"},
};
std::vector<int64_t> dims_of(const std::string& text) {
  std::vector<int64_t> dims;
  for (char c : text) {
    if (c != ',') dims.push_back(c - '0');
  }
  return dims;
}

OnnxModel model_of(const Form& form, const std::string& data_dims, const std::optional<Tensor>& constant) {
  OnnxModel model;
  model.input("x", kFloat32, data_dims);
  if (constant) model.constant("indices", *constant);
  if (!constant) model.input("indices", kInt64, form.index_dims);
  if (form.scatters) model.input("updates", kFloat32, form.update_dims);
  onnx::NodeProto& node = model.node(form.op, form.scatters ? "x indices updates" : "x indices", "y");
  if (form.axis >= 0) set_int(node, "axis", form.axis);
  model.output("y");
  return model;
}
std::vector<Tensor> inputs_of(const Form& form, const std::optional<Tensor>& indices) {
  std::vector<Tensor> inputs = {numbers({kRows, kColumns})};
  if (indices) inputs.push_back(*indices);
  if (form.scatters) inputs.push_back(numbers(dims_of(form.update_dims)));
  return inputs;
}
std::string error_of(Session& session, const std::vector<Tensor>& inputs) {
  try {
    session.run(inputs);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}
std::string place_of(int64_t position, const std::vector<int64_t>& dims) {
  return dims.size() == 1 ? fmt::format("[{}]", position)
                          : fmt::format("[{}, {}]", position / dims[1], position % dims[1]);
}

int count_checks(const IRModule& module) {
  int count = 0;
  walk(module.graph_function("main")->body, [&](const Call& call) {
    if (const OpRef* op = call.callee.as<OpRef>()) count += op->name == "relax.check_indices";
  });
  return count;
}
int checks_of(const OnnxModel& model, OutOfRange gather = OutOfRange::kError) {
  CompileSettings settings;
  settings.passes = "check_dims";
  settings.gather = gather;
  return count_checks(run_pipeline(model.import(), settings));
}

}  // namespace

TEST_CASE("an index out of range is an error that names node, position, value and range", "[frontend]") {
  for (const Form& form : kForms) {
    std::vector<int64_t> dims = dims_of(form.index_dims);
    int64_t count = dims.size() == 1 ? dims[0] : dims[0] * dims[1];
    for (const char* data_dims : {"4,3", "n,m"}) {
      Session session = model_of(form, data_dims, std::nullopt).compile();
      for (int64_t position : {int64_t{0}, count - 1}) {
        int64_t size = form.size(position);
        for (int64_t value : {INT64_MIN, -size - 1, -size, int64_t{-1}, size - 1, size, INT64_MAX}) {
          Tensor indices = Tensor::of<int64_t>(dims, kInt64, std::vector<int64_t>(static_cast<size_t>(count), 0));
          indices.set_int(position, value);
          INFO(form.op << " axis " << form.axis << " of " << data_dims << ", index " << value);
          std::string error = error_of(session, inputs_of(form, indices));
          std::string wanted = fmt::format("node 'y' ({}): indices{} is {}, expected {} to {}", form.op,
                                           place_of(position, dims), value, -size, size - 1);
          bool is_bad = value < -size || value >= size;
          CHECK(error == (is_bad ? wanted : ""));
          if (data_dims[0] == 'n') continue;
          // As a constant the compiler says so.
          OnnxModel constant = model_of(form, data_dims, indices);
          std::string known = is_bad ? constant.error(inputs_of(form, std::nullopt)) : "";
          CHECK((!is_bad || known.find(wanted.substr(wanted.find("indices"))) != std::string::npos));
          if (!is_bad) CHECK(checks_of(constant) == 0);
        }
      }
    }
  }
}

TEST_CASE("gathers clamp where that is asked for", "[frontend]") {
  CompileSettings clamp;
  clamp.gather = OutOfRange::kClamp;
  for (const Form& form : kForms) {
    if (form.scatters) continue;
    INFO(form.op << " axis " << form.axis);
    std::vector<int64_t> dims = dims_of(form.index_dims);
    Tensor wild = Tensor::empty(dims, kInt64), near = Tensor::empty(dims, kInt64);
    for (int64_t i = 0; i < wild.size(); ++i) {
      wild.set_int(i, i % 2 ? 1000 : -1000);
      near.set_int(i, i % 2 ? form.size(i) - 1 : 0);
    }
    OnnxModel model = model_of(form, "n,m", std::nullopt);
    CHECK(checks_of(model) == 1);
    CHECK(checks_of(model, OutOfRange::kClamp) == 0);
    CHECK(
        same_tensor(model.compile(clamp).run(inputs_of(form, wild))[0], model.compile().run(inputs_of(form, near))[0]));
    CHECK(model_of(form, "4,3", wild).error(inputs_of(form, std::nullopt), clamp).empty());
  }
}

TEST_CASE("indices that are in range by what makes them are not tested", "[frontend]") {
  OnnxModel model;
  model.input("x", kFloat32, "n,3").input("i", kInt64, "k").input("b", DType::uint(8), "k");
  model.constant("table", numbers({300, 2})).constant("zero", Tensor::of<int64_t>({}, kInt64, {0}));
  model.constant("one", Tensor::of<int64_t>({}, kInt64, {1}));
  model.node("Shape", "x", "shape");
  model.node("Gather", "shape zero", "n");
  model.node("Range", "zero n one", "iota");
  model.node("Gather", "x iota", "same");
  set_int(model.node("ArgMax", "x", "best"), "axis", 0);
  model.node("Gather", "x best", "rows");
  model.output("same").output("rows");
  CHECK(checks_of(model) == 0);
  // The same indices of two tables of one size are tested once.
  model.node("Gather", "table i", "first");
  model.node("Neg", "table", "negative");
  model.node("Gather", "negative i", "second");
  model.output("first").output("second");
  CompileSettings simplify;
  simplify.passes = "simplify";
  CHECK(count_checks(run_pipeline(model.import(), simplify)) == 1);
}

TEST_CASE("a gather at computed constants is a constant", "[frontend]") {
  for (int64_t offset : {1, 2}) {
    OnnxModel model;
    model.input("x", kFloat32, "2").constant("table", numbers({4, 2})).constant("offset", int64s({offset}));
    model.constant("i", Tensor::of<int64_t>({2, 1}, kInt64, {0, 2}));
    model.node("Add", "i offset", "indices");
    model.node("Gather", "table indices", "rows");
    model.node("Add", "rows x", "y");
    model.output("y");
    if (offset == 2) {
      std::string error = model.error({numbers({2})});
      INFO(error);
      CHECK(error.find("node 'rows' (Gather): error: indices[1, 0] is 4, expected -4 to 3") != std::string::npos);
      continue;
    }
    CompileSettings simplify;
    simplify.passes = "simplify";
    IRModule module = run_pipeline(model.import(), simplify);
    CHECK(count_checks(module) == 0);
    int takes = 0;
    walk(module.graph_function("main")->body, [&](const Call& call) {
      if (const OpRef* op = call.callee.as<OpRef>()) takes += op->name == "relax.take";
    });
    CHECK(takes == 0);
  }
}

TEST_CASE("a gather stays one kernel with what follows it", "[frontend]") {
  OnnxModel model;
  model.input("table", kFloat32, "100,8").input("i", kInt64, "k");
  model.node("Gather", "table i", "rows");
  model.node("Relu", "rows", "y");
  model.output("y");
  CompileSettings kernels;
  kernels.passes = "simplify,kernels";
  IRModule module = run_pipeline(model.import(), kernels);
  int calls = 0;
  walk(module.graph_function("main")->body, [&](const Call& call) {
    if (const OpRef* op = call.callee.as<OpRef>()) calls += op->name == "relax.call_tir";
  });
  CHECK(calls == 1);
  CHECK(count_checks(module) == 1);
}

TEST_CASE("rows are written into caches from 0 on", "[frontend]") {
  OnnxModel scatter(24);
  scatter.input("cache", kFloat32, "2,1,4,3").input("rows", kFloat32, "2,1,1,3").input("at", kInt64, "2");
  scatter.node("TensorScatter", "cache rows at", "y");
  scatter.output("y");
  const Tensor cache = numbers({2, 1, 4, 3}), rows = numbers({2, 1, 1, 3});
  CHECK(scatter.error({cache, rows, int64s({3, 0})}).empty());
  CHECK(scatter.error({cache, rows, int64s({0, -1})}).find("write_indices below 0: found -1, expected at least 0") !=
        std::string::npos);
  CHECK(scatter.error({cache, rows, int64s({0, 4})}).find("is 4, expected") != std::string::npos);

  OnnxModel attention;
  attention.proto().add_opset_import()->set_domain("com.microsoft");
  attention.proto().mutable_opset_import()->rbegin()->set_version(1);
  for (const char* name : {"q", "k", "v"}) attention.input(name, kFloat32, "2,1,8");
  for (const char* name : {"past_k", "past_v"}) attention.input(name, kFloat32, "2,1,4,8");
  attention.input("lengths", DType::int_(32), "2").input("total", DType::int_(32), "");
  onnx::NodeProto& node =
      attention.node("GroupQueryAttention", "q k v past_k past_v lengths total", "y present_k present_v");
  node.set_domain("com.microsoft");
  set_int(set_int(node, "num_heads", 1), "kv_num_heads", 1);
  attention.output("y");
  auto error = [&](const std::vector<int32_t>& lengths) {
    std::vector<Tensor> inputs = {numbers({2, 1, 8}), numbers({2, 1, 8}), numbers({2, 1, 8}), numbers({2, 1, 4, 8}),
                                  numbers({2, 1, 4, 8})};
    inputs.push_back(Tensor::of<int32_t>({2}, DType::int_(32), lengths));
    inputs.push_back(Tensor::of<int32_t>({}, DType::int_(32), {4}));
    return attention.error(inputs);
  };
  CHECK(error({3, 0}).empty());
  CHECK(error({3, -1}).find("seqlens_k below 0: found -1, expected at least 0") != std::string::npos);
}

}  // namespace relaxc::test
