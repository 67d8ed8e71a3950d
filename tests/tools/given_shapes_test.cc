// relaxc run of models that leave types open: the inputs tell them. Dims under the names that the model gives them.
#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "vm/npy.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::OnnxModel;

namespace {

test::Outcome relaxc_with(std::vector<std::string> words) {
  words.insert(words.begin(), RELAXC_TOOL);
  return test::run_program(words, 120);
}

}  // namespace

TEST_CASE("a run takes what the model leaves open from its inputs", "[tools]") {
  test::Folder folder("given_shapes");
  OnnxModel model(18);
  model.input("x", kFloat32, "n").input("shape", kInt64, "k").node("Reshape", "x shape", "y");
  model.output("y");
  model.proto().mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  std::string file = folder.write("model.onnx", model.proto().SerializeAsString());
  test::Outcome run = relaxc_with({"run", file, "--input", "x=[[1, 2, 3], [4, 5, 6]]", "shape=[3, 2]"});
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK(contains(run.out, "y: float32[3, 2]"));
  CHECK(contains(run.err, "note: this run is compiled for the shapes of its inputs; for all shapes: "));
  CHECK(contains(run.err, "graph input 'x': unsupported: the model does not declare its rank"));
  CHECK(relaxc_with({"run", file}).exit_code == 3);
  CHECK(relaxc_with({"compile", file, "--emit=graph"}).exit_code == 3);
  test::Outcome bench = relaxc_with({"bench", file, "--runs", "3", "--input", "x=[1, 2]", "shape=[2, 1]"});
  INFO(bench.out << bench.err);
  CHECK(bench.exit_code == 0);
  std::string artifact = folder.at("model.so");
  test::Outcome compiled =
      relaxc_with({"compile", file, "-o", artifact, "--type", "x=float32[n, m]", "--type", "shape=int64[1]"});
  INFO(compiled.out << compiled.err);
  CHECK(compiled.exit_code == 0);
  CHECK(contains(relaxc_with({"run", artifact, "--input", "x=[[1, 2]]", "shape=[2]"}).out, "y: float32[2]"));
  for (const char* command : {"inspect", "explain", "opt"}) {
    test::Outcome other = relaxc_with({command, file, "--type", "x=float32[n, m]", "--type", "shape=int64[1]"});
    INFO(other.out << other.err);
    CHECK(other.exit_code == 0);
    CHECK(!contains(other.out, "problems"));
  }
}

TEST_CASE("the values of dim are shapes of inputs, too", "[tools]") {
  test::Folder folder("given_shapes");
  OnnxModel model(18);
  model.input("x", kFloat32, "n").input("s", kInt64, "k").node("Reshape", "x s", "y");
  model.output("y");
  std::string file = folder.write("model.onnx", model.proto().SerializeAsString());
  for (const char* command : {"run", "bench"}) {
    std::vector<std::string> words = {command, file, "--dim", "n=1", "k=3", "--input", "s=[1, 1, 1]"};
    if (words[0] == "bench") words.insert(words.end(), {"--runs", "3"});
    test::Outcome outcome = relaxc_with(words);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.err, "note: this run is compiled for the shapes of its inputs; for all shapes: "));
  }
  test::Outcome wrong = relaxc_with({"run", file, "--dim", "n=1", "m=3"});
  CHECK(wrong.exit_code != 0);
}

TEST_CASE("a size of --dim that the only input does not have is no open shape", "[tools]") {
  test::Folder folder("given_shapes");
  OnnxModel model(18);
  model.input("x", kFloat32, "batch,2").node("Relu", "x", "y");
  model.output("y");
  const std::string file = folder.write("model.onnx", model.proto().SerializeAsString());
  write_npy(folder.at("x.npy"), Tensor::of<float>({3, 2}, kFloat32, {1, 2, 3, 4, 5, 6}));
  for (const char* command : {"run", "bench"}) {
    const test::Outcome outcome = relaxc_with({command, file, "--input", folder.at("x.npy"), "--dim", "batch=4"});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(contains(outcome.err, "error: --dim batch=4 contradicts an input that is given: dim 0 of input 'x' is 3"));
    CHECK(!contains(outcome.err, "note:"));
  }
}

TEST_CASE("one artifact stretches dims that are 1 in its inputs", "[tools]") {
  test::Folder folder("given_shapes");
  OnnxModel model(18);
  model.input("x", kFloat32, "a,b").input("y", kFloat32, "c,b").node("Add", "x y", "z");
  model.output("z");
  std::string file = folder.write("model.onnx", model.proto().SerializeAsString());
  test::Outcome run = relaxc_with({"run", file, "--input", "x=[[1, 2], [3, 4]]", "y=[[1, 1]]"});
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK(contains(run.out, "[2, 3, 4, 5]"));
  CHECK(!contains(run.err, "note: this run"));
  std::string artifact = folder.at("model.so");
  CHECK(relaxc_with({"compile", file, "-o", artifact}).exit_code == 0);
  CHECK(contains(relaxc_with({"run", artifact, "--input", "x=[[1, 2]]", "y=[[1, 1], [3, 4]]"}).out, "[2, 3, 4, 6]"));
  CHECK(contains(relaxc_with({"run", artifact, "--input", "x=[[1], [2]]", "y=[[1], [3]]"}).out, "[2, 5]"));
  write_npy(folder.at("y.npy"), Tensor::of<float>({1, 2}, kFloat32, {1, 1}));
  test::Outcome bound =
      relaxc_with({"run", file, "--bind", "y=" + folder.at("y.npy"), "--input", "x=[[1, 2], [3, 4]]"});
  INFO(bound.out << bound.err);
  CHECK(contains(bound.out, "[2, 3, 4, 5]"));
  // Dims of which neither is 1 stay an error.
  test::Outcome wrong = relaxc_with({"run", file, "--input", "x=[[1, 2], [3, 4]]", "y=[[1, 1], [1, 1], [1, 1]]"});
  CHECK(wrong.exit_code == 1);
  CHECK(contains(wrong.err, "node 'z' (Add): shapes do not broadcast: 2 and 3 (a and c)"));
  CHECK(!contains(wrong.err, "note: this run"));
}

TEST_CASE("an input with a default is a constant, or an input where it is given", "[tools]") {
  test::Folder folder("default_inputs");
  OnnxModel model(18);
  model.input("x", kFloat32, "n").input("w", kFloat32, "2").node("Mul", "x w", "y");
  model.output("y");
  model.constant("w", Tensor::of<float>({2}, kFloat32, {3, 4}));
  std::string file = folder.write("model.onnx", model.proto().SerializeAsString());
  CHECK(contains(relaxc_with({"run", file, "--input", "x=[1, 1]"}).out, "[3, 4]"));
  test::Outcome run = relaxc_with({"run", file, "--input", "x=[1, 1]", "w=[5, 6]"});
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK(contains(run.out, "[5, 6]"));
  CHECK(run.err.empty());  // it is compiled for all shapes of the other inputs
  std::string artifact = folder.at("model.so");
  CHECK(relaxc_with({"compile", file, "-o", artifact, "--type", "w=float32[2]"}).exit_code == 0);
  CHECK(contains(relaxc_with({"run", artifact, "--input", "x=[1, 1]", "w=[7, 8]"}).out, "[7, 8]"));
}

TEST_CASE("kernels do not count the rows of tensors without elements", "[tools]") {
  test::Folder folder("given_shapes_nothing");
  const std::string model = folder.write("m.py", R"(
@R.function
def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("n", "k"), "float32")):
    with R.dataflow():
        joined = R.concat((x, y), axis=1)
        turned = R.nn.softmax(R.permute_dims(joined))
        total = R.sum(turned)
        R.output(joined, turned, total)
    return (joined, turned, total)
)");
  const Outcome run = relaxc_with({"run", model, "--dim", "n=1000000000000", "m=0", "k=0"});
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("output_0: float32[1000000000000, 0]") != std::string::npos);
}

TEST_CASE("names of inputs and dims may contain '='", "[tools]") {
  test::Folder folder("given_shapes");
  OnnxModel model(18);
  model.input("x=1", kFloat32, "n").input("x", kFloat32, "n").node("Sub", "x=1 x", "z");
  model.output("z");
  for (int i : {0, 1}) {
    auto* shape = model.proto().mutable_graph()->mutable_input(i)->mutable_type()->mutable_tensor_type();
    shape->mutable_shape()->mutable_dim(0)->set_dim_param("n=m");
  }
  std::string file = folder.write("model.onnx", model.proto().SerializeAsString());
  test::Outcome run = relaxc_with({"run", file, "--input", "x=1=[5, 7]", "x=[1, 2]"});
  INFO(run.out << run.err);
  CHECK(contains(run.out, "[4, 5]"));
  CHECK(contains(relaxc_with({"run", file, "--dim", "n=m=3"}).out, "z: float32[3]"));
  CHECK(contains(relaxc_with({"run", file, "--type", "x=1=float32[4]"}).out, "z: float32[4]"));
}

TEST_CASE("dims have the names that the model gives them", "[tools]") {
  test::Folder folder("given_shapes");
  OnnxModel model(18);
  model.input("x", kFloat32, "a,b").input("y", kFloat32, "b");
  test::set_int(model.node("Concat", "x x", "z"), "axis", 0), model.node("Relu", "y", "r");
  model.output("z").output("r");
  auto dims = [&](int i) {
    return model.proto().mutable_graph()->mutable_input(i)->mutable_type()->mutable_tensor_type()->mutable_shape();
  };
  dims(0)->mutable_dim(0)->set_dim_param("batch size");
  dims(0)->mutable_dim(1)->set_dim_param("it's.y");
  dims(1)->mutable_dim(0)->set_dim_param("lambda");
  std::string file = folder.write("model.onnx", model.proto().SerializeAsString()), artifact = folder.at("model.so");
  CHECK(relaxc_with({"compile", file, "-o", artifact}).exit_code == 0);
  for (const std::string& program : {file, artifact}) {
    test::Outcome run = relaxc_with({"run", program, "--dim", "batch size=3", "it's.y=2", "lambda=4"});
    INFO(run.out << run.err);
    CHECK(run.exit_code == 0);
    CHECK(contains(run.out, "z: float32[6, 2]"));
    CHECK(contains(run.out, "r: float32[4]"));
    test::Outcome unknown = relaxc_with({"run", program, "--dim", "batch=3"});
    CHECK(unknown.exit_code == 2);
    CHECK(contains(unknown.err, "no input has a dim 'batch'; the inputs are x: float32['batch size', 'it"));
  }
  CHECK(contains(relaxc_with({"inspect", artifact}).out, "z: float32['batch size' * 2, 'it"));
  CHECK(contains(relaxc_with({"compile", file, "--emit=graph", "--dim", "batch size=3"}).out, "R.Tensor((6, "));
}
