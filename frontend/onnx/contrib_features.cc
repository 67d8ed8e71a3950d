// Operators of com.microsoft around features and images: hashes, crops, and the alignment of two sequences.
#include "frontend/onnx/attention.h"
#include "frontend/onnx/contrib.h"
#include "frontend/onnx/model_file.h"
#include "ops/attributes.h"
#include "ops/fold.h"

namespace relaxc::onnx_import {

namespace {

// ---- MurmurHash3_x86_32 (Appleby, public domain), of the bytes of each element

class MurmurHash {
 public:
  MurmurHash(Node& n, uint32_t seed) : n_(n), hash_(number(seed)) {}

  void add_word(const Expr& word) {
    Expr mixed = n_.mul(rotated(n_.mul(word, number(0xcc9e2d51)), 15), number(0x1b873593));
    Expr turned = rotated(n_.op("bitwise_xor", {mixed, hash_}), 13);
    hash_ = n_.add(n_.mul(turned, number(5)), number(0xe6546b64));
  }
  Expr finish(uint32_t bytes) {
    Expr h = n_.op("bitwise_xor", {hash_, number(bytes)});
    h = n_.mul(folded(h, 16), number(0x85ebca6b));
    h = n_.mul(folded(h, 13), number(0xc2b2ae35));
    return folded(h, 16);
  }

 private:
  Expr number(uint32_t value) const { return n_.scalar(value, DType::uint(32)); }
  Expr rotated(const Expr& x, uint32_t bits) {
    return n_.op("bitwise_or", {n_.op("left_shift", {x, number(bits)}), n_.op("right_shift", {x, number(32 - bits)})});
  }
  Expr folded(const Expr& x, uint32_t bits) {
    return n_.op("bitwise_xor", {x, n_.op("right_shift", {x, number(bits)})});
  }
  Node& n_;
  Expr hash_;
};

Expr with_bits_of(Node& n, const Expr& x, DType dtype) {
  if (n.dtype_of_tensor(x) == dtype) return x;
  return n.standard("BitCast", {x}, {{"to", int64_t{element_type_of_dtype(dtype)}}});
}
Expr murmur_hash(Node& n, const Expr& x) {
  const DType dtype = n.dtype(0), word = DType::uint(32);
  const auto seed = static_cast<uint32_t>(n.attr_int("seed", 0));
  Expr hash = x;
  if (dtype.is_string()) {
    hash = n.builder().op("string.hash", {x}, SeedAttrs{seed});
  } else {
    if (dtype.bits != 32 && dtype.bits != 64) n.fail("dtype is {}, expected one of 32 or 64 bits", to_string(dtype));
    MurmurHash murmur(n, seed);
    if (dtype.bits == 32) murmur.add_word(with_bits_of(n, x, word));
    if (dtype.bits == 64) {
      Expr bits = with_bits_of(n, x, DType::uint(64));
      murmur.add_word(n.cast(bits, word));
      murmur.add_word(n.cast(n.op("right_shift", {bits, n.scalar(32, DType::uint(64))}), word));
    }
    hash = murmur.finish(static_cast<uint32_t>(dtype.bits / 8));
  }
  return n.attr_int("positive", 1) != 0 ? hash : with_bits_of(n, hash, kInt32);
}

// ---- CropAndResize, as TensorFlow has it

class Crops {
 public:
  explicit Crops(Node& n)
      : n_(n),
        size_(n.ints(3, 2)),
        dtype_(accumulation_dtype(n.dtype(1))),
        images_(n.transpose(n.tensor(0), {0, 2, 3, 1})) {
    for (auto [i, rank] : {std::pair<size_t, int64_t>{0, 4}, {1, 2}, {2, 1}})
      if (n.rank(i) != rank) n.fail("input {} has rank {}, expected {}", i, n.rank(i), rank);
    n.require_equal(n.dim(1, 1), int_imm(4), "numbers of a region and 4");
    n.require_equal(n.dim(1, 0), n.dim(2, 0), "numbers of regions and of their images");
  }

  Expr result() {
    const std::string mode = n_.attr_string("mode", "bilinear");
    if (mode != "bilinear" && mode != "nearest") n_.fail("mode is '{}', expected bilinear or nearest", mode);
    const Places down = places(0), across = places(1);
    Expr inside = n_.op("logical_and", {down.inside, across.inside});
    Expr value = mode == "nearest" ? pixels(nearest(down), nearest(across)) : blended(down, across);
    Expr outside = n_.scalar_like(n_.attr_float("extrapolation_value", 0), value);
    value = n_.op("where", {n_.with_new_axis(inside, 3), value, outside});
    return n_.transpose(value, {0, 3, 1, 2});
  }

 private:
  // Where the samples of each region lie along an axis: [regions, samples, 1] or [regions, 1, samples].
  struct Places {
    Expr at, inside, most;
  };
  Places places(int64_t axis) {
    const Expr count = size_[static_cast<size_t>(axis)], last = n_.simplify(n_.dim(0, axis + 2) - 1);
    auto real = [&](const Expr& number) { return n_.cast(n_.op("scalar_to_tensor", {number}), dtype_); };
    auto bound = [&](int64_t i) { return n_.cast(n_.slice(n_.tensor(1), 1, int_imm(i), int_imm(i + 1)), dtype_); };
    Expr begin = n_.mul(bound(axis), real(last)), end = n_.mul(bound(axis + 2), real(last));
    // One sample lies in the middle, several reach from border to border.
    Expr steps = n_.cast(positions_from(n_, int_imm(0), count), dtype_), gaps = n_.simplify(count - 1);
    Expr step = n_.div(n_.sub(end, begin), real(n_.simplify(max(gaps, int_imm(1)))));
    Expr at = n_.add(begin, n_.mul(steps, step));
    Expr middle = n_.mul(n_.add(begin, end), n_.scalar(0.5, dtype_));
    at = n_.op("where", {n_.op("scalar_to_tensor", {n_.simplify(equal(count, int_imm(1)))}), middle, at});
    Expr zero = n_.scalar(0, dtype_), most = real(last);
    Expr inside = n_.op("logical_and", {n_.op("greater_equal", {at, zero}), n_.op("less_equal", {at, most})});
    at = n_.op("where", {inside, at, zero});
    const int64_t other = axis == 0 ? 2 : 1;
    return {n_.with_new_axis(at, other), n_.with_new_axis(inside, other), most};
  }
  Expr nearest(const Places& places) {
    Expr half = n_.scalar(0.5, dtype_);
    return n_.op("minimum", {n_.op("floor", {n_.add(places.at, half)}), places.most});
  }
  // Reads the pixel in this row and column of each region's image: [regions, rows, columns, channels].
  Expr pixels(const Expr& row, const Expr& column) {
    std::vector<Expr> dims = {n_.dim(1, 0), size_[0], size_[1], int_imm(1)}, parts;
    Expr image = n_.with_new_axis(n_.with_new_axis(n_.cast(n_.tensor(2), kInt64), 1), 2);
    for (const Expr& part : {image, n_.cast(row, kInt64), n_.cast(column, kInt64)})
      parts.push_back(n_.broadcast_to(n_.with_new_axis(part, 3), dims));
    return n_.op("gather_nd", {images_, join(n_, parts, 3)});
  }
  Expr blended(const Places& down, const Places& across) {
    const DType own = n_.dtype(0);
    auto between = [&](const Expr& a, const Expr& b, const Expr& share) {
      return n_.add(a, n_.mul(n_.sub(b, a), n_.cast(n_.with_new_axis(share, 3), own)));
    };
    auto share = [&](const Places& places) { return n_.sub(places.at, n_.op("floor", {places.at})); };
    auto row = [&](const char* rounding) {
      Expr at = n_.op(rounding, {down.at});
      return between(pixels(at, n_.op("floor", {across.at})), pixels(at, n_.op("ceil", {across.at})), share(across));
    };
    return between(row("floor"), row("ceil"), share(down));
  }

  Node& n_;
  std::vector<Expr> size_;
  DType dtype_;  // of the places
  Expr images_;  // with the channels behind the pixels
};
Expr crop_and_resize(Node& n) { return Crops(n).result(); }

// The costs may have an axis of one in front.
Expr dynamic_time_warping(Node& n, const Expr& costs) {
  if (n.rank(0) != 2 && n.rank(0) != 3) n.fail("the costs have rank {}, expected 2 or 3", n.rank(0));
  if (n.rank(0) == 2) return n.op("dyn.warp_path", {costs});
  n.require_equal(n.dim(0, 0), int_imm(1), "number of matrices of costs and 1");
  return n.op("dyn.warp_path", {n.pick(costs, 0, 0)});
}

Expr sample_op(Node&, const Expr& x) { return x; }

}  // namespace

std::vector<ConverterRow> contrib_features_converters() {
  return in_domain("com.microsoft", {
                                        {"MurmurHash3", 1, 1, 1, murmur_hash, "positive seed"},
                                        {"CropAndResize", 1, 4, 4, crop_and_resize, "extrapolation_value mode"},
                                        {"DynamicTimeWarping", 1, 1, 1, dynamic_time_warping},
                                        {"SampleOp", 1, 1, 1, sample_op},
                                    });
}

}  // namespace relaxc::onnx_import
