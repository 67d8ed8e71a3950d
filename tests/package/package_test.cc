// The package for Debian in a clean system: apt installs it, and the first page of the documents works there. What
// docs/deploy.md puts into a container runs in a system with nothing else.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/documents.h"
#include "tests/embed/must_run.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "tests/report.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace fs = std::filesystem;

namespace {

constexpr int kLongestSeconds = 900;
const fs::path kFolder = fs::path(RELAXC_BINARY_DIR) / "package_try", kCache = kFolder / "cache";

Outcome clean_system(const char* mode, const fs::path& root, const std::string& command = "") {
  return run_program({RELAXC_SOURCE_DIR "/tests/package/clean_system.sh", mode, root, kCache, command},
                     kLongestSeconds);
}

// Makes the package and returns its file.
fs::path package() {
  const fs::path folder = kFolder / "package";
  fs::remove_all(folder);
  must_run({"cpack", "--config", RELAXC_BINARY_DIR "/CPackConfig.cmake", "-B", folder});
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".deb") return entry.path();
  FAIL("cpack made no package in " << folder);
  return {};
}

// Runs what the document says for somebody who has the package, as root.
void follow(const std::string& document, const fs::path& root) {
  const fs::path home = root / "root", tour = home / "relaxc-tour";
  for (const DocumentStep& step : steps_of(read_document(fs::path(RELAXC_SOURCE_DIR) / document)).steps) {
    const fs::path folder = fs::exists(tour) ? tour : home;
    try_step(document, step, folder, [&](const std::string& command) {
      return clean_system("enter", root,
                          fmt::format("sudo() {{ \"$@\"; }}\ncd '/{}' && {{ {}\n}} 2>&1",
                                      fs::relative(folder, root).string(), command));
    });
  }
}

// The Dockerfile of docs/deploy.md, and how the document runs its image.
struct Image {
  std::vector<std::string> files;
  std::string folder, command;
};
Image image_of_deployment() {
  const std::string text = read_document(RELAXC_SOURCE_DIR "/docs/deploy.md");
  const auto copy = matches(text, "\nCOPY (.*) (/\\S+)\nUSER nobody\nENTRYPOINT \\[(.*)\\]");
  const auto run = matches(text, "\\$ docker run --read-only --cpus \\d+ \\w+ (.*)");
  REQUIRE(copy.size() == 1);
  REQUIRE(run.size() == 1);
  Image result{
      .files = {}, .folder = copy[0][2], .command = with_matches_replaced(copy[0][3], "[\",]", "") + " " + run[0][1]};
  for (const auto& file : matches(copy[0][1], "\\S+")) result.files.push_back(file[0]);
  return result;
}

}  // namespace

TEST_CASE("the package is installed and works in a clean system", "[package]") {
  if (!std::getenv("CI") && !std::getenv("RELAXC_TRY_PACKAGE")) return skip("CI and ./dev package try run it");
  fs::create_directories(kFolder);
  const fs::path root = kFolder / "system";
  const Outcome made = clean_system("make", root);
  constexpr int kCannot = 77;
  if (made.exit_code == kCannot) {
    write_report("package", "package: not tried in a clean system: " + made.out);
    return skip(made.out);
  }
  INFO(made.out << made.err);
  REQUIRE(made.exit_code == 0);

  fs::create_directories(root / "root/build/package");
  const fs::path file = package();
  fs::copy(file, root / "root/build/package" / file.filename());
  follow("docs/getting-started.md", root);
  CHECK(fs::exists(root / "usr/share/doc/relaxc/copyright"));

  const Image image = image_of_deployment();
  const fs::path container = kFolder / "container";
  REQUIRE(clean_system("make", container).exit_code == 0);
  fs::create_directories(container.string() + image.folder);
  for (const std::string& name : image.files) {
    const fs::path from = name == "relaxc-run" ? root / "usr/bin/relaxc-run" : root / "root/relaxc-tour" / name;
    fs::copy(from, container.string() + image.folder + "/" + name);
  }
  const Outcome run = clean_system("nobody", container, image.command + " 2>&1");
  INFO(image.command << "\n" << run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK(run.out.starts_with("probability: float32[2, 10]"));
  fs::remove_all(root);
  fs::remove_all(container);
}

}  // namespace relaxc::test
