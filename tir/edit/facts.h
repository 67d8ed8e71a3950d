// Finds the facts about a program's blocks when a schedule begins; primitives keep them up to date from there on
// (tree.h).
#pragma once
#include "tir/edit/tree.h"

namespace relaxc::scheduling {

void find_facts(Tree& tree);

}  // namespace relaxc::scheduling
