#include "tests/tools/pages.h"

#include <zlib.h>

#include "support/base64.h"
#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"
#include "tir/schedule/trace.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

// Returns what the page has in the element of this head.
std::string element_text(const std::string& page, const std::string& head) {
  const size_t begin = page.find(head);
  REQUIRE(begin != std::string::npos);
  const size_t end = page.find("</script>", begin);
  REQUIRE(end != std::string::npos);
  return page.substr(begin + head.size(), end - begin - head.size());
}

std::string unzipped(const std::string& bytes) {
  constexpr int kWindowOfGzip = 15 + 16;
  constexpr size_t kMost = size_t{1} << 24;
  std::string text(kMost, '\0');
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, kWindowOfGzip) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  const int status = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  REQUIRE(status == Z_STREAM_END);
  text.resize(stream.total_out);
  return text;
}

}  // namespace

Attrs data_of_page(const std::string& page) {
  return *read_json(element_text(page, "<script type=\"application/json\" id=\"data\">")).as<Attrs>();
}
Attrs texts_of_page(const std::string& page) {
  std::optional<std::string> bytes = from_base64(element_text(page, "<script type=\"text/plain\" id=\"texts\">"));
  REQUIRE(bytes);
  return *read_json(unzipped(*bytes)).as<Attrs>();
}
const AttrList& list_at(const Attrs& entries, const std::string& key) {
  INFO(key);
  const AttrValue* value = entries.find(key);
  REQUIRE(value);
  REQUIRE(value->as<AttrList>());
  return *value->as<AttrList>();
}
const Attrs& entries_at(const Attrs& entries, const std::string& key) {
  INFO(key);
  const AttrValue* value = entries.find(key);
  REQUIRE(value);
  REQUIRE(value->as<Attrs>());
  return *value->as<Attrs>();
}

PageFolder::PageFolder() : Folder("pages") {}

std::string PageFolder::hostile_model() const {
  OnnxModel model;
  model.input("x", kFloat32, "n,24").constant("w", numbers({24, 40})).constant("b", numbers({40}));
  model.output("y");
  model.node("MatMul", "x w", "m").set_name(kHostileName);
  model.node("Add", "m b", "a").set_name("/layer/Add");
  model.node("Relu", "a", "r").set_name("/layer/Relu");
  model.node("Softmax", "r", "y").set_name("/layer/Softmax");
  return write("model.onnx", model.proto().SerializeAsString());
}

std::string PageFolder::made(const std::string& file, const std::vector<std::string>& words) const {
  const Outcome outcome = run_relaxc(words);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return read(file);
}

std::string browser() {
  for (const char* path : {"/usr/bin/chromium", "/usr/bin/google-chrome"}) {
    if (std::filesystem::exists(path)) return path;
  }
  return "";
}

// Opens the page; `result` says what the browser does with it.
static Outcome open_page(const Folder& folder, const std::string& address, const std::string& result) {
  Outcome outcome =
      run_program({browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
                   "--disable-sync", "--user-data-dir=" + folder.at("browser"), "--window-size=1280,800",
                   "--virtual-time-budget=10000", result, "file://" + address},
                  120);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return outcome;
}

std::string opened_page(const Folder& folder, const std::string& address) {
  constexpr int kTries = 3;  // the browser's clock may run ahead of a busy machine
  std::string page;
  for (int i = 0; i < kTries; ++i) {
    page = open_page(folder, address, "--dump-dom").out;
    const bool is_decided = contains(page, "data-ready=\"") || contains(page, "<div id=\"failure\"");
    if (is_decided) break;
  }
  return page;
}

void show_page(const Folder& folder, const std::string& address, const std::string& picture) {
  open_page(folder, address, "--screenshot=" + picture);
}

}  // namespace relaxc::test
