// The pages of relaxc view, bench --html and compare --html without a browser: their data, and that nothing in them is
// loaded from elsewhere or escapes from its place.
#include <algorithm>

#include "support/printable.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"
#include "tests/tools/pages.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains, test::data_of_page, test::entries_at, test::list_at, test::PageFolder, test::run_relaxc;

namespace {

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// A page is one file: its policy forbids the browser to load anything, and each script ends where it should.
void check_is_closed(const std::string& page, size_t scripts) {
  CHECK(contains(page, "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"));
  CHECK(count_of(page, "<script") == scripts + 2);  // and two of data
  CHECK(count_of(page, "</script") == scripts + 2);
  for (const char* loader : {"<link", "<img", "<iframe", " src=", "@import", "url("}) {
    INFO(loader);
    CHECK(!contains(page.substr(0, page.find("<script>\n// https://d3js.org")), loader));
  }
  CHECK(contains(page, "Redistribution and use in source and binary forms"));  // D3's licence
  CHECK(!contains(page, "\x01"));
}

// Returns the node of this name in the first function of the data.
const Attrs& node_of(const Attrs& data, const std::string& name) {
  const Attrs& function = *list_at(data, "functions").front().as<Attrs>();
  for (const AttrValue& node : list_at(function, "nodes")) {
    if (node.as<Attrs>()->get_string("name", "") == name) return *node.as<Attrs>();
  }
  FAIL("no node " << name);
  return data;
}

std::vector<std::string> bench_words(const PageFolder& folder, std::vector<std::string> more) {
  std::vector<std::string> words = {"bench", folder.hostile_model(), "--dim", "n=7", "--runs", "3", "--threads", "2"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Tensors that live at the same time lie apart, and inside of the arena.
void check_plan(const Attrs& memory) {
  struct Planned {
    int64_t offset, end, first, last;
  };
  std::vector<Planned> planned;
  for (const AttrValue& value : list_at(memory, "tensors")) {
    const Attrs& tensor = *value.as<Attrs>();
    if (tensor.get_string("place", "") != "arena") continue;
    const int64_t offset = tensor.get_int("offset", -1), end = offset + tensor.get_int("bytes", -1);
    CHECK(offset >= 0);
    CHECK(end <= memory.get_int("arena_bytes", -1));
    planned.push_back({offset, end, tensor.get_int("first", -1), tensor.get_int("last", -1)});
  }
  for (size_t i = 0; i < planned.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const bool live_at_once = planned[i].first <= planned[j].last && planned[j].first <= planned[i].last;
      const bool overlap = planned[i].offset < planned[j].end && planned[j].offset < planned[i].end;
      CHECK_FALSE((live_at_once && overlap));
    }
  }
}

}  // namespace

TEST_CASE("the page of a model has its kernels as groups of operators, and their texts", "[tools]") {
  PageFolder folder;
  const std::string page = folder.made("model.html", {"view", folder.hostile_model(), "-o", folder.at("model.html")});
  check_is_closed(page, 7);
  const Attrs data = data_of_page(page);
  const Attrs& kernel = node_of(data, "fused_matmul_add_relu");
  std::vector<std::string> operators, places;
  for (const AttrValue& op : list_at(kernel, "operators")) {
    operators.push_back(op.as<Attrs>()->get_string("name", ""));
    places.push_back(op.as<Attrs>()->get_string("place", ""));
    CHECK(op.as<Attrs>()->get_string("type", "") == "float32[n, 40]");
  }
  CHECK(operators == std::vector<std::string>{"matmul", "add", "nn.relu"});
  CHECK(places == std::vector<std::string>{printable(test::kHostileName), "/layer/Add", "/layer/Relu"});
  CHECK(list_at(kernel, "weights").size() == 2);
  CHECK(list_at(kernel, "inputs").size() == 1);
  CHECK(list_at(node_of(data, "softmax"), "operators").size() == 1);
  CHECK(node_of(data, "x").get_string("kind", "") == "input");
  CHECK(node_of(data, "y").get_string("kind", "") == "result");  // the model's name
  const Attrs texts = test::texts_of_page(page);
  const Attrs& of_kernel = entries_at(texts, "fused_matmul_add_relu");
  CHECK(of_kernel.get_string("TensorIR", "").starts_with("@T.prim_func"));
  CHECK(of_kernel.get_string("scheduled", "") != of_kernel.get_string("TensorIR", ""));
  CHECK(contains(of_kernel.get_string("loops", ""), "fused_matmul_add_relu"));
  CHECK(contains(of_kernel.get_string("assembly", ""), "relaxc_k_fused_matmul_add_relu"));
}

TEST_CASE("the page of an artifact says what it lacks, and shows the calls", "[tools]") {
  PageFolder folder;
  folder.made("model.so", {"compile", folder.hostile_model(), "-o", folder.at("model.so")});
  const std::string page = folder.made("so.html", {"view", folder.at("model.so"), "-o", folder.at("so.html")});
  check_is_closed(page, 7);
  const Attrs data = data_of_page(page);
  CHECK(contains(*list_at(data, "notes").front().as<std::string>(), "an artifact holds bytecode and machine code"));
  const Attrs& kernel = node_of(data, "fused_matmul_add_relu");
  CHECK(contains(kernel.get_string("place", ""), "/layer/Relu"));
  CHECK(list_at(kernel, "weights").size() == 2);
  CHECK(list_at(node_of(data, "softmax"), "inputs").size() == 1);
  CHECK(list_at(node_of(data, "y"), "inputs").size() == 1);
  CHECK(contains(entries_at(test::texts_of_page(page), "main").get_string("bytecode", ""), "call_kernel"));
}

TEST_CASE("the page of a profile has kernels and a plan of the arena in which nothing overlaps", "[tools]") {
  PageFolder folder;
  const std::string page = folder.made("profile.html", bench_words(folder, {"--html", folder.at("profile.html")}));
  check_is_closed(page, 7);
  const Attrs figures = entries_at(data_of_page(page), "figures");
  CHECK(list_at(entries_at(figures, "profile"), "kernels").size() == 2);
  const Attrs& memory = entries_at(figures, "memory");
  const AttrList& calls = list_at(memory, "calls");
  REQUIRE(calls.size() == 2);
  for (const AttrValue& call : calls) CHECK(call.as<Attrs>()->has("start_us"));
  const AttrList& tensors = list_at(memory, "tensors");
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].as<Attrs>()->get_string("place", "") == "arena");
  CHECK(tensors[0].as<Attrs>()->get_int("bytes", 0) == 7 * 40 * 4);
  CHECK(tensors[0].as<Attrs>()->get_string("type", "") == "float32[7, 40]");
  CHECK(tensors[1].as<Attrs>()->get_string("place", "") == "result");
  CHECK(memory.get_int("weights_bytes", 0) >= (24 * 40 + 40) * 4);
  check_plan(memory);
}

TEST_CASE("the plan of a longer network is sound, with symbolic dims and branches of tensors", "[tools]") {
  PageFolder folder;
  std::string body;
  for (int i = 0; i < 12; ++i)
    body += fmt::format(
        "            h{0} = R.nn.softmax(R.add(h{1}, h{1}))\n            g{0} = R.add(R.matmul(h{0}, w), h{2})\n",
        i + 1, i, std::max(0, i - 2));
  const std::string text = folder.write("deep.py", fmt::format(R"(@I.ir_module
class Module:
    @R.function
    def main(h0: R.Tensor(("n", 32), "float32"), w: R.Tensor((32, 32), "float32")):
        with R.dataflow():
{}            y = R.add(g12, R.add(g6, g1))
            R.output(y)
        return y
)",
                                                               body));
  const std::vector<std::string> words = {
      "bench", text, "--dim", "n=33", "--runs", "3", "--json", folder.at("f.json"), "--profile"};
  const std::string json = folder.made("f.json", words);
  const std::string page = "<script type=\"application/json\" id=\"data\">" + json + "</script>";
  const Attrs memory = entries_at(data_of_page(page), "memory");
  CHECK(list_at(memory, "tensors").size() > 12);
  CHECK(memory.get_int("arena_bytes", 0) < 12 * 33 * 32 * 4);  // memory is shared
  check_plan(memory);
}

TEST_CASE("compare joins kernels by the nodes that they compute, however they are fused", "[tools]") {
  PageFolder folder;
  auto kernel = [](const char* name, const char* nodes, int us) {
    return fmt::format(
        R"({{"kernel": "{}", "nodes": "{}", "calls_per_run": 2, "median_us": {}, "mean_us": {}, "limit_us": 1.5}})",
        name, nodes, us, 7 * us);
  };
  auto figures = [&](const std::string& kernels, int threads) {
    return fmt::format(R"({{"median_ms": 0.5, "threads": {}, "profile": {{"limit_ms": 0.1, "kernels": [{}]}}}})",
                       threads, kernels);
  };
  const std::string a =
      folder.write("a.json", figures(kernel("fused", "/Conv, /Relu", 30) + "," + kernel("pool", "/Pool", 5), 2));
  const std::string b = folder.write(
      "b.json",
      figures(kernel("conv", "/Conv", 10) + "," + kernel("relu", "/Relu", 2) + "," + kernel("pool_1", "/Pool", 5), 1));
  const test::Outcome outcome = run_relaxc({"compare", a, b, "--html", folder.at("pair.html")});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(!test::matches(outcome.out, "60\\.00 +24\\.00 +-36\\.00 +0\\.40 +/Conv, /Relu: fused \\| conv \\+ relu\n")
             .empty());
  CHECK(!test::matches(outcome.out, "10\\.00 +10\\.00 +\\+0\\.00 +1\\.00 +/Pool: pool \\| pool_1\n").empty());
  CHECK(contains(outcome.out, "the threads differ: 2 and 1"));
  CHECK(contains(outcome.out, "times A's: measured apart, so that a small difference may be chance"));
  const std::string page = folder.read("pair.html");
  check_is_closed(page, 4);
  CHECK(list_at(data_of_page(page), "rows").size() == 2);
}

TEST_CASE("compare runs two models in turn and profiles them", "[tools]") {
  PageFolder folder;
  const std::string model = folder.hostile_model();
  folder.made("model.so", {"compile", model, "-o", folder.at("model.so")});
  const test::Outcome outcome =
      run_relaxc({"compare", model, folder.at("model.so"), "--dim", "n=7", "--runs", "3", "--threads", "1"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "/layer/Softmax: softmax\n"));
  CHECK(contains(outcome.out, "/layer/Add, /layer/Relu: fused_matmul_add_relu\n"));
  CHECK(!contains(outcome.out, "differ:"));
  CHECK(contains(outcome.out, "times A's: no clear difference, as there are only 3 pairs of runs; "));
  const test::Outcome longer =
      run_relaxc({"compare", model, folder.at("model.so"), "--dim", "n=7", "--runs", "30", "--threads", "1"});
  INFO(longer.out << longer.err);
  CHECK(!test::matches(longer.out,
                       "times A's: (faster|slower|no clear difference, as half of the ratios of neighbouring runs are "
                       "[0-9.]+ to [0-9.]+) \\(30 pairs of runs\\)\n")
             .empty());
}

TEST_CASE("compare says that two profiles have no node in common", "[tools]") {
  PageFolder folder;
  auto profile = [&](const char* name) {
    return folder.write(fmt::format("{}.json", name), fmt::format(R"({{"median_ms": 1, "profile": {{"kernels": [
      {{"kernel": "k_{0}", "nodes": "/{0}", "calls_per_run": 1, "mean_us": 5}}]}}}})",
                                                                  name));
  };
  const std::string a = profile("a"), b = profile("b");
  const std::string page = folder.at("differ.html");
  CHECK(contains(run_relaxc({"compare", a, b, "--html", page}).out, "these are different models, "));
  CHECK(contains(folder.read("differ.html"), "these are different models, "));
  CHECK(!contains(run_relaxc({"compare", a, a}).err, "different models"));
}

TEST_CASE("compare says what it expects of files that hold no profile", "[tools]") {
  PageFolder folder;
  const std::string good = folder.write("good.json", R"({"median_ms": 1, "profile": {"kernels": []}})");
  for (const char* wrong :
       {"", "{", "[1, 2]", R"({"median_ms": 1})", R"({"profile": {"kernels": 3}})", R"({"profile": {"kernels": [7]}})",
        "\x7f"
        "ELF"}) {
    const std::string bad = folder.write("bad.json", wrong);
    const test::Outcome outcome = run_relaxc({"compare", good, bad});
    INFO(wrong << "\n" << outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(contains(outcome.err, "bad.json"));
    CHECK(contains(outcome.err, "relaxc bench MODEL --profile --json FILE"));
  }
  CHECK(run_relaxc({"compare", good, folder.at("missing.json")}).exit_code == 1);
  CHECK(run_relaxc({"compare", good, folder.hostile_model()}).exit_code == 2);
  CHECK(run_relaxc({"compare", good, good, "--html", good}).exit_code == 2);
  CHECK(run_relaxc({"compare", good, good}).exit_code == 0);
}

TEST_CASE("pages do not replace what they are made of", "[tools]") {
  PageFolder folder;
  const std::string model = folder.hostile_model(), before = folder.read("model.onnx");
  CHECK(run_relaxc({"view", model, "-o", model}).exit_code == 2);
  CHECK(run_relaxc(bench_words(folder, {"--html", model})).exit_code == 2);
  CHECK(run_relaxc(bench_words(folder, {"--html", "-", "--json", "-"})).exit_code == 2);
  CHECK(folder.read("model.onnx") == before);
  const test::Outcome passes = run_relaxc({"view", model, "--passes", "simplify", "-o", folder.at("x.html")});
  CHECK(passes.exit_code == 1);
  CHECK(contains(passes.err, "leave out --passes"));
}
