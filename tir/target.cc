#include "tir/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace relaxc {

namespace {

#define RELAXC_CACHE(level, place)                                                                                  \
  {#level ".bytes", "size of the " place, [](Target& t) -> FigureMember { return &t.level.bytes; }},                \
      {#level ".line", "bytes of a cache line", [](Target& t) -> FigureMember { return &t.level.line; }},           \
      {#level ".ways", "lines of a set", [](Target& t) -> FigureMember { return &t.level.ways; }},                  \
      {#level ".shared_by", "cores that share it", [](Target& t) -> FigureMember { return &t.level.shared_by; }}, { \
    #level ".bytes_per_cycle", "bytes that a core reads from it in a cycle",                                        \
        [](Target& t) -> FigureMember { return &t.level.bytes_per_cycle; }                                          \
  }

constexpr FigureRow kFigures[] = {
    {"cores", "cores that run parallel loops", [](Target& t) -> FigureMember { return &t.cores; }},
    {"vector_bits", "the widest vectors worth using", [](Target& t) -> FigureMember { return &t.vector_bits; }, true},
    {"num_vector_registers", "vector registers", [](Target& t) -> FigureMember { return &t.num_vector_registers; },
     true},
    {"has_fma", "fused multiply-add", [](Target& t) -> FigureMember { return &t.has_fma; }, true},
    {"has_float16_conversion", "float16 to float32 and back in one instruction",
     [](Target& t) -> FigureMember { return &t.has_float16_conversion; }, true},
    {"has_int8_dot", "sums of four products of uint8 and int8 in each lane",
     [](Target& t) -> FigureMember { return &t.has_int8_dot; }, true},
    {"has_bfloat16_dot", "sums of two products of bfloat16 in each lane",
     [](Target& t) -> FigureMember { return &t.has_bfloat16_dot; }, true},
    {"has_masked_vector_access", "masked loads and stores of every element size",
     [](Target& t) -> FigureMember { return &t.has_masked_vector_access; }, true},
    {"fma_ports", "full vectors multiplied and added in a cycle",
     [](Target& t) -> FigureMember { return &t.fma_ports; }},
    {"fma_latency", "cycles until a sum can be added to again",
     [](Target& t) -> FigureMember { return &t.fma_latency; }},
    {"load_ports", "full vectors loaded in a cycle", [](Target& t) -> FigureMember { return &t.load_ports; }},
    RELAXC_CACHE(l1, "L1 data cache"),
    RELAXC_CACHE(l2, "L2 cache"),
    RELAXC_CACHE(l3, "L3 cache"),
    {"memory_bytes_per_cycle", "bytes that a core reads from memory in a cycle while all cores read",
     [](Target& t) -> FigureMember { return &t.memory_bytes_per_cycle; }},
    {"wake_cycles", "cycles until another thread works on a parallel loop",
     [](Target& t) -> FigureMember { return &t.wake_cycles; }},
};
#undef RELAXC_CACHE

}  // namespace

std::span<const FigureRow> target_figures() { return kFigures; }

const FigureRow* find_figure(std::string_view name) {
  auto row = std::find_if(std::begin(kFigures), std::end(kFigures), [&](const FigureRow& r) { return name == r.name; });
  return row == std::end(kFigures) ? nullptr : row;
}

double get_figure(const FigureRow& row, const Target& target) {
  Target copy = target;
  return std::visit([](auto* member) { return static_cast<double>(*member); }, row.in(copy));
}

void set_figure(const FigureRow& row, Target& target, double value, std::string source) {
  std::visit([&](auto* member) { *member = static_cast<std::remove_reference_t<decltype(*member)>>(value); },
             row.in(target));
  target.sources.insert_or_assign(row.name, std::move(source));
}

std::string print_target(const Target& target) {
  std::string out = fmt::format("triple = {}\ncpu = {}\n", target.triple, target.cpu);
  if (!target.features.empty()) out += fmt::format("features = {}\n", target.features);
  out += fmt::format("# memory spaces: {}\n", fmt::join(target.memory_spaces, ", "));
  for (const FigureRow& row : kFigures) {
    auto source = target.sources.find(row.name);
    std::string line = fmt::format("{} = {}", row.name, get_figure(row, target));
    out += fmt::format("{:36} # {}; {}\n", line, row.doc, source == target.sources.end() ? "default" : source->second);
  }
  return out;
}

}  // namespace relaxc
