#include "tir/intrin/tensor_intrin.h"

#include <fmt/format.h>

#include <set>

#include "ir/arith.h"
#include "ir/text/printer.h"
#include "ir/visit.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "tir/analysis/conditions.h"
#include "tir/dot_intrinsics.h"
#include "tir/program.h"
#include "tir/scalable_vectors.h"

namespace relaxc {

void TensorIntrins::add(TensorIntrin intrin) {
  std::vector<Buffer> described = buffer_params(intrin.description), implemented = buffer_params(intrin.implementation);
  for (const PrimFuncRef& program : {intrin.description, intrin.implementation}) {
    if (program->params.size() != buffer_params(program).size())
      fail(program.span(), "intrinsic '{}': its params are buffers, no scalars", intrin.name);
  }
  if (described.size() != implemented.size())
    fail(intrin.implementation.span(), "intrinsic '{}': the description has {} buffers, the implementation {}",
         intrin.name, described.size(), implemented.size());
  for (size_t i = 0; i < described.size(); ++i) {
    const BufferType &a = buffer_type(described[i]), &b = buffer_type(implemented[i]);
    bool same = a.dtype == b.dtype && a.shape.size() == b.shape.size();
    for (size_t d = 0; same && d < a.shape.size(); ++d) same = Analyzer().can_prove_equal(a.shape[d], b.shape[d]);
    if (!same)
      fail(implemented[i].span(), "intrinsic '{}': buffer '{}' has another dtype or shape than '{}' of the description",
           intrin.name, implemented[i]->name, described[i]->name);
  }
  for (size_t i = 0; i < described.size(); ++i) {
    if (stores_to(intrin.implementation->body, implemented[i]) && !stores_to(intrin.description->body, described[i]))
      fail(implemented[i].span(), "intrinsic '{}': the implementation writes '{}', the description only reads it",
           intrin.name, implemented[i]->name);
  }
  std::string name = intrin.name;
  rows_.insert_or_assign(std::move(name), std::move(intrin));
}

const TensorIntrin* TensorIntrins::find(std::string_view name) const {
  constexpr std::pair<std::string_view, std::string_view> kTvmNames[] = {
      {"dot_16x4_vnni", "dot_16x4_u8s8s32_vnni"}, {"dot_4x4_i8i8s32_neon", "dot_4x4_s8s8s32_neon"}};
  auto it = rows_.find(name);
  for (const auto& [theirs, ours] : kTvmNames) {
    if (it == rows_.end() && name == theirs) it = rows_.find(ours);
  }
  return it == rows_.end() ? nullptr : &it->second;
}

std::vector<std::string> TensorIntrins::names() const {
  return map_each(rows_, [](const auto& row) { return row.first; });
}

std::string describe_intrins(const TensorIntrins& intrins) {
  std::string out;
  for (const std::string& name : intrins.names()) {
    const TensorIntrin& intrin = *intrins.find(name);
    std::vector<std::string> buffers, axes;
    std::string statement;
    std::set<std::string> needs;
    for (const Buffer& buffer : buffer_params(intrin.description)) {
      buffers.push_back(fmt::format("{} {}", buffer->name, buffer_text(buffer_type(buffer))));
      for (const Expr& dim : buffer_type(buffer).shape) {
        if (vector_lanes(dim).value_or(0) < 0) needs.insert("sve");
      }
    }
    walk(intrin.description->body, [&](const Block& block) {
      if (is_root(block)) return true;
      for (const IterVar& axis : block.iter_vars)
        axes.push_back(fmt::format("{} < {}", axis.var->name, size_text(axis.domain.extent)));
      statement = print_stmt(block.body);
      return false;
    });
    std::erase(statement, '\n');
    walk(intrin.implementation->body, [&](const StringImm& text) {
      std::string features(features_of_intrinsic(text.value));
      for (size_t at; (at = features.find('|')) != std::string::npos;) features.replace(at, 1, " or ");
      if (!features.empty()) needs.insert(features);
    });
    out += fmt::format("{}({})\n    {}, {}\n    {}\n", name, joined(buffers), statement, joined(axes),
                       needs.empty() ? "any processor" : fmt::format("needs {}", joined(needs, std::identity())));
  }
  return out;
}

}  // namespace relaxc
