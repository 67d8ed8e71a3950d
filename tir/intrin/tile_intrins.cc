// The tensor intrinsics of matrix registers: eight tiles of 16 rows of 64 bytes (Intel's AMX). A buffer of the scope
// "amx.tmm", as TVM names it, is made of tiles, and only these intrinsics access it. Descriptions and implementations
// are the same loops, so that every pass, and the interpreter, knows what they compute; the note `amx` on those of the
// implementation lets tir/lower/tile_registers.cc make an instruction of each nest.
#include <array>

#include "tir/intrin/tensor_intrin.h"
#include "tir/tile_forms.h"

namespace relaxc {

namespace {

// A nest of loops with one store.
struct TileProgram {
  std::string name, note;
  std::string params;
  std::vector<int> extents;
  std::string axes;  // "SS": of the loops
  std::string store, value;
};

std::string module_text(const TileProgram& row) {
  constexpr std::array kLoops = {"i", "j", "k"};
  std::string loops, axes, extents, inner_loops, inner_extents;
  for (size_t d = 0; d < row.extents.size(); ++d) {
    const char* comma = d == 0 ? "" : ", ";
    loops += fmt::format("{}o{}", comma, kLoops[d]);
    axes += fmt::format("{}{}", comma, kLoops[d]);
    extents += fmt::format("{}{}", comma, row.extents[d]);
    if (d == 0) continue;
    inner_loops += fmt::format("{}{}", d == 1 ? "" : ", ", kLoops[d]);
    inner_extents += fmt::format("{}{}", d == 1 ? "" : ", ", row.extents[d]);
  }
  return fmt::format(R"(
@T.prim_func(private=True)
def description({params}):
    T.func_attr({{"tensor_intrin": "{name}"}})
    for {loops} in T.grid({extents}):
        with T.block("{note}"):
            {axes} = T.axis.remap("{kinds}", [{loops}])
            {store} = {value}

@T.prim_func(private=True)
def implementation({params}):
    T.func_attr({{"tensor_intrin": "{name}"}})
    for i in T.serial({rows}, annotations={{"amx": "{note}"}}):
        for {inner_loops} in T.grid({inner_extents}):
            {store} = {value}
)",
                     fmt::arg("params", row.params), fmt::arg("name", row.name), fmt::arg("note", row.note),
                     fmt::arg("loops", loops), fmt::arg("extents", extents), fmt::arg("axes", axes),
                     fmt::arg("kinds", row.axes), fmt::arg("store", row.store), fmt::arg("value", row.value),
                     fmt::arg("rows", row.extents[0]), fmt::arg("inner_loops", inner_loops),
                     fmt::arg("inner_extents", inner_extents));
}

// A tile. Whether it is contiguous, and one of those that its buffer is made of, is asked when it becomes a register.
std::string tile_buffer(std::string_view name, std::string_view shape, DType dtype) {
  return fmt::format(R"({}: T.Buffer(({}), "{}", offset_factor=1, scope="{}"))", name, shape, to_string(dtype),
                     kTileScope);
}
std::string tile_of_rows(std::string_view name, DType dtype) {
  return tile_buffer(name, fmt::format("{}, {}", kTileRows, kTileBytes / dtype.bytes()), dtype);
}
std::string tile_of_columns(std::string_view name, DType dtype) {
  return tile_buffer(name, fmt::format("{0}, {0}, {1}", kTileRows, 4 / dtype.bytes()), dtype);
}
// A buffer whose rows are any number of elements apart.
std::string strided_buffer(std::string_view name, std::string_view shape, std::string_view strides, DType dtype) {
  return fmt::format(R"({}: T.Buffer(({}), "{}", strides=[{}], offset_factor=1))", name, shape, to_string(dtype),
                     strides);
}

// The left operand: rows of 64 bytes.
TileProgram load_rows(DType dtype) {
  const int columns = kTileBytes / static_cast<int>(dtype.bytes());
  const std::string shape = fmt::format("{}, {}", kTileRows, columns);
  return {fmt::format("amx_load_{}x{}_{}", kTileRows, columns, short_name(dtype)),
          "load",
          strided_buffer("A", shape, "\"s\", 1", dtype) + ", " + tile_of_rows("S", dtype),
          {kTileRows, columns},
          "SS",
          "S[i, j]",
          "A[i, j]"};
}

// The right operand: in each row the elements of 16 columns, those of a column that a lane sums side by side.
TileProgram load_columns(DType dtype) {
  const int group = 4 / static_cast<int>(dtype.bytes());
  const std::string shape = fmt::format("{0}, {0}, {1}", kTileRows, group);
  return {fmt::format("amx_load_{0}x{0}x{1}_{2}", kTileRows, group, short_name(dtype)),
          "load",
          strided_buffer("B", shape, fmt::format("\"s\", {}, 1", group), dtype) + ", " + tile_of_columns("S", dtype),
          {kTileRows, kTileRows, group},
          "SSS",
          "S[i, j, k]",
          "B[i, j, k]"};
}

TileProgram zero(DType dtype) {
  return {fmt::format("amx_zero_{0}x{0}_{1}", kTileRows, short_name(dtype)),
          "zero",
          tile_of_rows("C", dtype),
          {kTileRows, kTileRows},
          "SS",
          "C[i, j]",
          dtype.is_float() ? "T.float32(0)" : "0"};
}

TileProgram store(DType dtype) {
  const std::string shape = fmt::format("{0}, {0}", kTileRows);
  return {fmt::format("amx_store_{0}x{0}_{1}", kTileRows, short_name(dtype)),
          "store",
          tile_of_rows("S", dtype) + ", " + strided_buffer("C", shape, "\"s\", 1", dtype),
          {kTileRows, kTileRows},
          "SS",
          "C[i, j]",
          "S[i, j]"};
}

TileProgram multiply(const TileForm& form) {
  const int depth = form.depth, group = depth / kTileRows;
  const std::string sum = to_string(form.result);
  return {form.name,
          "multiply",
          tile_of_rows("A", form.a) + ", " + tile_of_columns("B", form.b) + ", " + tile_of_rows("C", form.result),
          {kTileRows, kTileRows, depth},
          "SSR",
          "C[i, j]",
          fmt::format(R"(C[i, j] + T.Cast("{0}", A[i, k]) * T.Cast("{0}", B[k // {1}, j, k % {1}]))", sum, group)};
}

}  // namespace

std::vector<TensorIntrin> tile_intrins() {
  std::vector<TileProgram> programs;
  for (DType dtype : {DType::int_(8), DType::uint(8), DType::bfloat16()}) {
    programs.push_back(load_rows(dtype));
    programs.push_back(load_columns(dtype));
  }
  for (DType dtype : {kInt32, kFloat32}) {
    programs.push_back(zero(dtype));
    programs.push_back(store(dtype));
  }
  for (const TileForm& form : tile_forms()) programs.push_back(multiply(form));
  std::vector<TensorIntrin> result;
  for (const TileProgram& program : programs) result.push_back(parse_tensor_intrin(module_text(program), program.name));
  return result;
}

}  // namespace relaxc
