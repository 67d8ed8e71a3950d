// The names of the kinds of loops and axes, as the text format has them after `T.` and `T.axis.`: one row each.
#pragma once
#include <optional>
#include <string_view>

#include "ir/stmt.h"

namespace relaxc {

struct ForKindRow {
  ForKind kind;
  std::string_view name;
};
inline constexpr ForKindRow kForKinds[] = {{ForKind::kSerial, "serial"},
                                           {ForKind::kParallel, "parallel"},
                                           {ForKind::kVectorized, "vectorized"},
                                           {ForKind::kUnrolled, "unroll"},
                                           {ForKind::kThreadBinding, "thread_binding"},
                                           {ForKind::kLaunchThread, "launch_thread"}};
struct IterKindRow {
  IterKind kind;
  std::string_view name;
  char letter;  // in T.axis.remap; 0: it has none
};
inline constexpr IterKindRow kIterKinds[] = {{IterKind::kSpatial, "spatial", 'S'},
                                             {IterKind::kReduce, "reduce", 'R'},
                                             {IterKind::kScan, "scan", 0},
                                             {IterKind::kOpaque, "opaque", 0}};

constexpr const ForKindRow& info(ForKind kind) { return kForKinds[static_cast<size_t>(kind)]; }
constexpr const IterKindRow& info(IterKind kind) { return kIterKinds[static_cast<size_t>(kind)]; }
template <class Row, size_t kSize>
constexpr auto kind_named(const Row (&rows)[kSize], std::string_view name) -> std::optional<decltype(rows[0].kind)> {
  for (const Row& row : rows) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}
constexpr std::optional<ForKind> for_kind(std::string_view name) { return kind_named(kForKinds, name); }
constexpr std::optional<IterKind> iter_kind(std::string_view name) { return kind_named(kIterKinds, name); }

}  // namespace relaxc
