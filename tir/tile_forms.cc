#include "tir/tile_forms.h"

#include <fmt/format.h>

#include <vector>

namespace relaxc {

std::string short_name(DType dtype) {
  if (dtype.element() == DType::bfloat16()) return "bf16";
  return fmt::format("{}{}", dtype.is_float() ? 'f' : dtype.is_uint() ? 'u' : 's', dtype.bits);
}

std::span<const TileForm> tile_forms() {
  static const std::vector<TileForm> kForms = [] {
    std::vector<TileForm> forms;
    auto add = [&](DType a, DType b, DType result, const char* instruction, bool Target::* figure) {
      forms.push_back({fmt::format("amx_{0}x{0}x{1}_{2}{3}{4}", kTileRows, kTileBytes / a.bytes(), short_name(a),
                                   short_name(b), short_name(result)),
                       static_cast<int>(kTileBytes / a.bytes()), a, b, result, instruction, figure});
    };
    const DType s8 = DType::int_(8), u8 = DType::uint(8), bf16 = DType::bfloat16();
    add(u8, u8, kInt32, "llvm.x86.tdpbuud", &Target::has_int8_tiles);
    add(u8, s8, kInt32, "llvm.x86.tdpbusd", &Target::has_int8_tiles);
    add(s8, u8, kInt32, "llvm.x86.tdpbsud", &Target::has_int8_tiles);
    add(s8, s8, kInt32, "llvm.x86.tdpbssd", &Target::has_int8_tiles);
    add(bf16, bf16, kFloat32, "llvm.x86.tdpbf16ps", &Target::has_bfloat16_tiles);
    return forms;
  }();
  return kForms;
}

const TileForm* find_tile_form(DType a, DType b, DType result, const Target& target) {
  for (const TileForm& form : tile_forms()) {
    if (form.a == a && form.b == b && form.result == result && target.*form.figure) return &form;
  }
  return nullptr;
}

}  // namespace relaxc
