#pragma once
#include <oneapi/dnnl/dnnl.hpp>

namespace onednn {

// Returns whether oneDNN's int8 products are exact on this processor. Without these instructions it sums pairs of
// products in 16 bits, which saturates.
inline bool has_exact_sums() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::avx512_core_vnni:
    case dnnl::cpu_isa::avx512_core_bf16:
    case dnnl::cpu_isa::avx512_core_amx:
    case dnnl::cpu_isa::avx2_vnni:
      return true;
    default:
      return false;
  }
}

}  // namespace onednn
