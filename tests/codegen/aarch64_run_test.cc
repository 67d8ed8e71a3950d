// Machine code for AArch64 gives the numbers of the plain program, on an emulated processor; with scalable vectors of
// 128, 256 and 512 bits.
#include <cstdio>

#include "tests/codegen/aarch64.h"

#include "tests/catch.h"

namespace relaxc::codegen {

TEST_CASE("AArch64 kernels run under qemu", "[codegen]") {
  if (std::string missing = missing_for_qemu(); !missing.empty()) {
    std::printf("test skipped: %s is not there; kernels for AArch64 are not run (./dev test installs qemu-user)\n",
                missing.c_str());
    return;
  }
  for (const char* bytes : {"16", "32", "64"}) {
    std::string cpu = std::string("max,sve-default-vector-length=") + bytes;
    for (const Aarch64Case& row : aarch64_cases()) {
      INFO(row.intrin << " with vectors of " << bytes << " bytes");
      CHECK(compare_under_qemu(plain_product(row.intrin), tensorized_product(row.intrin), aarch64_target(row.features),
                               cpu, {}) == "");
    }
    for (int64_t n : {1, 8, 45, 1000}) {
      INFO("rows of " << n << " with vectors of " << bytes << " bytes");
      CHECK(compare_under_qemu(plain_rows(), scalable_rows(), aarch64_target("+sve"), cpu, {n}) == "");
    }
  }
}

}  // namespace relaxc::codegen
