// What a file holds, by its first bytes.
#include "support/file_kind.h"

#include "support/diagnostic.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using namespace std::string_view_literals;

TEST_CASE("kinds of files are told by their first bytes", "[support]") {
  for (const auto& [bytes, kind, what] :
       {std::tuple("\x08\x07\x12\x07pytorch"sv, ContentKind::kModel, "an ONNX model"),
        std::tuple("import tvm\n"sv, ContentKind::kText, "text"),
        std::tuple("[PAD]\n[UNK]\n"sv, ContentKind::kText, "text"),
        std::tuple("\x93NUMPY\x01\x00"sv, ContentKind::kArray, ".npy"),
        std::tuple("PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0x.npy"sv, ContentKind::kArray,
                   ".npz"),
        std::tuple("PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0x.pkl"sv, ContentKind::kForeign,
                   "zip"),
        std::tuple("\x7f"
                   "ELF\x02"sv,
                   ContentKind::kLibrary, "shared object"),
        std::tuple(" {\n  \"a\": 1}"sv, ContentKind::kForeign, "JSON"),
        std::tuple("[[1, 2]]"sv, ContentKind::kForeign, "JSON"),
        std::tuple("\x1f\x8b\x08"sv, ContentKind::kForeign, "gzip")}) {
    INFO(what);
    const auto content = recognized_content(bytes);
    REQUIRE(content);
    CHECK(content->kind == kind);
    CHECK(content->what.find(what) != std::string_view::npos);
  }
  // A tensor of ONNX begins as a model does, with dims in place of a version.
  for (const std::string_view bytes : {""sv, "\x08\x10\x08\x01"sv, "\xf1\x02\x00\xff"sv})
    CHECK_FALSE(recognized_content(bytes));
}

TEST_CASE("a file that is not text is refused with its kind", "[support]") {
  auto message = [](std::string_view bytes) {
    try {
      expect_text("x", bytes, "a vocabulary");
    } catch (const CompileError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message("one\ntwo\n").empty());
  CHECK(message("").empty());
  CHECK(message("\xc3\xa9t\xc3\xa9\n\x1b[31m").empty());  // characters that the reader of the text judges
  CHECK(message("\x93NUMPY\x01\x00"sv) == "x: error: expected a vocabulary; it is an array of NumPy (.npy)");
  CHECK(message("<!DOCTYPE html>").find("as a failed download leaves it; download it again") != std::string::npos);
  CHECK(message("\xf1\x02\x00\xff"sv) == "x: error: expected a vocabulary; it is not text");
}
