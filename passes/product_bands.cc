#include "passes/product_bands.h"

#include <algorithm>

#include "ir/op_names.h"
#include "ops/common.h"
#include "ops/fold.h"
#include "ops/layouts.h"
#include "support/lists.h"
#include "tir/compute.h"
#include "tir/program.h"

namespace relaxc {

namespace {

constexpr int64_t kMostBands = 8;  // vectors of a register tile, for one row

// Returns the only number of a tuple or shape of scalars.
std::optional<int64_t> only_number(const Expr& list) {
  const Tuple* items = list.as<Tuple>();
  const ShapeExpr* values = list.as<ShapeExpr>();
  const std::vector<Expr>* all = items ? &items->items : values ? &values->values : nullptr;
  if (!all || all->size() != 1) return std::nullopt;
  return as_int((*all)[0]);
}

// Returns the first column and the number of columns that a slice takes of x's last axis.
struct Columns {
  int64_t first, count;
};
std::optional<Columns> columns_of_slice(const Expr& value, int64_t rank) {
  const Call* slice = as_call(value, ops::kStridedSlice);
  if (!slice || slice->args.size() < 4) return std::nullopt;
  auto axis = only_number(slice->args[1]), begin = only_number(slice->args[2]), end = only_number(slice->args[3]);
  auto stride = slice->args.size() > 4 ? only_number(slice->args[4]) : std::optional<int64_t>(1);
  bool is_last = axis && (*axis == rank - 1 || *axis == -1);
  if (!is_last || !begin || !end || stride != 1 || *begin < 0 || *end <= *begin) return std::nullopt;
  return Columns{*begin, *end - *begin};
}

// Collects bindings and their users, then asks of each product whether it is used in bands.
class BandFinder {
 public:
  BandFinder(const FunctionRef& function, const OpTable& ops)
      : ops_(ops), used_otherwise_(used_outside(function, [](const Binding&) { return true; })) {
    for_each_binding(function->body, [&](const Binding& binding) {
      auto note = [&](const NodeRef& value) {
        for (const VarRef& var : free_vars(value)) users_[var.get()].push_back(bindings_.size());
      };
      note(binding.value);
      if (binding.cast) note(*binding.cast);
      bindings_.push_back(binding);
    });
  }

  ProductBands run() {
    for (size_t i = 0; i < bindings_.size(); ++i) find_bands(i);
    return std::move(found_);
  }

 private:
  using Slices = std::unordered_map<const NodeHeader*, ProductBands::Slice>;
  const std::vector<size_t>& users_of(const Binding& binding) { return users_[binding.var.get()]; }

  void find_bands(size_t i) {
    const Binding& product = bindings_[i];
    const Call* matmul = as_call(product.value, ops::kMatmul);
    const Constant* constant = matmul ? matmul->args[1].as<Constant>() : nullptr;
    const std::vector<Expr>* x = matmul ? known_shape(matmul->args[0].type()) : nullptr;
    if (!constant || constant->data.ndim() != 2 || !x || x->empty() || product.cast) return;
    bool is_float = constant->data.dtype() == kFloat32 && tensor_dtype(matmul->args[0].type()) == kFloat32 &&
                    tensor_dtype(product.var.type()) == kFloat32;
    const int64_t width = constant->data.shape()[1];
    if (!is_float || constant->data.size() == 0 || used_otherwise_.contains(product.var.get())) return;
    std::optional<int64_t> size;
    std::vector<size_t> wide = {i};  // the product and what is computed from all of its columns
    Slices slices;
    for (size_t at = 0; at < wide.size(); ++at) {
      for (size_t user : users_of(bindings_[wide[at]])) {
        const Binding& binding = bindings_[user];
        if (auto columns = binding.cast ? std::nullopt : columns_of_slice(binding.value, std::ssize(*x))) {
          if (columns->first % columns->count != 0 || columns->count != size.value_or(columns->count)) return;
          size = columns->count;
          slices.emplace(binding.var.get(),
                         ProductBands::Slice{bindings_[wide[at]].var.get(), columns->first / columns->count});
        } else if (!is_elementwise(binding) || used_otherwise_.contains(binding.var.get()) ||
                   tensor_dtype(binding.var.type()) != kFloat32 ||
                   equal_shapes(binding.var.type(), product.var.type()) != Verdict::kProven) {
          return;
        } else if (!std::ranges::count(wide, user)) {
          wide.push_back(user);
        }
      }
    }
    if (!size || width % *size != 0 || width / *size > kMostBands || !are_combined(i, slices)) return;
    found_.products.emplace(product.var.get(), width / *size);
    for (size_t at : std::span(wide).subspan(1)) found_.behind.insert(bindings_[at].var.get());
    found_.slices.insert(slices.begin(), slices.end());
  }
  bool is_elementwise(const Binding& binding) const {
    const OpRow* row = ops_.find(op_name(binding.value));
    return row && row->pattern <= OpPattern::kBroadcast && !binding.cast;
  }

  // Returns whether elementwise operators are the slices' only users, and one of them combines what depends on
  // different bands. Behind other operators, such as a second product, this is looked for as well.
  bool are_combined(size_t product, const Slices& slices) {
    struct Dependence {
      uint32_t bands;  // as bits
      bool in_place;   // element by element
    };
    std::unordered_map<const NodeHeader*, Dependence> known;
    bool combined = false;
    for (size_t i = product + 1; i < bindings_.size(); ++i) {
      const Binding& binding = bindings_[i];
      if (const ProductBands::Slice* slice = find_value(slices, binding.var.get())) {
        if (used_otherwise_.contains(binding.var.get())) return false;
        known.emplace(binding.var.get(), Dependence{1U << slice->band, true});
        continue;
      }
      uint32_t any = 0, every = ~0U;
      bool takes_slice = false, same_shape = true, in_place = false;
      for (const VarRef& var : free_vars(binding.value)) {
        const Dependence* operand = find_value(known, var.get());
        if (!operand) continue;
        any |= operand->bands, every &= operand->bands;
        in_place = in_place || operand->in_place;
        takes_slice = takes_slice || slices.contains(var.get());
        same_shape = same_shape && equal_shapes(var.type(), binding.var.type()) == Verdict::kProven;
      }
      if (any == 0) continue;
      const bool stays = is_elementwise(binding) && same_shape;
      if (takes_slice && !stays) return false;
      known.emplace(binding.var.get(), Dependence{any, stays && in_place});
      combined = combined || (stays && in_place && any != every);
    }
    return combined;
  }

  const OpTable& ops_;
  VarSet used_otherwise_;
  std::vector<Binding> bindings_;
  std::unordered_map<const NodeHeader*, std::vector<size_t>> users_;
  ProductBands found_;
};

}  // namespace

ProductBands find_product_bands(const FunctionRef& function, const OpTable& ops) {
  return BandFinder(function, ops).run();
}

Layout BandedMatmul::layout() const {
  return *Layout::parse(panel == 0 ? "_KBN" : fmt::format("NKB{}n", panel), "KBN");
}

Expr BandedMatmul::pack(const Expr& constant, Builder& builder) const {
  return to_layout(reshape(constant, int_imms({depth, bands, columns}), builder), layout(), builder);
}

std::vector<Expr> BandedMatmul::result(const std::vector<Expr>& x_shape) const {
  std::vector<Expr> dims(x_shape.begin(), x_shape.end() - 1);
  return followed_by(dims, int_imms({bands, columns}));
}

PrimFuncRef BandedMatmul::program(const std::vector<Expr>& x_shape, DType dtype) const {
  ComputeBuilder b;
  const Layout packed = layout();
  Buffer x = b.input("x1", dtype, x_shape);
  Buffer y = b.input("x2", dtype, packed.from_plain(int_imms({depth, bands, columns})));
  auto element = [&](Axes i, Axes r) {
    const size_t rank = x_shape.size();  // i: rows, then the band and the column
    std::vector<Expr> left(i.begin(), i.begin() + static_cast<ptrdiff_t>(rank) - 1);
    left.push_back(r[0]);
    return load(x, left) * load(y, packed.from_plain_index({r[0], i[rank - 1], i[rank]}));
  };
  Buffer product = b.reduce("matmul", dtype, result(x_shape), {int_imm(depth)}, zero(dtype), combine_sum, element);
  return with_op_name(b.finish({product}), ops::short_name(ops::kMatmul));
}

PrimFuncRef band_program(const std::vector<Expr>& product_shape, DType dtype, int64_t band) {
  ComputeBuilder b;
  Buffer x = b.input("x", dtype, product_shape);
  const int64_t at = std::ssize(product_shape) - 2;
  Buffer taken = b.compute("T_band", dtype, without_item(product_shape, at),
                           [&](Axes i) { return load(x, with_new_item(i, at, int_imm(band))); });
  return b.finish({taken});
}

}  // namespace relaxc
