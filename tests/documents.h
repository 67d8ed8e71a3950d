// The documents of the tree, and the examples in them that run.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/process.h"

namespace relaxc::test {

// Returns whether the folder is not of the sources.
bool is_hidden_or_built(const std::filesystem::path& path);
// Returns every *.md of the tree.
std::vector<std::filesystem::path> documents();
std::string read_document(const std::filesystem::path& path);

// Where a command runs.
enum class Runs { kAlways, kSlow, kInPackage, kNever };

// A file that a document gives, or a command that it runs.
struct DocumentStep {
  size_t line = 0;                        // in the document
  std::string file = {};                  // its name; empty: a command
  std::string text = {};                  // the file's contents, or the command
  std::optional<std::string> shown = {};  // what the command prints, where the document says so
  int exit_code = 0;
  Runs runs = Runs::kAlways;
};

// A message of the program that no command of a document produces, and the source that holds it.
struct QuotedMessage {
  size_t line = 0;
  std::string file, text;
};

// A block of commands with the reason why they do not always run.
struct MarkedBlock {
  size_t line = 0;
  Runs runs;
  std::string reason, text;
};

// What a document runs, in order, and what is wrong with its blocks.
struct DocumentSteps {
  std::vector<DocumentStep> steps;
  std::vector<QuotedMessage> messages;
  std::vector<MarkedBlock> marked;  // the steps have the commands of those that run somewhere
  std::vector<std::string> problems;
};

// Reads the examples of a document. It has some if there is a block in it that begins with ```sh:
//
//   ```python
//   # relu.py                       a comment that names the file, which is the whole block
//   ...
//   ```
//   ```sh
//   $ relaxc check relu.py          a command; a backslash at the end continues it
//   $ relaxc diff a.py b.py         # exit code 1
//   main: binding ...               its output, standard error included, as far as it is shown
//   ...                             any lines; within a line: any characters
//   ```
//
//   ```sh slow: REASON              commands that take minutes: they run where CI or RELAXC_SLOW_DOCUMENTS is set
//   ```sh package: REASON           commands for an installed package: they run in a clean system (tests/package/)
//   ```sh not run: REASON           commands that no test can run
//   ```message vm/memory.cc         a part of a message, a line of the block, that stands in this source
//   ```cpp excerpt                  a part of a file, which is not tried; of python, one that parses at least
//   ```text                         a picture, or an output that no command repeats
//   ```python graph                 other words are for other tests
//
// Every block must then be one of these, and a command must name each file.
DocumentSteps steps_of(const std::string& document);

// Returns the lines of a document, with their numbers, that have a command outside of such blocks: in a block by
// indentation, or in one of text.
std::vector<std::string> other_commands(const std::string& document);

// Returns the lines, with their numbers, at which blocks without a language begin.
std::vector<std::string> blocks_without_language(const std::string& document);

// A block of Python, whatever else its mark says.
struct PythonBlock {
  size_t line = 0;
  std::string text;
};
std::vector<PythonBlock> python_blocks(const std::string& document);

// Returns whether the output is as shown, without regard to blanks at the ends of lines.
bool is_as_shown(const std::string& output, const std::string& shown);

// Does a step in the folder: writes its file there, or has `run` run its command and checks what came of it.
void try_step(const std::string& document, const DocumentStep& step, const std::filesystem::path& folder,
              const std::function<Outcome(const std::string& command)>& run);

}  // namespace relaxc::test
