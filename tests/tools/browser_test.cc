// The pages in a browser: their scripts run without an error, draw what the data say, and stand hostile names.
#include <fmt/format.h>

#include <filesystem>

#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"
#include "tests/report.h"
#include "tests/tools/pages.h"
#include "vm/npy.h"

#include "tests/catch.h"  // last

using namespace relaxc;
namespace fs = std::filesystem;
using test::contains, test::opened_page, test::PageFolder;

namespace {

bool has_browser() {
  if (!test::browser().empty()) return true;
  test::skip("it opens pages in a browser: apt-get install chromium (Debian)");
  return false;
}

// Returns a line of the page that screen readers tell when it changes.
std::string status_line(const std::string& text) { return " role=\"status\">" + text + "<"; }

void check_is_ready(const std::string& page) {
  CHECK(contains(page, "data-ready=\""));
  CHECK(!contains(page, "<div id=\"failure\""));
  CHECK(!contains(page, "<title>taken</title>"));
  CHECK(test::matches(page, "<(?:path|text|rect|circle|line|g) [^<>]*NaN").empty());
}

}  // namespace

TEST_CASE("a browser finds one node of 6,000", "[tools]") {
  if (!has_browser()) return;
  PageFolder folder;
  test::OnnxModel model;
  model.input("v0", kFloat32, "n").output("v6000");
  for (int i = 0; i < 6000; ++i)
    model.node("Softmax", fmt::format("v{}", i), fmt::format("v{}", i + 1))
        .set_name(fmt::format("/block{}/{}", i / 60, i));
  const std::string file = folder.write("model.onnx", model.proto().SerializeAsString());
  folder.made("model.html", {"view", file, "-o", folder.at("model.html")});
  const std::string page = opened_page(folder, folder.at("model.html") + "#search=/block75/4503");
  check_is_ready(page);
  CHECK(contains(page, status_line("1 of 6,002 nodes: ↓ ↑ and Enter go there")));
}

TEST_CASE("a browser draws the graph, finds nodes and shows the texts of a kernel", "[tools]") {
  if (!has_browser()) return;
  PageFolder folder;
  folder.made("model.html", {"view", folder.hostile_model(), "-o", folder.at("model.html")});
  const std::string page =
      opened_page(folder, folder.at("model.html") + "#kernel=fused_matmul_add_relu&tab=loops&search=relu%20/layer/Add");
  check_is_ready(page);
  CHECK(contains(page, "a kernel of 3 operators"));
  CHECK(contains(page, status_line("1 of 4 nodes: ↓ ↑ and Enter go there")));  // an input, two kernels, a result
  CHECK(contains(page, "4 operators, 2 kernel calls"));
  CHECK(contains(page, "&lt;/script&gt;&lt;script&gt;document.title="));
  CHECK(!test::matches(page, "<pre class=\"code\"[^>]*>fused_matmul_add_relu\\(").empty());
  CHECK(!test::matches(page, "aria-selected=\"true\">loops</button>").empty());
}

TEST_CASE("the graph is seen on its canvas", "[tools]") {
  if (!has_browser() || !fs::exists(RELAXC_BINARY_DIR "/librelaxc_images.so")) return;
  PageFolder folder;
  folder.made("model.html", {"view", folder.hostile_model(), "-o", folder.at("model.html")});
  // Counts the pixels beside outline, head and buttons that are rather blue than red, as products are.
  const std::string count = folder.write("count.py", R"(
@R.function
def main(x: R.Tensor((1, 3, 800, 1280), "float32")):
    red = R.strided_slice(x, axes=[1, 2, 3], begin=[0, 80, 320], end=[1, 700, 1240])
    blue = R.strided_slice(x, axes=[1, 2, 3], begin=[2, 80, 320], end=[3, 700, 1240])
    return R.sum(R.astype(R.greater(R.subtract(blue, red), R.const(0.08, "float32")), "float32"))
)");
  auto blue_pixels = [&](const std::string& page) {
    test::show_page(folder, folder.at(page), folder.at("page.png"));
    const test::Outcome run =
        test::run_relaxc({"run", count, "--input", "x=" + folder.at("page.png"), "--output-dir", folder.at("counted")});
    INFO(run.out << run.err);
    REQUIRE(run.exit_code == 0);
    return read_npy(folder.at("counted/output_0.npy")).as_double(0);
  };
  CHECK(blue_pixels("model.html") > 500);
  folder.write("empty.html", "<html><body>nothing</body></html>");
  CHECK(blue_pixels("empty.html") == 0);
}

TEST_CASE("a browser draws the profile of a model without arithmetic", "[tools]") {
  if (!has_browser()) return;
  PageFolder folder;
  const std::string copy =
      folder.write("copy.py", "@R.function\ndef main(x: R.Tensor((4, 6), 'float32')):\n    return R.permute_dims(x)\n");
  folder.made("copy.html", {"bench", copy, "--runs", "3", "--profile", "--html", folder.at("copy.html")});
  const std::string page = opened_page(folder, folder.at("copy.html"));
  check_is_ready(page);
  CHECK(contains(page, "nothing to plot"));
}

TEST_CASE("a browser draws a profile and a comparison", "[tools]") {
  if (!has_browser()) return;
  PageFolder folder;
  folder.made("profile.html", {"bench", folder.hostile_model(), "--dim", "n=7", "--runs", "3", "--profile", "--html",
                               folder.at("profile.html"), "--json", folder.at("f.json")});
  const std::string page = opened_page(folder, folder.at("profile.html"));
  check_is_ready(page);
  CHECK(contains(page, "data-ready=\"2 kernels, 2 tensors\""));
  CHECK(contains(page, "class=\"roof\""));
  CHECK(contains(page, "arithmetic intensity: operations per byte"));
  CHECK(contains(page, "a rectangle is a tensor"));
  CHECK(contains(page, status_line("2 of 2 rows")));
  folder.made("other.json", {"bench", folder.hostile_model(), "--dim", "n=9", "--runs", "3", "--profile", "--json",
                             folder.at("other.json")});
  const std::string a = folder.at("f.json"), b = folder.at("other.json");
  folder.made("pair.html", {"compare", a, b, "--html", folder.at("pair.html")});
  const std::string pair = opened_page(folder, folder.at("pair.html"));
  CHECK(contains(pair, "B against A: measured apart, so that a small difference may be chance"));
  CHECK(!contains(pair, "class=\"faster\""));
  CHECK(!contains(pair, "class=\"slower\">"));
  check_is_ready(pair);
  CHECK(contains(pair, "data-ready=\"2 rows\""));
  CHECK(contains(pair, "<h1>" + a + "  and  " + b + "</h1>"));
  CHECK(contains(pair, "<span>A: " + a + ", median</span>"));
  CHECK(contains(pair, "<span>B: " + b + ", median</span>"));
  CHECK(contains(pair, "Measured under different conditions: dims"));
  CHECK(contains(pair, "Where the difference is"));
  CHECK(contains(pair, status_line("2 of 2 rows")));
}

TEST_CASE("a browser opens the page of an artifact", "[tools]") {
  if (!has_browser()) return;
  PageFolder folder;
  folder.made("model.so", {"compile", folder.hostile_model(), "-o", folder.at("model.so")});
  folder.made("so.html", {"view", folder.at("model.so"), "-o", folder.at("so.html")});
  const std::string page = opened_page(folder, folder.at("so.html") + "#kernel=softmax");
  check_is_ready(page);
  CHECK(contains(page, "an artifact holds bytecode and machine code"));
  CHECK(contains(page, status_line("4 nodes")));
  CHECK(contains(page, "machine code of the artifact"));
}
