// What is found out about the blocks of a program when a schedule begins; primitives keep it from there on (tree.h).
#pragma once
#include "tir/edit/tree.h"

namespace relaxc::scheduling {

void find_facts(Tree& tree);

}  // namespace relaxc::scheduling
