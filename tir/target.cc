#include "tir/target.h"

#include <fmt/format.h>

#include <algorithm>

namespace relaxc {

namespace {

// Returns the member that the path leads to: &Target::cores; or &Target::l1, &Cache::bytes.
template <auto... kPath>
FigureMember at(Target& target) {
  return &(target.*....*kPath);
}

#define RELAXC_UNREAD "; no rule reads it yet"
#define RELAXC_CACHE(level, place, ways_note, note)                                        \
  {#level ".bytes", "size of the " place note, at<&Target::level, &Cache::bytes>},         \
      {#level ".line", "bytes of a cache line" note, at<&Target::level, &Cache::line>},    \
      {#level ".ways", "lines of a set" ways_note, at<&Target::level, &Cache::ways>}, {    \
    #level ".shared_by", "cores that share it" note, at<&Target::level, &Cache::shared_by> \
  }

constexpr FigureRow kFigures[] = {
    {"cores", "cores that run parallel loops", at<&Target::cores>},
    {"vector_bits", "the widest vectors worth using", at<&Target::vector_bits>, true},
    {"num_vector_registers", "vector registers", at<&Target::num_vector_registers>, true},
    {"has_fma", "fused multiply-add", at<&Target::has_fma>, true},
    {"has_float16_conversion", "float16 to float32 and back in one instruction", at<&Target::has_float16_conversion>,
     true},
    {"has_int8_dot", "sums of products of bytes in each lane", at<&Target::has_int8_dot>, true},
    {"clamps_int8_dot", "sums of products of bytes in each lane, where those of two are clamped to 16 bits",
     at<&Target::clamps_int8_dot>, true},
    {"has_bfloat16_dot", "sums of two products of bfloat16 in each lane", at<&Target::has_bfloat16_dot>, true},
    {"has_int8_tiles", "products of tiles of bytes in matrix registers", at<&Target::has_int8_tiles>, true},
    {"has_bfloat16_tiles", "products of tiles of bfloat16 in matrix registers", at<&Target::has_bfloat16_tiles>, true},
    {"fma_ports", "full vectors multiplied and added in a cycle", at<&Target::fma_ports>},
    {"fma_latency", "cycles until a sum can be added to again", at<&Target::fma_latency>},
    {"load_ports", "full vectors loaded in a cycle", at<&Target::load_ports>},
    {"load_delay", "cycles by which a load delays multiply-adds", at<&Target::load_delay>},
    {"elements_per_cycle", "elements of a simple operation in a cycle", at<&Target::elements_per_cycle>},
    RELAXC_CACHE(l1, "L1 data cache", "", ""),
    RELAXC_CACHE(l2, "L2 cache", RELAXC_UNREAD, ""),
    {"l2_bytes_per_cycle", "bytes that a core reads from the L2 cache in a cycle", at<&Target::l2_bytes_per_cycle>},
    {"exposed_l2_latency", "share of the latency of L2 that prefetching does not hide",
     at<&Target::exposed_l2_latency>},
    RELAXC_CACHE(l3, "L3 cache", RELAXC_UNREAD, RELAXC_UNREAD),
    {"local.bytes", "stack for all buffers of a kernel", at<&Target::local, &LocalMemory::bytes>},
    {"local.buffer_bytes", "the largest buffer of scope \"local\" on the stack",
     at<&Target::local, &LocalMemory::buffer_bytes>},
    {"local.other_bytes", "the largest buffer of another scope on the stack",
     at<&Target::local, &LocalMemory::other_bytes>},
    {"memory_bytes_per_cycle", "bytes that a core reads from memory in a cycle while all cores read",
     at<&Target::memory_bytes_per_cycle>},
    {"wake_cycles", "cycles until another thread works on a parallel loop", at<&Target::wake_cycles>},
};
#undef RELAXC_CACHE
#undef RELAXC_UNREAD

}  // namespace

std::span<const FigureRow> target_figures() { return kFigures; }

const FigureRow* find_figure(std::string_view name) {
  auto row = std::ranges::find_if(kFigures, [&](const FigureRow& r) { return name == r.name; });
  return row == std::end(kFigures) ? nullptr : row;
}

double get_figure(const FigureRow& row, const Target& target) {
  Target copy = target;
  return std::visit([](auto* member) { return static_cast<double>(*member); }, row.in(copy));
}

void set_figure(const FigureRow& row, Target& target, double value, std::string source) {
  auto set = [&](auto* member) {
    using Member = std::remove_reference_t<decltype(*member)>;
    // Formulas divide by counts, so a part of a way or of a core counts as one.
    *member = static_cast<Member>(std::is_same_v<Member, int64_t> ? std::max(value, 1.0) : value);
  };
  std::visit(set, row.in(target));
  target.sources.insert_or_assign(row.name, std::move(source));
}

std::string print_target(const Target& target) {
  std::string out = fmt::format("triple = {}\ncpu = {}\n", target.triple, target.cpu);
  if (!target.features.empty()) out += fmt::format("features = {}\n", target.features);
  for (const FigureRow& row : kFigures) {
    auto source = target.sources.find(row.name);
    std::string line = fmt::format("{} = {}", row.name, get_figure(row, target));
    out += fmt::format("{:36} # {}; {}\n", line, row.doc, source == target.sources.end() ? "default" : source->second);
  }
  return out;
}

}  // namespace relaxc
