// OpenBLAS and BLIS. Both define the same symbols: each is opened by itself and its symbols stay its own.
#include <dlfcn.h>
#include <fmt/format.h>

#include "bench/kernels/problem.h"

namespace relaxc::bench {

namespace {

// CBLAS's fixed numbers.
constexpr int kRowMajor = 101, kNoTranspose = 111;
using Sgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a,
                       int lda, const float* b, int ldb, float beta, float* c, int ldc);

struct Library {
  const char* name;
  const char* file;
  const char* set_threads;  // void (int64 or int)
  Sgemm sgemm = nullptr;
  void (*set_num_threads)(int64_t) = nullptr;
};

const std::vector<Library>& libraries() {
  static const std::vector<Library> kFound = [] {
    std::vector<Library> rows = {{"openblas", "libopenblas.so.0", "openblas_set_num_threads"},
                                 {"blis", "libblis.so.4", "bli_thread_set_num_threads"}};
    for (Library& row : rows) {
      void* handle = dlopen(row.file, RTLD_NOW | RTLD_LOCAL);
      if (!handle) continue;
      row.sgemm = reinterpret_cast<Sgemm>(dlsym(handle, "cblas_sgemm"));
      row.set_num_threads = reinterpret_cast<void (*)(int64_t)>(dlsym(handle, row.set_threads));
    }
    std::erase_if(rows, [](const Library& row) { return !row.sgemm || !row.set_num_threads; });
    return rows;
  }();
  return kFound;
}

}  // namespace

std::string describe_blas() {
  std::string text;
  for (const Library& library : libraries()) text += fmt::format("{} ({}), ", library.name, library.file);
  return text.empty() ? "no OpenBLAS, no BLIS" : text.substr(0, text.size() - 2);
}

std::vector<Runner> blas_runners(const Problem& p, const Data& data, int threads) {
  std::vector<Runner> result;
  if (p.kind != Problem::Kind::kMatmul || p.peak != Peak::kFloat32) return result;
  for (const Library& library : libraries()) {
    Tensor c = Tensor::empty(p.output_shape(), kFloat32);
    int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
    const float *a = data.input.data<float>(), *b = data.weight.data<float>();
    library.set_num_threads(threads);
    result.push_back({library.name, c, [=, sgemm = library.sgemm] {
                        sgemm(kRowMajor, kNoTranspose, kNoTranspose, m, n, k, 1, a, k, b, n, 0, c.data<float>(), n);
                      }});
  }
  return result;
}

}  // namespace relaxc::bench
