#include "vm/tensor.h"

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <fstream>

#include "tests/allocations.h"
#include "tests/vm/programs.h"
#include "vm/dlpack.h"
#include "vm/npy.h"

#include "tests/catch.h"

using namespace relaxc;
using namespace relaxc::vm::test;

TEST_CASE("tensors know their sizes", "[vm]") {
  CHECK(element_count(std::vector<int64_t>{}) == 1);
  CHECK(element_count(std::vector<int64_t>{int64_t{1} << 62, 4, 0}) == 0);
  CHECK_FALSE(element_count(std::vector<int64_t>{int64_t{1} << 62, 4}));
  CHECK_FALSE(element_count(std::vector<int64_t>{0, -1}));
  Tensor tensor = Tensor::empty({2, 3}, kFloat32);
  CHECK(reinterpret_cast<uintptr_t>(tensor.raw()) % 64 == 0);
  CHECK(describe(tensor.reshaped({3, 2})) == "float32[3, 2]");
  CHECK_THROWS_AS(tensor.reshaped({7}), RuntimeError);
  CHECK_THROWS_AS(Tensor::empty({-1}, kFloat32), RuntimeError);
  CHECK_THROWS_AS(Tensor::empty({int64_t{1} << 61}, kInt64), RuntimeError);
  CHECK_THROWS_AS(Tensor::empty({int64_t{1} << 55}, kInt64), RuntimeError);
  CHECK_THROWS_AS(Tensor::view({1}, kFloat32, static_cast<char*>(tensor.raw()) + 1, nullptr), RuntimeError);
}

// Mistakes of the host, which are not bugs of relaxc: each says what was expected and what was found.
TEST_CASE("a tensor refuses what does not fit it", "[vm]") {
  const Tensor tensor = Tensor::of<float>({2, 2}, kFloat32, {1, 2, 3, 4});
  const Tensor text = Tensor::strings({1}, {std::string("a")});
  auto usage = [](const auto& call) {
    try {
      call();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("no UsageError");
  };
  CHECK(usage([] { Tensor::of<float>({2, 2}, kFloat32, {1, 2, 3}); }) ==
        "a tensor float32[2, 2] has 4 elements in 16 bytes, got 3 values of 4 bytes each");
  CHECK(usage([] { Tensor::of<float>({2}, kFloat32, {1, 2, 3}); }) ==
        "a tensor float32[2] has 2 elements in 8 bytes, got 3 values of 4 bytes each");
  CHECK(usage([] { Tensor::of<double>({2}, kFloat32, {1, 2}); }) ==
        "a tensor float32[2] has 2 elements in 8 bytes, got 2 values of 8 bytes each");
  CHECK(usage([] { Tensor::strings({2}, {std::string("a")}); }) == "a tensor string[2] has 2 elements, got 1 strings");
  CHECK(usage([&] { tensor.data<double>(); }) ==
        "elements of a tensor float32[2, 2] have 4 bytes, and are read as a type of 8");
  CHECK(usage([&] { tensor.string(0); }) == "there is no string 0 (counted from 0) in a tensor float32[2, 2]");
  CHECK(usage([&] { text.string(1); }) == "there is no string 1 (counted from 0) in a tensor string[1]");
  CHECK(usage([&] { tensor.as_double(4); }) == "there is no element 4 (counted from 0) in a tensor float32[2, 2]");
  CHECK(usage([] { Tensor::empty({1}, kFloat32.with_lanes(4)).as_double(0); }) ==
        "elements of a tensor float32x4[1] are vectors");
}

TEST_CASE("16-bit floats convert and round to nearest even", "[vm]") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float half = half_to_float(static_cast<uint16_t>(bits));
    if (!std::isnan(half)) REQUIRE(float_to_half(half) == bits);
    float bfloat = bfloat16_to_float(static_cast<uint16_t>(bits));
    if (!std::isnan(bfloat)) REQUIRE(float_to_bfloat16(bfloat) == bits);
  }
  Tensor half = Tensor::empty({1}, DType::float_(16));
  half.set_double(0, 1 + std::ldexp(1, -11));
  CHECK(half.as_double(0) == 1);
  // Rounding to float first would give a tie and lose the last bit.
  half.set_double(0, 1 + std::ldexp(1, -11) + std::ldexp(1, -40));
  CHECK(half.as_double(0) == 1 + std::ldexp(1, -10));
  half.set_double(0, 1e6);
  CHECK(std::isinf(half.as_double(0)));
  Tensor bfloat = Tensor::empty({1}, DType::bfloat16());
  bfloat.set_double(0, 3.140625);
  CHECK(bfloat.as_double(0) == 3.140625);
  Tensor bytes = Tensor::empty({1}, DType::int_(8));
  bytes.set_double(0, 1e10);
  CHECK(bytes.as_int(0) == 127);
  bytes.set_double(0, NAN);
  CHECK(bytes.as_int(0) == 0);
}

TEST_CASE("dlpack exchanges tensors without copies", "[vm]") {
  Tensor tensor = Tensor::of<int64_t>({2, 2}, kInt64, {1, 2, 3, 4});
  DLManagedTensor* managed = tensor.to_dlpack();
  CHECK(managed->dl_tensor.strides[0] == 2);
  Tensor back = Tensor::from_dlpack(managed);
  CHECK(back.raw() == tensor.raw());
  CHECK(same_contents(back, tensor));

  auto refused = [&](auto change) {
    DLManagedTensor* exported = tensor.to_dlpack();
    change(exported->dl_tensor);
    return error_of([&] { Tensor::from_dlpack(exported); });
  };
  CHECK(refused([](DLTensor& dl) { dl.strides[0] = 4; }) ==
        "dlpack tensor is not dense: dim 0 has stride 4, expected 2; make it contiguous first");
  CHECK(refused([](DLTensor& dl) { dl.device.device_type = kDLCUDA; }).find("device type 2") != std::string::npos);
  CHECK(refused([](DLTensor& dl) { dl.dtype = {kDLComplex, 32, 1}; }).find("code 5") != std::string::npos);
  CHECK(refused([](DLTensor& dl) { dl.dtype.lanes = 2; }).find("lanes 2") != std::string::npos);
  CHECK(refused([](DLTensor& dl) { dl.shape[0] = -2; }).find("-2") != std::string::npos);
  CHECK(refused([](DLTensor& dl) { dl.shape[0] = INT64_MAX; }).find("overflows") != std::string::npos);
  CHECK(refused([](DLTensor& dl) { dl.byte_offset = 3; }).find("multiple of 8") != std::string::npos);
  CHECK(refused([](DLTensor& dl) { dl.ndim = -1; }) == "dlpack tensor has no valid shape");
}

TEST_CASE("complex numbers are pairs of floats", "[vm]") {
  const Tensor tensor =
      Tensor::of<std::complex<float>>({2}, DType::complex(64), {{1, -2}, {std::numeric_limits<float>::infinity(), 0}});
  CHECK(describe(tensor) == "complex64[2]");
  CHECK(tensor.data<std::complex<float>>()[0] == std::complex<float>(1, -2));
  const Tensor parts = parts_of(tensor);
  CHECK((describe(parts) == "float32[2, 2]" && parts.raw() == tensor.raw() && parts.as_double(1) == -2));
  CHECK(error_of([&] { tensor.as_double(0); }) == "elements of complex64 cannot be converted");
  CHECK(error_of([&] { tensor.set_int(0, 1); }) == "elements of complex64 cannot be converted");
  for (const DType dtype : {DType::complex(64), DType::complex(128)}) {
    DLManagedTensor* managed = Tensor::empty({2}, dtype).to_dlpack();
    CHECK((managed->dl_tensor.dtype.code == kDLComplex && managed->dl_tensor.dtype.bits == dtype.bits));
    CHECK(Tensor::from_dlpack(managed).dtype() == dtype);
    CHECK(parse_dtype(to_string(dtype)) == dtype);
  }
  for (const char* name : {"complex", "complex32", "complex256"}) CHECK(!parse_dtype(name));
}

TEST_CASE("npy files", "[vm]") {
  TemporaryFolder folder;
  std::string path = folder.file("x.npy");
  for (DType dtype : {kBool, DType::int_(8), kInt32, kInt64, DType::uint(16), DType::float_(16), kFloat32, kFloat64}) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {5}, {2, 3}, {0, 4}}) {
      Tensor tensor = Tensor::empty(shape, dtype);
      for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_int(i, i % 3);
      write_npy(path, tensor);
      CHECK(same_contents(read_npy(path), tensor));
    }
  }
  for (const DType dtype : {DType::complex(64), DType::complex(128)}) {
    const Tensor tensor = Tensor::empty({2, 3}, dtype), parts = parts_of(tensor);
    for (int64_t i = 0; i < parts.size(); ++i) parts.set_double(i, static_cast<double>(i) - 4);
    write_npy(path, tensor);
    CHECK(same_contents(read_npy(path), tensor));
  }
  CHECK_THROWS_AS(write_npy(path, Tensor::empty({1}, DType::bfloat16())), RuntimeError);
  CHECK_THROWS_AS(read_npy(folder.file("missing.npy")), RuntimeError);
  CHECK_THROWS_AS(read_npy(folder.path), RuntimeError);

  auto read = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    return error_of([&] { read_npy(path); });
  };
  auto with_header = [](const std::string& dict, const std::string& data) {
    std::string text("\x93NUMPY\1\0", 8);
    text += static_cast<char>(dict.size() & 0xff);
    text += static_cast<char>(dict.size() >> 8);
    return text + dict + data;
  };
  std::string good = with_header("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n", "abcd");
  CHECK(read(good) == "no error");
  for (size_t size = 0; size < good.size(); ++size) CHECK(read(good.substr(0, size)) != "no error");
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string flipped = good;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    read(flipped);
  }
  CHECK(read(with_header("{'descr': '>f3', 'fortran_order': False, 'shape': (2,), }", "abcdef")).find("'>f3'") !=
        std::string::npos);
  CHECK(read(with_header("{'descr': [('a', '<i2')], 'fortran_order': False, 'shape': (2,), }", "abcd"))
            .find("structured") != std::string::npos);
  CHECK(read(with_header("{'descr': '<i2', 'fortran_order': False, 'shape': (9223372036854775807, 9), }", "abcd"))
            .find("does not fit") != std::string::npos);
}

TEST_CASE("other orders of .npy files are converted, with a note", "[vm]") {
  auto read = [](const std::string& dict, const std::string& data, NpyNotes& notes) {
    const std::string content = std::string("\x93NUMPY\1\0", 8) + static_cast<char>(dict.size()) + '\0' + dict + data;
    return read_npy_bytes(content, "x.npy", {}, &notes);
  };
  NpyNotes notes;
  const std::string columns("\0\3\1\4\2\5", 6);
  Tensor rows = read("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }", columns, notes);
  CHECK(rows.shape() == std::vector<int64_t>{2, 3});
  for (int64_t i = 0; i < 6; ++i) CHECK(rows.as_int(i) == i);
  CHECK(notes == NpyNotes{"x.npy: Fortran order is converted to C order"});
  const std::string cube("\0\4\2\6\1\5\3\7", 8);
  Tensor three = read("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 2, 2), }", cube, notes);
  for (int64_t i = 0; i < 8; ++i) CHECK(three.as_int(i) == i);
  Tensor words = read("{'descr': '|S1', 'fortran_order': True, 'shape': (2, 2), }", "acbd", notes);
  CHECK(words.string(1) == "b");
  notes.clear();
  Tensor big = read("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", std::string("\1\2\0\7", 4), notes);
  CHECK(big.as_int(0) == 258);
  CHECK(big.as_int(1) == 7);
  CHECK(notes == NpyNotes{"x.npy: numbers with the high byte first are converted"});
  const std::string number("\x3f\x80\0\0\xc0\0\0\0", 8);  // the parts 1 and -2
  Tensor big_parts = parts_of(read("{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }", number, notes));
  CHECK((big_parts.as_double(0) == 1 && big_parts.as_double(1) == -2));
  CHECK(read("{'descr': '<i2', 'fortran_order': True, 'shape': (0, 3), }", "", notes).size() == 0);
}

TEST_CASE("packed elements share bytes", "[vm]") {
  auto dtype = [](const char* name) { return *parse_dtype(name); };
  for (const char* name : {"int4", "uint4", "int2", "uint2", "float4_e2m1fn"}) {
    DType type = dtype(name);
    CHECK(Tensor::empty({3, 3}, type).bytes() == (9 * type.bits + 7) / 8);
    Tensor tensor = Tensor::empty({9}, type);
    for (int64_t i = 9; i-- > 0;) tensor.set_int(i, type.is_uint() ? i % 3 : i % 3 - 1);
    for (int64_t i = 0; i < 9; ++i) CHECK(tensor.as_int(i) == (type.is_uint() ? i % 3 : i % 3 - 1));
    CHECK(tensor.data<uint8_t>()[tensor.bytes() - 1] >> (9 * type.bits % 8) == 0);  // unused bits
    Tensor back = Tensor::from_dlpack(tensor.to_dlpack());
    CHECK(back.raw() == tensor.raw());
    CHECK(same_contents(back, tensor));
  }
  Tensor three = Tensor::of<uint8_t>({3}, dtype("int4"), {0x8f, 0x07});
  CHECK((three.as_int(0) == -1 && three.as_int(1) == -8 && three.as_double(2) == 7));
  three.set_double(1, 100.0);
  three.set_double(0, -100.0);
  CHECK(three.data<uint8_t>()[0] == 0x78);
  CHECK(Tensor::of<uint8_t>({5}, dtype("uint2"), {0xe4, 0x02}).as_int(4) == 2);
  CHECK(Tensor::empty({0}, dtype("int4")).bytes() == 0);
  CHECK(tensor_bytes(std::vector<int64_t>{INT64_MAX}, dtype("int4")) == INT64_MAX / 2 + 1);
  CHECK_THROWS_AS(three.as_int(3), RuntimeError);
  for (auto [name, code, bits] : {std::tuple{"float8_e4m3fn", 10, 8},
                                  {"float8_e4m3fnuz", 11, 8},
                                  {"float8_e5m2", 12, 8},
                                  {"float8_e5m2fnuz", 13, 8},
                                  {"float8_e8m0fnu", 14, 8},
                                  {"float4_e2m1fn", 17, 4},
                                  {"uint2", 1, 2}}) {
    DLManagedTensor* managed = Tensor::empty({2}, dtype(name)).to_dlpack();
    CHECK(managed->dl_tensor.dtype.code == code);
    CHECK(managed->dl_tensor.dtype.bits == bits);
    managed->deleter(managed);
  }
}

TEST_CASE("npy files of narrow types", "[vm]") {
  TemporaryFolder folder;
  std::string path = folder.file("x.npy");
  for (const char* name : {"int4", "uint4", "int2", "uint2", "float4_e2m1fn", "float8_e4m3fn", "float8_e8m0fnu"}) {
    DType dtype = *parse_dtype(name);
    Tensor tensor = Tensor::empty({3, 5}, dtype);
    for (int64_t i = 0; i < 15; ++i) tensor.set_double(i, dtype.is_int() ? i % 4 - 2.0 : i % 4);
    write_npy(path, tensor);
    CHECK(read_npy(path).dtype() == (dtype.is_int() ? DType::int_(8) : DType::uint(8)));
    CHECK(same_contents(read_npy(path, dtype), tensor));
  }
  write_npy(path, Tensor::of<int8_t>({2}, DType::int_(8), {7, 8}));
  CHECK(error_of([&] { read_npy(path, DType::int_(4)); }).find("element 1 is 8, which is not a value of int4") !=
        std::string::npos);
  write_npy(path, Tensor::of<uint8_t>({2}, DType::uint(8), {15, 16}));
  CHECK(read_npy(path, DType::uint(16)).dtype() == DType::uint(8));
  CHECK(error_of([&] { read_npy(path, DType::uint(4)); }).find("element 1 is 16") != std::string::npos);
}

TEST_CASE("the pool reuses memory and keeps its limit", "[vm]") {
  vm::MemoryPool pool(1 << 20);
  auto block = pool.allocate(1000);
  void* first = block.get();
  block.reset();
  CHECK(pool.allocate(1000).get() == first);
  CHECK(pool.allocate(900).get() == first);
  CHECK(pool.stats().allocations == 1);
  CHECK_THROWS_AS(pool.allocate(-1), RuntimeError);
  CHECK_THROWS_AS(pool.allocate(2 << 20), RuntimeError);
  auto half = pool.allocate(600 << 10);
  CHECK_THROWS_AS(pool.allocate(600 << 10), RuntimeError);
  for (int i = 1; i < 80; ++i) pool.allocate(i * 5000);
  CHECK(pool.stats().idle_bytes <= pool.stats().peak_bytes);
  pool.trim();
  CHECK(pool.stats().idle_bytes == 0);
  CHECK_THROWS_AS(vm::allocate_aligned(INT64_MAX), RuntimeError);
}

TEST_CASE("the pool lends a block again without allocations", "[vm]") {
  std::shared_ptr<void> last;
  {
    vm::MemoryPool pool;
    pool.allocate(1000);
    const int64_t before = relaxc::test::heap_allocations();
    for (int i = 0; i < 10; ++i) pool.allocate(1000);
    CHECK(relaxc::test::heap_allocations() == before);

    last = pool.allocate(1000);
    std::weak_ptr<void> observer = last;
    last.reset();
    CHECK(observer.expired());
    CHECK(pool.stats().live_bytes == 1024);  // the observer's control block is in the block
    observer.reset();
    CHECK(pool.stats().live_bytes == 0);
    last = pool.allocate(1000);
  }
  std::memset(last.get(), 1, 1000);  // it outlives the pool
}

TEST_CASE("an exported tensor takes two allocations", "[vm]") {
  const Tensor tensor = Tensor::empty({2, 3}, kFloat32);
  const int64_t before = relaxc::test::heap_allocations();
  DLManagedTensor* exported = tensor.to_dlpack();
  CHECK(relaxc::test::heap_allocations() - before == 2);
  CHECK((exported->dl_tensor.shape[0] == 2 && exported->dl_tensor.shape[1] == 3));
  CHECK((exported->dl_tensor.strides[0] == 3 && exported->dl_tensor.strides[1] == 1));
  exported->deleter(exported);
}
