// Man pages and completions for shells, from the same tables of commands and flags as --help.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace relaxc::tools {

// Adds the hidden command `manual`, which writes all of these files to a folder. The build calls it.
void add_manual(CLI::App& app);

}  // namespace relaxc::tools
