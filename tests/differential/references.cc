#include "tests/differential/references.h"

#include <filesystem>
#include <fstream>

#include "tests/patterns.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

std::set<std::string> ops_of_run_texts() {
  std::set<std::string> result;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(RELAXC_SOURCE_DIR "/tests/modules")) {
    std::ifstream file(entry.path());
    std::string line;
    if (entry.path().extension() != ".test" || !std::getline(file, line) || line != "# test: run") continue;
    while (std::getline(file, line)) {
      for (const std::vector<std::string>& called : matches(line, "\\bR\\.([a-z0-9_.]+)\\("))
        result.insert("relax." + called[1]);
    }
  }
  return result;
}

}  // namespace relaxc::test
