// Instructions on matrix registers in the interpreter: programs that tir/lower/tile_registers.cc has left run on any
// processor. Sums of floats are rounded after each product; processors differ in the order and in rounding.
#include <algorithm>
#include <cstring>

#include "support/lists.h"
#include "tir/interpret/internal.h"
#include "tir/tile_forms.h"

namespace relaxc::interpreter {

namespace {

TileRegister& tile_at(Frame& frame, const Code& number, const Span& span) {
  const int64_t n = number.as_int(frame);
  if (n < 0 || n >= kTiles) fail(span, "there is no matrix register {}; there are {}", n, kTiles);
  return frame.tiles[static_cast<size_t>(n)];
}

enum class Direction : uint8_t { kLoad, kStore };
void copy_rows(Frame& frame, TileRegister& tile, char* at, int64_t distance, Direction direction, const Span& span) {
  for (int64_t row = 0; row < kTileRows; ++row, at += distance) {
    const MemoryAt memory = memory_at(frame, at);
    if (!memory.is_known || memory.bytes < kTileBytes)
      fail(span, "row {} of a tile is not inside of a buffer's memory", row);
    char* in_tile = tile.data() + row * kTileBytes;
    if (direction == Direction::kLoad) {
      std::memcpy(in_tile, at, kTileBytes);
    } else {
      std::memcpy(at, in_tile, kTileBytes);
      if (memory.written) std::memset(memory.written, 1, kTileBytes);
    }
  }
}

void multiply(const TileForm& form, TileRegister& c, const TileRegister& a, const TileRegister& b) {
  const int64_t size = form.a.bytes(), sum_size = form.result.bytes();
  for (int64_t i = 0; i < kTileRows; ++i) {
    for (int64_t j = 0; j < kTileRows; ++j) {
      char* at = c.data() + (i * kTileRows + j) * sum_size;
      Word sum = read_element(at, form.result);
      for (int64_t k = 0; k < form.depth; ++k) {
        const int64_t group = form.group();
        const Word x = read_element(a.data() + (i * form.depth + k) * size, form.a),
                   y = read_element(b.data() + ((k / group * kTileRows + j) * group + k % group) * size, form.b);
        sum = form.result.is_float() ? Word(static_cast<double>(static_cast<float>(sum.f + x.f * y.f)))
                                     : Word(sum.i + x.i * y.i);
      }
      write_element(at, form.result, sum);
    }
  }
}

}  // namespace

CodePtr Compiler::tile_code(const std::string& name, const std::vector<Expr>& args, const Span& span) {
  std::vector<CodePtr> values = exprs(args);
  const TileForm* form = find_item(tile_forms(), name, &TileForm::instruction);
  if (form && values.size() == 3) {
    return code([form, span, values = std::move(values)](Frame& frame) -> Word {
      multiply(*form, tile_at(frame, *values[0], span), tile_at(frame, *values[1], span),
               tile_at(frame, *values[2], span));
      return int64_t{0};
    });
  }
  if (name == "llvm.x86.tilezero" && values.size() == 1) {
    return code([span, values = std::move(values)](Frame& frame) -> Word {
      tile_at(frame, *values[0], span).fill(0);
      return int64_t{0};
    });
  }
  const bool loads = name == "llvm.x86.tileloadd64", stores = name == "llvm.x86.tilestored64";
  if ((!loads && !stores) || values.size() != 3) return nullptr;
  const Direction direction = loads ? Direction::kLoad : Direction::kStore;
  return code([direction, span, values = std::move(values)](Frame& frame) -> Word {
    copy_rows(frame, tile_at(frame, *values[0], span), pointer_of(values[1]->word(frame)), values[2]->as_int(frame),
              direction, span);
    return int64_t{0};
  });
}

}  // namespace relaxc::interpreter
