// Runs what may crash or hang beside the test.
#pragma once
#include "tools/process.h"

namespace relaxc::test {

using tools::Outcome;
using tools::run_forked;
using tools::run_program;

}  // namespace relaxc::test
