// The man page and the completions, which come from the same tables as --help.
#include <filesystem>

#include "support/version.h"
#include "tests/folder.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::Outcome;
using test::run_relaxc;

namespace {

// The manual in a folder.
struct Manual {
  test::Folder folder{"manual"};
  Manual() { REQUIRE(run_relaxc({"manual", folder.path.string()}).exit_code == 0); }

  // Returns what bash offers for the last of these words.
  std::string completed(const std::vector<std::string>& words) const {
    std::string script = "source '" + folder.at("relaxc.bash") + "'; COMP_WORDS=(relaxc";
    for (const std::string& word : words) script += " '" + word + "'";
    script += "); COMP_CWORD=" + std::to_string(words.size()) + "; _relaxc; echo \"${COMPREPLY[*]}\"";
    const Outcome outcome = test::run_program({"/bin/bash", "-c", script}, 60);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    return outcome.out.substr(0, outcome.out.find('\n'));
  }
};

std::vector<std::string> long_flags_in_help(const std::string& command) {
  std::vector<std::string> flags;
  for (const auto& match : test::matches(run_relaxc({command, "--help"}).out, "\n  (?:-[a-zA-Z],)?(--[a-z0-9-]+)"))
    flags.push_back(match[1]);
  return flags;
}

}  // namespace

TEST_CASE("the manual has every command and flag", "[tools]") {
  const Manual manual;
  const std::string page = manual.folder.read("relaxc.1"), zsh = manual.folder.read("_relaxc"),
                    fish = manual.folder.read("relaxc.fish");
  CHECK(contains(page, std::string("relaxc ") + kVersion));
  const std::string plain_page = test::with_matches_replaced(page, "\\\\-", "-");  // roff's hyphens
  size_t checked = 0;
  for (const std::string command : {"run", "compile", "bench", "opt", "inspect", "explain", "cache", "fmt"}) {
    CHECK(contains(page, ".SS \\fBrelaxc " + command + "\\fR"));
    for (const std::string& flag : long_flags_in_help(command)) {
      INFO(command << " " << flag);
      CHECK(contains(plain_page, flag));
      CHECK((contains(zsh, "'" + flag + "[") || contains(zsh, "'" + flag + "=[")));
      CHECK(contains(fish, " -l " + flag.substr(2) + " "));
      CHECK(contains(manual.completed({command, flag}), flag));
      ++checked;
    }
  }
  CHECK(checked > 60);
  CHECK(contains(page, ".SS \\fBrelaxc cache clear\\fR"));
  CHECK_FALSE(contains(page, "relaxc manual"));
}

TEST_CASE("bash completes commands, flags and values", "[tools]") {
  const Manual manual;
  CHECK(contains(manual.completed({"be"}), "bench"));
  CHECK_FALSE(contains(manual.completed({"be"}), "run"));
  CHECK(manual.completed({"bench", "model.onnx", "--wa"}) == "--warmup");
  CHECK(contains(manual.completed({"compile", "m.onnx", "--emit", "l"}), "loops"));
  CHECK(manual.completed({"run", "m.onnx", "--color", ""}) == "auto always never");
  CHECK(manual.completed({"compile", "m.onnx", "--verify-each", "p"}) == "pass");
  CHECK(manual.completed({"run", "m.onnx", "--gather", "c"}) == "clamp");
  CHECK(manual.completed({"compile", "m.onnx", "-O", ""}) == "0 1 2 3");
  CHECK(contains(manual.completed({"cache", "c"}), "clear"));
  CHECK(manual.completed({"run", "m.onnx", "--color", "="}) == "auto always never");  // --color=
  CHECK(manual.completed({"run", "m.onnx", "--color", "=", "n"}) == "never");
  CHECK(manual.completed({"compile", "m.onnx", "--target", "x86-64-v"}) == "x86-64-v2 x86-64-v3 x86-64-v4");
  CHECK(contains(manual.completed({"help", ""}), "run compile"));
  CHECK(manual.completed({"help", "be"}) == "bench");
  CHECK(manual.completed({"run", "mod"}).empty());  // then names of files are offered
}

TEST_CASE("zsh and fish complete values of flags, and commands behind help", "[tools]") {
  const Manual manual;
  const std::string zsh = manual.folder.read("_relaxc"), fish = manual.folder.read("relaxc.fish");
  CHECK(!test::matches(zsh, "'--color=\\[[^']*:\\(auto always never\\)'").empty());
  CHECK(!test::matches(zsh, "'--target=\\[[^']*:\\{compadd -- host x86-64 [^']*; _files\\}'").empty());
  CHECK(!test::matches(zsh, "'\\*:word:\\(run compile ").empty());
  CHECK(!test::matches(fish, "__fish_seen_subcommand_from help' -f -a 'run compile ").empty());
  CHECK(!test::matches(fish, " -l target -r -a 'host x86-64 ").empty());
}

TEST_CASE("the man page is one that groff takes", "[tools]") {
  if (!std::filesystem::exists("/usr/bin/groff")) return;
  const Manual manual;
  const Outcome outcome =
      test::run_program({"/usr/bin/groff", "-man", "-Tutf8", "-ww", manual.folder.at("relaxc.1")}, 60);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  CHECK(contains(outcome.out, "threads that run kernels (0: all cores)"));
}
