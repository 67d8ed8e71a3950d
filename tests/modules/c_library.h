// Libraries of C kernels that tests compile, and a module that calls them.
#pragma once
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "tests/process.h"

#include "tests/catch.h"  // last

namespace relaxc::test::c_library {

inline void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// Compiles C source to a library of the folder, with the installed headers, and returns its path.
inline std::string library_of(const std::string& folder, const std::string& name, const std::string& source) {
  const std::string include = folder + "/include", file = folder + "/" + name + ".c";
  if (!std::filesystem::exists(include))
    REQUIRE(run_program({RELAXC_CMAKE, "-DSOURCE_DIR=" RELAXC_SOURCE_DIR, "-DDESTINATION=" + include, "-P",
                         RELAXC_SOURCE_DIR "/cmake/install_headers.cmake"},
                        60)
                .exit_code == 0);
  write(file, source);
  std::string library = folder + "/lib" + name + ".so";
  Outcome built = run_program({"/usr/bin/cc", "-shared", "-fPIC", "-I", include, file, "-o", library, "-lm"}, 60);
  INFO(built.err);
  REQUIRE(built.exit_code == 0);
  return library;
}

inline std::string new_folder(const std::string& name) {
  std::string folder = std::string(RELAXC_BINARY_DIR) + "/c_kernels/" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

inline std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string error_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

inline constexpr const char* kHead = "#include <relaxc/dlpack.h>\n#include <relaxc/kernel_table.h>\n";

inline constexpr const char* kByName = R"(
static int32_t twice(const relaxc_kernel_args* args) {
  const float* x = args->data[0];
  float* y = args->data[1];
  for (int64_t i = 0; i < args->scalars[0]; ++i) y[i] = 2 * x[i];
  return 0;
}
static int32_t sum(const struct DLTensor* const* tensors, int32_t count, struct DLManagedTensor** result,
                   relaxc_kernel_context* context) {
  if (count != 3 || tensors[0]->ndim != 1) {
    context->error = "expected two lists";
    return 7;
  }
  for (int64_t i = 0; i < tensors[0]->shape[0]; ++i)
    ((float*)tensors[2]->data)[i] = ((float*)tensors[0]->data)[i] + ((float*)tensors[1]->data)[i];
  return 0;
}
static const relaxc_kernel_row rows[] = {{"twice", twice, 0, 0}, {"sum", 0, sum, 0}};
const relaxc_kernel_table relaxc_kernels = {RELAXC_KERNEL_TABLE_VERSION, 2, rows};
)";

inline constexpr const char* kModule = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        with R.dataflow():
            y = R.call_dps_packed("twice", (x,), out_sinfo=R.Tensor((n,), "float32"), tir_vars=R.shape([n]))
            z = R.call_dps_packed("sum", (x, y), out_sinfo=R.Tensor((n,), "float32"))
            R.output(z)
        return z
)";

}  // namespace relaxc::test::c_library
