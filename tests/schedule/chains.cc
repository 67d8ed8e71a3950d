#include "tests/schedule/chains.h"

#include <cmath>
#include <random>

#include "codegen/compile.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "support/diagnostic.h"
#include "tests/codegen/kernel_harness.h"
#include "tir/interpreter.h"
#include "tir/lower/lower.h"
#include "tir/schedule/script.h"

namespace relaxc::test {

namespace {

class Chain {
 public:
  Chain(Schedule& schedule, uint32_t seed) : sch_(schedule), random_(seed) {}

  void step() {
    Blocks blocks = all_blocks();
    BlockRV block = pick(blocks);
    Loops loops = sch_.get_loops(block);
    BlockRV other = pick(blocks);
    Loops other_loops = sch_.get_loops(other);
    switch (below(kChoices)) {
      case 0:
      case 1:
        if (!loops.empty()) sch_.split(pick(loops), factors());
        return;
      case 2:
        if (loops.size() >= 2) {
          size_t first = below(loops.size() - 1), count = 2 + below(loops.size() - first - 1);
          sch_.fuse(Loops(loops.begin() + static_cast<long>(first), loops.begin() + static_cast<long>(first + count)));
        }
        return;
      case 3:
      case 4: {
        Loops some;
        for (const LoopRV& loop : loops) {
          if (below(3)) some.push_back(loop);
        }
        std::shuffle(some.begin(), some.end(), random_);
        if (some.size() >= 2) sch_.reorder(some);
        return;
      }
      case 5:
        if (!loops.empty()) sch_.parallel(pick(loops));
        return;
      case 6:
        if (!loops.empty()) sch_.vectorize(pick(loops));
        return;
      case 7:
        if (!loops.empty()) sch_.unroll(pick(loops));
        return;
      case 8:
        sch_.cache_read(block, static_cast<int>(below(2)), below(2) ? "global" : "local");
        return;
      case 9:
        sch_.cache_write(block, 0, below(2) ? "global" : "local");
        return;
      case 10:
      case 11:
        if (!other_loops.empty()) sch_.compute_at(block, pick(other_loops), below(4) == 0, below(3) == 0 ? -2 : -1);
        return;
      case 12:
      case 13:
        if (!other_loops.empty())
          sch_.reverse_compute_at(block, pick(other_loops), below(4) == 0, below(3) == 0 ? -2 : -1);
        return;
      case 14:
        sch_.compute_inline(block);
        return;
      case 15:
        sch_.reverse_compute_inline(block);
        return;
      case 16:
        if (!loops.empty()) sch_.decompose_reduction(block, pick(loops));
        return;
      case 17:
        if (!loops.empty()) sch_.blockize(pick(loops), below(2) == 0);
        return;
      case 18:
        sch_.add_unit_loop(block);
        return;
      default:
        return;
    }
  }

  int steps() const { return static_cast<int>(sch_.trace().simplified().steps.size()); }

 private:
  static constexpr size_t kChoices = 19;
  size_t below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }
  template <class T>
  const T& pick(const std::vector<T>& items) {
    return items[below(items.size())];
  }
  Factors factors() {
    static constexpr int64_t kNumbers[] = {1, 2, 3, 4, 5, 8, 16};
    Factors result;
    size_t count = 2 + below(2), open = below(count);
    for (size_t i = 0; i < count; ++i) {
      if (i == open) {
        result.emplace_back(std::nullopt);
      } else {
        result.emplace_back(kNumbers[below(std::size(kNumbers))]);
      }
    }
    return result;
  }
  Blocks all_blocks() {
    Blocks result{sch_.get_block("root")};
    for (size_t i = 0; i < result.size(); ++i) {
      for (const BlockRV& child : sch_.get_child_blocks(result[i])) result.push_back(child);
    }
    if (result.size() > 1) result.erase(result.begin());
    return result;
  }

  Schedule& sch_;
  std::mt19937 random_;
};

Tensor random_tensor(const Buffer& buffer, const std::vector<int64_t>& shape, std::mt19937& random) {
  DType dtype = buffer_type(buffer).dtype;
  Tensor tensor = Tensor::empty(shape, dtype);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    // Small whole numbers: sums are exact in any order.
    int64_t number = std::uniform_int_distribution<int64_t>(dtype.is_uint() ? 0 : -6, 6)(random);
    dtype.is_float() ? tensor.set_double(i, static_cast<double>(number)) : tensor.set_int(i, number);
  }
  return tensor;
}

struct Data {
  std::vector<Tensor> tensors;  // inputs, then outputs
  std::vector<int64_t> scalars;
};

Data make_data(const PrimFuncRef& function, const std::map<std::string, int64_t>& sizes, uint32_t seed) {
  std::mt19937 random(seed);
  VarMap dims;
  Data data;
  for (const VarRef& var : scalar_arguments(function)) {
    dims.emplace(var.get(), int_imm(sizes.at(var->name)));
    data.scalars.push_back(sizes.at(var->name));
  }
  for (const Buffer& buffer : buffer_params(function)) {
    std::vector<int64_t> shape;
    for (const Expr& dim : buffer_type(buffer).shape) shape.push_back(*as_int(simplify(substitute(dim, dims))));
    data.tensors.push_back(random_tensor(buffer, shape, random));
  }
  return data;
}

Data copy(const Data& data) {
  Data result = data;
  for (Tensor& tensor : result.tensors) {
    Tensor fresh = Tensor::empty(tensor.shape(), tensor.dtype());
    std::memcpy(fresh.raw(), tensor.raw(), static_cast<size_t>(tensor.bytes()));
    tensor = fresh;
  }
  return result;
}

std::string compare(const Data& expected, const Data& got) {
  for (size_t t = 0; t < expected.tensors.size(); ++t) {
    const Tensor &a = expected.tensors[t], &b = got.tensors[t];
    if (same_contents(a, b)) continue;
    for (int64_t i = 0; i < a.size(); ++i) {
      double x = a.as_double(i), y = b.as_double(i);
      bool equal = x == y || std::abs(x - y) <= 1e-4 * (1 + std::abs(x));
      if (!equal) return fmt::format("tensor {}, element {}: expected {}, got {}", t, i, x, y);
    }
  }
  return "";
}

}  // namespace

void apply_random_chain(Schedule& schedule, int length, uint32_t seed) {
  Chain chain(schedule, seed);
  for (int tries = 0; tries < 3 * length && chain.steps() < length; ++tries) {
    try {
      chain.step();
    } catch (const CompileError&) {
    }
  }
}

std::string try_chain(const TestProgram& program, uint32_t seed, const ChainOptions& options) {
  Schedule schedule(program.function, {.show_program = false});
  PrimFuncRef scheduled = program.function;
  std::string problem;
  try {
    apply_random_chain(schedule, options.length, seed);
    scheduled = schedule.function();
    Diagnostics diagnostics;
    IRModule module{{{"main", scheduled}}, {}, {}};
    verify(module, op_table(), diagnostics);
    diagnostics.throw_if_errors();
    PrimFuncRef lowered = lower_program(scheduled);
    for (const auto& sizes : program.sizes) {
      Data given = make_data(program.function, sizes, seed);
      Data expected = copy(given), got = copy(given);
      interpret(program.function, expected.tensors, {});
      interpret(scheduled, got.tensors, {}, {.reverse_parallel_loops = true});
      problem = compare(expected, got);
      if (!problem.empty()) break;
      got = copy(given);
      std::vector<Tensor> flat;
      for (const Tensor& tensor : got.tensors) flat.push_back(tensor.reshaped({tensor.size()}));
      interpret(lowered, flat, got.scalars, {.reverse_parallel_loops = true});
      problem = compare(expected, got);
      if (!problem.empty()) problem = "lowered: " + problem + "\n" + print_function("lowered", lowered);
      if (problem.empty() && options.compile) {
        codegen::CompiledKernel kernel(lowered);
        got = copy(given);
        std::vector<void*> pointers;
        for (Tensor& tensor : got.tensors) pointers.push_back(tensor.raw());
        codegen::RunResult result = kernel.run(pointers, got.scalars, 2);
        problem = result.status != 0 ? "machine code fails: " + result.error : compare(expected, got);
        if (!problem.empty()) problem = "machine code: " + problem;
      }
      if (!problem.empty()) break;
    }
    if (problem.empty()) {
      // The trace as text does the same again.
      std::string text = schedule.trace().simplified().text();
      Schedule again(program.function, {.show_program = false});
      run_schedule_text(again, text, "trace.py");
      if (!structural_equal(again.function(), scheduled)) problem = "the printed trace gives another program";
    }
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (problem.empty()) return "";
  return fmt::format("{} (seed {}): {}\n{}\n{}", program.name, seed, problem, schedule.trace().simplified().text(),
                     print_function("main", scheduled));
}

}  // namespace relaxc::test
