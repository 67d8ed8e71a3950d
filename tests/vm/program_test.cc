#include <algorithm>
#include <optional>

#include "tests/vm/programs.h"
#include "vm/disassembler.h"

#include "tests/catch.h"

using namespace relaxc;
using namespace relaxc::vm;
using namespace relaxc::vm::test;

namespace {

Tensor ramp(std::vector<int64_t> shape) {
  Tensor tensor = Tensor::empty(std::move(shape), kFloat32);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, static_cast<double>(i));
  return tensor;
}

// A program of one function without kernels, whose body `fill` writes.
template <class Fill>
Program one_function(Fill fill, LoadOptions options = {}) {
  ExecutableBuilder builder;
  FunctionBuilder main(builder, "main");
  fill(builder, main);
  main.finish();
  return Program::from(builder.finish(), {}, nullptr, std::move(options));
}

}  // namespace

TEST_CASE("a program runs with changing dims and allocates nothing the second time", "[vm]") {
  Program program = make_add_program();
  Session session(program, {.threads = 2});
  for (int64_t n : {1, 3, 0, 200, 3}) {
    Tensor x = ramp({n, 4}), w = ramp({n, 4});
    std::vector<Tensor> results = session.run({x, w});
    REQUIRE(results.size() == 1);
    REQUIRE(results[0].shape() == std::vector<int64_t>{n, 4});
    for (int64_t i = 0; i < results[0].size(); ++i) REQUIRE(results[0].as_double(i) == 3.0 * static_cast<double>(i));
  }
  Tensor x = ramp({50, 4});
  session.run({x, x});
  int64_t before = session.memory_stats().allocations;
  for (int i = 0; i < 5; ++i) session.run({x, x});
  CHECK(session.memory_stats().allocations == before);
  CHECK(session.memory_stats().live_bytes == 0);
}

TEST_CASE("dims of results that inputs of other sizes change are open", "[vm]") {
  ExecutableBuilder builder;
  for (const auto& [name, dim] : {std::pair("main", "n"), std::pair("other", "?")}) {
    FunctionBuilder function(builder, name);
    const Reg x = function.add_input(tensor_info("x", {{-1, "n"}, {4, ""}}));
    function.add_output(tensor_info("y", {{-1, dim}, {4, ""}}));
    function.emit(Opcode::kRet, {x});
    function.finish();
  }
  builder.set_metadata(std::string(kOtherwiseKey) + "main", "other");
  CHECK(to_string(builder.finish().find_function("main")->outputs[0]) == "y: float32[?, 4]");
}

TEST_CASE("wrong inputs are named", "[vm]") {
  Session session(make_add_program(), {.threads = 1});
  Tensor x = ramp({4, 4});
  CHECK(error_of([&] { session.run({x, ramp({5, 4})}); }) ==
        "input 'w': dim 0 (n) is 5, but n is 4 (bound by input 'x'); types that are given when compiling (--type) may "
        "tell them apart");
  CHECK(error_of([&] { session.run({x, ramp({4, 3})}); }) == "input 'w': dim 1 is 3, expected 4");
  CHECK(error_of([&] { session.run({x}); }) == "function 'main' takes 2 inputs, got 1");
  CHECK(error_of([&] { session.run({x, Tensor::empty({4, 4}, kInt64)}); }) ==
        "input 'w': dtype is int64, expected float32");
  CHECK(error_of([&] { session.run({x, ramp({4})}); }) ==
        "input 'w': has 1 dims (float32[4]), expected 2 (w: float32[n, 4])");
  CHECK(error_of([&] { session.run({x}, "other"); }) == "function 'other' does not exist, there are 'main' 'weights'");
  CHECK(session.run({x, x}).size() == 1);
}

TEST_CASE("results go to the host's memory", "[vm]") {
  Session session(make_add_program(), {.threads = 1});
  Tensor x = ramp({6, 4}), out = Tensor::empty({6, 4}, kFloat32);
  session.run_into(std::vector{x, x}, std::vector{out});
  CHECK(out.as_double(5) == 15);
  // In place: the result is copied once the inputs have been read.
  Tensor in_place = ramp({6, 4});
  session.run_into(std::vector{in_place, in_place}, std::vector{in_place});
  CHECK(same_contents(in_place, out));
  CHECK(error_of([&] { session.run_into(std::vector{x, x}, std::vector{Tensor::empty({4, 6}, kFloat32)}); }) ==
        "output 0: the tensor is float32[4, 6], the result float32[6, 4]");
  Tensor constant = session.run({}, "weights")[0];
  constant.set_double(0, 9);
  CHECK(session.run({}, "weights")[0].as_double(0) == 1);
}

TEST_CASE("a host's kernels and functions are found by name", "[vm]") {
  LoadOptions options;
  options.registry.add_kernel("host.add", add_kernel);
  Session session(Program::from(add_program(KernelSource::kRegistry), {}, nullptr, options), {.threads = 1});
  CHECK(session.run({ramp({2, 4}), ramp({2, 4})})[0].as_double(1) == 3);
  CHECK(
      error_of([] { Program::from(add_program(KernelSource::kRegistry), {}); }) ==
      "error: kernel 'host.add' is missing; give the library that has it (--kernels LIBRARY.so), link it in (--link), "
      "or add it to the registry of a host in C++ (Registry::add_kernel)");
  LoadOptions functions;
  functions.registry.add_function("host.twice", [](BuiltinContext&, std::span<const Value> arguments) -> Value {
    return arguments[0].integer() * 2;
  });
  Program program = one_function(
      [](ExecutableBuilder& builder, FunctionBuilder& main) {
        Reg out = main.new_register();
        main.emit(Opcode::kCallBuiltin, {out, builder.builtin("host.twice"), std::vector<Argument>{21}});
        main.emit(Opcode::kRet, {out});
      },
      functions);
  CHECK(Session(program, {.threads = 1}).run_values({}).integer() == 42);
  CHECK_THROWS_AS(functions.registry.add_function("vm.builtin.copy", [](auto&, auto) { return Value(); }),
                  RuntimeError);
}

TEST_CASE("loops, calls and shape arithmetic", "[vm]") {
  // main(n) = 1 + 2 + ... + n by a loop.
  Program program = one_function([](ExecutableBuilder&, FunctionBuilder& main) {
    Reg input = main.add_input({"n", ValueKind::kInt, {}, {}});
    vm::Slot n = main.new_slot("n"), i = main.new_slot(), total = main.new_slot("total"), more = main.new_slot();
    Label head = main.new_label(), done = main.new_label();
    main.emit(Opcode::kSlotFromValue, {n, input});
    main.emit(Opcode::kSlotSet, {i, 0});
    main.emit(Opcode::kSlotSet, {total, 0});
    main.bind(head);
    main.emit(Opcode::kSlotOp, {more, SlotOp::kGE, i, n});
    main.emit(Opcode::kBranchIf, {more, done});
    main.emit(Opcode::kSlotOp, {i, SlotOp::kAdd, i, 1});
    main.emit(Opcode::kSlotOp, {total, SlotOp::kAdd, total, i});
    main.emit(Opcode::kJump, {head});
    main.bind(done);
    main.emit(Opcode::kValueFromSlot, {input, total});
    main.emit(Opcode::kRet, {input});
  });
  CHECK(Session(program, {.threads = 1}).run_values(std::vector<Value>{int64_t{100}}).integer() == 5050);
  Session limited(program, {.threads = 1, .step_limit = 10});
  CHECK(error_of([&] { limited.run_values(std::vector<Value>{int64_t{100}}); }) ==
        "the run takes more than 10 calls and backward jumps");

  Program endless = one_function([](ExecutableBuilder& builder, FunctionBuilder& main) {
    Reg out = main.new_register();
    main.emit(Opcode::kCall, {out, builder.function("main"), std::vector<Reg>{}});
    main.emit(Opcode::kRet, {out});
  });
  Session session(endless, {.threads = 1});
  CHECK(error_of([&] { session.run_values({}); }) == "function 'main' is called 513 deep, the limit is 512");
}

TEST_CASE("errors of shape arithmetic and allocation", "[vm]") {
  auto error_with = [](SlotOp op, int64_t a, int64_t b) {
    Program program = one_function([&](ExecutableBuilder&, FunctionBuilder& main) {
      vm::Slot size = main.new_slot("n - 4");
      Reg out = main.new_register();
      main.emit(Opcode::kSlotOp, {size, op, a, b});
      main.emit(Opcode::kNewTensor, {out, kFloat32, std::vector<Scalar>{2, size}, -1});
      main.emit(Opcode::kRet, {out});
    });
    Session session(program, {.threads = 1});
    return error_of([&] { session.run({}); });
  };
  CHECK(error_with(SlotOp::kFloorDiv, 1, 0) == "symbolic value n - 4: floordiv of 1 and 0 divides by zero");
  CHECK(error_with(SlotOp::kMul, INT64_MAX, 2) == "symbolic value n - 4: mul of 9223372036854775807 and 2 overflows");
  CHECK(error_with(SlotOp::kFloorDiv, INT64_MIN, -1).find("overflows") != std::string::npos);
  CHECK(error_with(SlotOp::kSub, 0, 4) == "dim 1 (n - 4) of a new tensor is -4, expected a non-negative number");
  CHECK(error_with(SlotOp::kAdd, INT64_MAX, 0).find("overflows") != std::string::npos);
  CHECK(error_with(SlotOp::kAdd, int64_t{1} << 50, 0).find("cannot allocate") != std::string::npos);
  CHECK(error_with(SlotOp::kFloorMod, -7, 4) == "no error");
}

TEST_CASE("an error names the place of its instruction", "[vm]") {
  const std::vector<std::string> places = {"", "node 'a' (Tile): ", "node 'b' (Pad): ", ""};
  for (size_t failing = 0; failing < places.size(); ++failing) {
    Program program = one_function([&](ExecutableBuilder& builder, FunctionBuilder& main) {
      vm::Slot k = main.new_slot("k");
      Reg out = main.new_register();
      for (size_t i = 0; i < places.size(); ++i) {
        if (i == 1) main.set_place(builder.string("node 'a' (Tile)"));
        if (i == 2) main.set_place(builder.string("node 'b' (Pad)"));
        if (i == 3) main.set_place({});
        main.emit(Opcode::kSlotOp, {k, SlotOp::kFloorDiv, 1, i == failing ? 0 : 1});
      }
      main.emit(Opcode::kValueFromSlot, {out, k});
      main.emit(Opcode::kRet, {out});
    });
    Session session(program, {.threads = 1});
    CHECK(error_of([&] { session.run_values({}); }) ==
          places[failing] + "symbolic value k: floordiv of 1 and 0 divides by zero");
  }
}

TEST_CASE("values, tuples and builtins", "[vm]") {
  Program program = one_function([](ExecutableBuilder& builder, FunctionBuilder& main) {
    Reg x = main.add_input(tensor_info("x", {{2, ""}, {-1, "n"}}));
    vm::Slot n = main.new_slot("n"), first = main.new_slot();
    Reg shape = main.new_register(), tensor = main.new_register(), flat = main.new_register(),
        tuple = main.new_register(), copy = main.new_register();
    main.emit(Opcode::kCheckTensor, {x, kFloat32, 2, builder.string("input 'x'")});
    main.emit(Opcode::kCallBuiltin, {shape, builder.builtin("vm.builtin.shape_of"), std::vector<Argument>{x}});
    main.emit(Opcode::kMatchShape,
              {shape, std::vector{MatchDim::skip(), MatchDim::bind(n)}, builder.string("shape of x")});
    main.emit(Opcode::kCallBuiltin,
              {tensor, builder.builtin("vm.builtin.shape_to_tensor"), std::vector<Argument>{shape}});
    main.emit(Opcode::kSlotFromTensor, {first, tensor, 0});
    main.emit(Opcode::kSlotOp, {first, SlotOp::kMul, first, n});
    main.emit(Opcode::kReshapeView, {flat, x, std::vector<Scalar>{first}});
    main.emit(Opcode::kMakeTuple, {tuple, std::vector{flat, tensor}});
    main.emit(Opcode::kDrop, {flat});
    main.emit(Opcode::kTupleGet, {flat, tuple, 0});
    main.emit(Opcode::kCallBuiltin, {copy, builder.builtin("vm.builtin.copy"), std::vector<Argument>{flat}});
    main.emit(Opcode::kMakeTuple, {tuple, std::vector{tuple, copy}});
    main.emit(Opcode::kRet, {tuple});
  });
  std::vector<Tensor> results = Session(program, {.threads = 1}).run({ramp({2, 3})});
  REQUIRE(results.size() == 3);
  CHECK(describe(results[0]) == "float32[6]");
  CHECK(results[1].as_int(1) == 3);
  CHECK(same_contents(results[0], results[2]));
}

TEST_CASE("results do not share memory, which callers may write to", "[vm]") {
  Program program = one_function([](ExecutableBuilder&, FunctionBuilder& main) {
    Reg x = main.add_input({"x", ValueKind::kTensor, kFloat32, {}});
    Reg view = main.new_register(), both = main.new_register();
    main.emit(Opcode::kReshapeView, {view, x, std::vector<Scalar>{2, 2}});
    main.emit(Opcode::kMakeTuple, {both, std::vector{x, view}});
    main.emit(Opcode::kRet, {both});
  });
  std::vector<Tensor> results = Session(program, {.threads = 1}).run({ramp({4})});
  REQUIRE(results.size() == 2);
  results[0].set_double(0, 7);
  CHECK(results[1].as_double(0) == 0);
}

TEST_CASE("a view is a part of a tensor's memory", "[vm]") {
  auto run = [](int64_t offset, int64_t size) {
    Program program = one_function([&](ExecutableBuilder&, FunctionBuilder& main) {
      Reg x = main.add_input({"x", ValueKind::kTensor, kFloat32, {}}), view = main.new_register();
      main.emit(Opcode::kView, {view, x, offset, std::vector<Scalar>{size, 2}});
      main.emit(Opcode::kRet, {view});
    });
    Session session(program, {.threads = 1});
    return session.run({ramp({48})});
  };
  std::vector<Tensor> results = run(64, 16);
  CHECK(describe(results[0]) == "float32[16, 2]");
  CHECK(results[0].as_double(0) == ramp({48}).as_double(16));
  CHECK(error_of([&] { run(64, 17); }) == "a view float32[17, 2] at offset 64 does not fit float32[48]");
  CHECK(error_of([&] { run(32, 1); }) == "a view float32[1, 2] at offset 32 does not fit float32[48]");
  CHECK(error_of([&] { run(-64, 1); }) == "a view float32[1, 2] at offset -64 does not fit float32[48]");
  CHECK(error_of([&] { run(INT64_MAX - 63, 1); }).find("does not fit") != std::string::npos);
}

TEST_CASE("a loop carries values, stacks rows and ends", "[vm]") {
  // The body gives (condition, the number it carries twice, the tensor that it captured); `first` rows are there.
  auto run = [](int64_t trips, int64_t condition, int64_t next, std::vector<int64_t> first, int64_t fields = 3) {
    ExecutableBuilder builder;
    FunctionBuilder main(builder, "main"), body(builder, "body");
    Reg x = main.add_input({"x", ValueKind::kTensor, kFloat32, {}}), closure = main.new_register();
    Reg rows = main.new_register(), number = main.new_register(), result = main.new_register();
    main.emit(Opcode::kMakeClosure, {closure, builder.function("body"), std::vector{x}});
    main.emit(Opcode::kValueFromSlot, {number, 1});
    main.emit(Opcode::kNewTensor, {rows, kFloat32, std::vector<Scalar>(first.begin(), first.end()), -1});
    main.emit(Opcode::kLoop, {result, closure, trips, condition, std::vector{number}, std::vector{rows}});
    main.emit(Opcode::kRet, {result});
    main.finish();
    body.make_private();
    body.add_input({"i", ValueKind::kInt, {}, {}});
    Reg carried = body.add_input({"carried", ValueKind::kInt, {}, {}});
    Reg row = body.add_input({"x", ValueKind::kTensor, kFloat32, {}}), both = body.new_register();
    Reg goes_on = body.new_register();
    vm::Slot twice = body.new_slot("twice");
    body.emit(Opcode::kSlotFromValue, {twice, carried});
    body.emit(Opcode::kSlotOp, {twice, SlotOp::kMul, twice, 2});
    body.emit(Opcode::kValueFromSlot, {carried, twice});
    body.emit(Opcode::kValueFromSlot, {goes_on, next});
    std::vector<Reg> results = {goes_on, carried, row};
    results.resize(static_cast<size_t>(fields), row);
    body.emit(Opcode::kMakeTuple, {both, results});
    body.emit(Opcode::kRet, {both});
    body.finish();
    Session session(Program::from(builder.finish(), nullptr), {.threads = 1});
    return describe(session.run_values(std::vector<Value>{ramp({2})}));
  };
  CHECK(run(5, 1, 1, {5, 2}) == "(32, float32[5, 2])");
  CHECK(run(5, 1, 1, {0, 0}) == "(32, float32[5, 2])");  // the tensor grows
  CHECK(run(5, 1, 0, {5, 2}) == "(2, float32[1, 2])");
  CHECK(run(5, 0, 1, {0, 2}) == "(1, float32[0, 2])");
  CHECK(run(0, 1, 1, {0, 2}) == "(1, float32[0, 2])");
  CHECK(error_of([&] { run(1, 1, 1, {1, 2, 2}); }) ==
        "row 0 of a loop's result is float32[2], behind rows of float32[1, 2, 2]");
  CHECK(error_of([&] { run(1, 1, 1, {1, 2}, 1); }) == "function 'body' gives 1 values to a loop, expected 2 or 3");
  CHECK(error_of([&] { run(1, 1, 1, {1, 2}, 4); }) == "function 'body' gives 4 values to a loop, expected 2 or 3");
}

TEST_CASE("closures call functions with what they captured", "[vm]") {
  auto program = [](size_t captured, size_t arguments) {
    ExecutableBuilder builder;
    FunctionBuilder main(builder, "main"), pair(builder, "pair");
    Reg x = main.add_input({"x", ValueKind::kInt, {}, {}});
    Reg closure = main.new_register();
    main.emit(Opcode::kMakeClosure, {closure, builder.function("pair"), std::vector<Reg>(captured, x)});
    main.emit(Opcode::kInvoke, {closure, closure, std::vector<Reg>(arguments, x)});
    main.emit(Opcode::kRet, {closure});
    main.finish();
    pair.make_private();
    Reg a = pair.add_input({"a", ValueKind::kInt, {}, {}}), b = pair.add_input({"b", ValueKind::kInt, {}, {}});
    Reg both = pair.new_register();
    pair.emit(Opcode::kMakeTuple, {both, std::vector{a, b}});
    pair.emit(Opcode::kRet, {both});
    pair.finish();
    return Program::from(builder.finish(), nullptr);
  };
  auto result = [&](size_t captured, size_t arguments) {
    return Session(program(captured, arguments), {.threads = 1}).run_values(std::vector<Value>{int64_t{7}});
  };
  CHECK(describe(result(0, 2)) == "(7, 7)");
  CHECK(describe(result(2, 0)) == "(7, 7)");
  CHECK(error_of([&] { result(1, 2); }) == "function 'pair' takes 1 arguments, got 2");
  CHECK(program(1, 1).function().name == "main");

  Program calls = one_function([](ExecutableBuilder&, FunctionBuilder& main) {
    Reg x = main.add_input({"x", ValueKind::kClosure, {}, {}});
    main.emit(Opcode::kInvoke, {x, x, std::vector<Reg>{}});
    main.emit(Opcode::kRet, {x});
  });
  Session session(calls, {.threads = 1});
  CHECK(error_of([&] { session.run_values(std::vector<Value>{int64_t{7}}); }) ==
        "expected a value of kind function, got 7");
}

TEST_CASE("a failing kernel is named, a profiler sees the calls", "[vm]") {
  relaxc_kernel failing = [](const relaxc_kernel_args* args) -> int32_t {
    args->context->error = "index 9 is out of range";
    return 3;
  };
  Session session(Program::from(add_program(), [&](const std::string&) { return failing; }), {.threads = 1});
  CHECK(error_of([&] { session.run({ramp({1, 4}), ramp({1, 4})}); }) ==
        "kernel 'fused_add' (node Add_1) failed with status 3: index 9 is out of range");
  TableProfiler profiler;
  Session profiled(make_add_program(), {.threads = 1});
  profiled.set_profiler(&profiler);
  profiled.run({ramp({1, 4}), ramp({1, 4})});
  CHECK(profiler.text().find("fused_add / node Add_1") != std::string::npos);
  CHECK(profiler.total_ns() >= 0);
}

namespace {

// A host's allocator that counts the bytes that are in use.
Allocator counting_allocator(int64_t& held) {
  return {[](void* user, size_t bytes, size_t alignment) {
            *static_cast<int64_t*>(user) += static_cast<int64_t>(bytes);
            return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
          },
          [](void* user, void* memory, size_t bytes) {
            *static_cast<int64_t*>(user) -= static_cast<int64_t>(bytes);
            std::free(memory);
          },
          &held};
}

}  // namespace

TEST_CASE("options of a session that are out of range are refused", "[vm]") {
  const Program program = make_add_program();
  auto problem = [&](SessionOptions options) { return error_of([&] { Session(program, std::move(options)); }); };
  CHECK(problem({.threads = -1}) == "threads of a session are -1, expected 1 to 1024, or 0 for all cores");
  CHECK(problem({.threads = 5000}) == "threads of a session are 5000, expected 1 to 1024, or 0 for all cores");
  CHECK(problem({.threads = 1, .memory_limit = -7}) ==
        "memory_limit of a session is -7, expected at least 1, or 0 for the default");
  CHECK(problem({.threads = 1, .step_limit = -1}) ==
        "step_limit of a session is -1, expected at least 1, or 0 for the default");
}

TEST_CASE("results that outlive their session keep no other memory of it", "[vm]") {
  int64_t held = 0;
  std::optional<Session> session(std::in_place, make_add_program(),
                                 SessionOptions{.threads = 1, .allocator = counting_allocator(held)});
  const Tensor x = ramp({1000, 4});
  std::vector<Tensor> first = session->run({x, x}), second = session->run({x, x});
  const int64_t bytes = first[0].bytes();
  CHECK(held > 2 * bytes);
  session.reset();
  CHECK(held == 2 * bytes);
  CHECK(first[0].as_double(7) == 21);
  first.clear();
  CHECK(held == bytes);
  second.clear();
  CHECK(held == 0);
}

TEST_CASE("scratch memory of kernels counts toward the limit of a session", "[vm]") {
  // add_program() has 320,000 bytes of storage in the first kernel, and as many of a result beside it in the second
  // one.
  std::vector<int64_t> wanted;
  size_t calls = 0;
  Kernel kernel = [&](const relaxc_kernel_args* args) -> int32_t {
    const int64_t bytes = wanted[calls++];
    if (bytes == 0 || args->context->scratch(args->context, bytes)) return 0;
    args->context->error = "no scratch";
    return 3;
  };
  int64_t held = 0;  // of the host's allocator
  Session session(Program::from(add_program(), [&](const std::string&) { return kernel; }),
                  {.threads = 1, .memory_limit = 800'000, .allocator = counting_allocator(held)});
  const Tensor x = ramp({20'000, 4});
  auto run = [&](int64_t first, int64_t second) {
    wanted = {first, second};
    calls = 0;
    session.run({x, x});
    CHECK(held <= 800'000);
  };
  for (int i = 0; i < 2; ++i) run(400'000, 0);  // the first kernel's scratch makes room for the result
  CHECK_THROWS_AS(run(500'000, 0), OutOfMemory);
  CHECK(
      error_of([&] { run(500'000, 0); }) ==
      "kernel 'fused_add' (node Add_1) failed with status 3: no scratch; it asked for 500000 bytes of scratch: 320000 "
      "bytes are in use, the limit is 800000");
  run(0, 159'000);
  CHECK(error_of([&] { run(0, 161'000); }).find(": 640000 bytes are in use, the limit is 800000") != std::string::npos);
  run(100'000, 150'000);
  CHECK(held > 0);
  session.trim();
  CHECK(held == 0);
}

TEST_CASE("the disassembly names slots, kernels and strings", "[vm]") {
  std::string text = disassemble(add_program());
  CHECK(text.find("match_shape r0, [bind s0:n, 4], \"input 'x'\"") != std::string::npos);
  CHECK(text.find("slot_op s1:4 * n, mul, s0:n, 4") != std::string::npos);
  CHECK(text.find("call_kernel \"relaxc_k_add\", [r3, r1, r4], [s1:4 * n], -") != std::string::npos);
  CHECK(text.find("const_load r0, c0 float32[4]") != std::string::npos);
}
