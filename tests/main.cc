// The one test binary. Tests are found by Catch2; tests/CMakeLists.txt makes one ctest entry of each file.
#define CATCH_CONFIG_RUNNER
#include "tests/catch.h"

int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
