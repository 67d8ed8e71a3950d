// Makes a seed for the fuzz target of artifacts: fuzz_artifact_seed IN.so OUT writes the artifact without its machine
// code.
#include <cstdio>

#include "support/diagnostic.h"
#include "vm/artifact.h"

int main(int argc, char** argv) {
  using namespace relaxc;
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s IN.so OUT\n", argv[0]);
    return 2;
  }
  try {
    vm::write_artifact(argv[2], {}, vm::load_artifact(argv[1]).executable);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
