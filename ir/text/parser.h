// <relaxc/parser.h>: reads modules in TVMScript form without Python: everything that the printer prints, and what
// people write in the dialect of TVM up to 0.23 (see printer.h; the common spellings of later versions are read too).
//
// Functions outside a class become entries of the module. Every node gets the span of its text. One run reports all
// errors that do not follow from others, each with what was expected, what was found, and a hint where one is known;
// the module then holds the definitions that could be read.
#pragma once
#include <map>

#include "ir/op.h"

namespace relaxc {

// Returns the names of the classes that are modules, in order, when there are several; else nothing.
std::vector<std::string> several_modules(std::string_view text);
// Returns the one of them that is compiled where nobody says which: the last that a statement builds or schedules, as
// in tvm.build(Module), else the last.
std::string chosen_module(std::string_view text, const std::vector<std::string>& modules);

// Returns the names of handles, of A = T.match_buffer(a, ...), with the buffers that programs get by them. Those that
// some program has as the name of a buffer, or of two buffers, are left out.
std::map<std::string, std::string> matched_handles(std::string_view text);

IRModule parse_module(std::string_view text, std::string filename, const OpTable& ops, Diagnostics& diagnostics,
                      const std::string& module_name = "");

}  // namespace relaxc
