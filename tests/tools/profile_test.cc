// Profiles of relaxc bench: the work of kernels, the machine's limits, and traces.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/folder.h"
#include "tests/patterns.h"
#include "tests/process.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;

namespace {

struct Profiles : test::Folder {
  Profiles() : Folder("profiles") { setenv("XDG_CACHE_HOME", at("cache").c_str(), 1); }
  ~Profiles() { unsetenv("XDG_CACHE_HOME"); }
  Profiles(const Profiles&) = delete;
  Profiles& operator=(const Profiles&) = delete;

  // A product of symbolic rows, and rows that it gathers of a long table.
  std::string model() const {
    return write("model.py", R"(@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 24), "float32"), w: R.Tensor((24, 40), "float32"), table: R.Tensor((5000, 40), "float32"), i: R.Tensor(("n",), "int64")):
        with R.dataflow():
            y = R.add(R.matmul(x, w), R.take(table, i, axis=0))
            R.output(y)
        return y
)");
  }
  std::string bench(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {RELAXC_TOOL, "bench", model(), "--dim", "n=7", "--runs", "3", "--threads", "2"});
    test::Outcome outcome = test::run_program(flags, 300);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return outcome.out;
  }
};

// Returns the number behind the key, the sum over all places where it stands.
double sum_of(const std::string& json, const std::string& key) {
  const std::string text = "\"" + key + "\": ";
  double sum = 0;
  for (size_t at = json.find(text); at != std::string::npos; at = json.find(text, at + 1))
    sum += std::strtod(json.c_str() + at + text.size(), nullptr);
  return sum;
}

}  // namespace

TEST_CASE("a profile knows the work of kernels and the limit of the machine", "[tools]") {
  Profiles folder;
  const std::string json = folder.bench({"--profile", "--json", "-"});
  INFO(json);
  const double outputs = 7 * 40, table_rows = 7 * 40;
  CHECK(sum_of(json, "operations") == outputs * (2 * 24 + 1));
  // The weight, the image, the chosen rows of the table alone, their indices and results; what lies between kernels
  // is counted where it is stored and loaded.
  const double least = (24 * 40 + 7 * 24 + table_rows + outputs) * 4 + 7 * 8;
  CHECK(sum_of(json, "bytes") >= least);
  CHECK(sum_of(json, "bytes") <= least + 2 * 2 * outputs * 4);
  CHECK(sum_of(json, "peak_gflops") > 0.1);
  CHECK(sum_of(json, "limit_ms") > 0);
  CHECK(sum_of(json, "limit_ms") * 1000 < sum_of(json, "mean_us"));
  // The next one takes the larger figures of the two.
  CHECK(sum_of(folder.bench({"--profile", "--json", "-"}), "peak_gflops") >= sum_of(json, "peak_gflops"));
}

TEST_CASE("a run in which the system takes the processor away makes no kernel slow", "[tools]") {
  Profiles folder;
  // Of the ten runs of a profile, one or two sleep.
  const std::string code = folder.write("sleeps.c", R"(#include <relaxc/kernel_abi.h>
#include <unistd.h>
int32_t sleeps(const relaxc_kernel_args* args) {
  static int calls = 0;
  if (++calls % 6 == 0) usleep(20000);
  ((float*)args->data[1])[0] = ((const float*)args->data[0])[0];
  return 0;
}
)");
  const std::string object = folder.at("sleeps.o");
  REQUIRE(test::run_program({"/usr/bin/cc", "-O2", "-fPIC", "-c", "-I", RELAXC_BINARY_DIR "/public", "-I",
                             RELAXC_SOURCE_DIR, code, "-o", object},
                            60)
              .exit_code == 0);
  const std::string module = folder.write("sleeps.py", R"(
@R.function
def main(x: R.Tensor((1,), "float32")):
    y = R.call_dps_packed("sleeps", (x,), out_sinfo=R.Tensor((1,), "float32"))
    return y
)");
  const test::Outcome outcome = test::run_program({RELAXC_TOOL, "bench", module, "--link", object, "--runs", "1",
                                                   "--threads", "1", "--profile", "--json", folder.at("f.json")},
                                                  300);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "calls  median us   share"));
  std::ifstream file(folder.at("f.json"));
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  INFO(json);
  CHECK(sum_of(json, "mean_us") > 2000);
  CHECK(sum_of(json, "median_us") < 1000);
  CHECK(sum_of(json, "least_us") <= sum_of(json, "median_us"));
}

TEST_CASE("a profile for people names rule, types and bound", "[tools]") {
  Profiles folder;
  const std::string text = folder.bench({"--profile"});
  INFO(text);
  CHECK(contains(text, "of limit"));
  CHECK(contains(text, "float32[7, 24], float32[24, 40]"));
  CHECK(contains(text, "the machine's limit is"));
}

TEST_CASE("the limit of a kernel is that of the numbers it multiplies", "[tools]") {
  Profiles folder;
  auto model = [&](const std::string& name, const std::string& x, const std::string& product) {
    return folder.write(name, fmt::format(R"(@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((64, 64), "{}"), w: R.Tensor((64, 64), "int8")):
        with R.dataflow():
            y = {}
            R.output(y)
        return y
)",
                                          x, product));
  };
  auto profile = [&](const std::string& file) {
    test::Outcome outcome = test::run_program(
        {RELAXC_TOOL, "bench", file, "--runs", "3", "--threads", "1", "--profile", "--json", "-"}, 300);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return outcome.out;
  };
  const std::string bytes = profile(model("bytes.py", "uint8", "R.matmul(x, w, out_dtype=\"int32\")"));
  INFO(bytes);
  CHECK(contains(bytes, "\"products\": \"int8\""));
  CHECK(sum_of(bytes, "int8") > 0.1);
  CHECK(sum_of(bytes, "float32") == sum_of(bytes, "peak_gflops"));
  // A narrow weight alone becomes float32.
  const std::string weight = profile(model("weight.py", "float32", "R.matmul(x, R.astype(w, \"float32\"))"));
  INFO(weight);
  CHECK(contains(weight, "\"products\": \"float32\""));
  CHECK(!contains(weight, "\"products\": \"int8\""));
}

TEST_CASE("kept limits of another machine do not count", "[tools]") {
  Profiles folder;
  folder.bench({"--profile"});
  for (const auto& entry : std::filesystem::directory_iterator(folder.at("cache/relaxc")))
    std::ofstream(entry.path()) << "1e30\n1e30\n1e30\n1e30\n1e30\n1e30\n";
  CHECK(sum_of(folder.bench({"--profile", "--json", "-"}), "peak_gflops") < 1e6);
}

TEST_CASE("a trace has the kernels and the work of each thread", "[tools]") {
  Profiles folder;
  folder.bench({"--trace", folder.at("trace.json")});
  std::ifstream file(folder.at("trace.json"));
  std::stringstream trace;
  trace << file.rdbuf();
  CHECK(trace.str().starts_with("{\"traceEvents\": ["));
  CHECK(contains(trace.str(), "\"name\": \"thread 1\""));
  CHECK(contains(trace.str(), "matmul"));
}
