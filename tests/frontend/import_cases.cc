// `# test: import`: the modules that an ONNX model, given in ONNX's textual format (onnx_text.h), is imported to.
//
//   # test: import
//   <ir_version: 8, opset_import: ["": 18]>
//   test (float[N, 3] x) => (float[] y) { ... }
//   # ---- import                     what ./dev update writes
//   ...
//   # ---- import: N=4                the same with dims made constant
//
// A model that is refused has `# error:` at the line of each node that is to blame, and no sections.
#include "tests/frontend/onnx_text.h"
#include "tests/text/harness.h"

#include "tests/catch.h"

namespace relaxc::test {

void run_import_cases(TextTest& test) {
  if (expects_errors(test.input())) {
    std::vector<Diagnostic> found;
    try {
      import_onnx_text(test.input(), test.name());
    } catch (const CompileError& error) {
      found = error.diagnostics();
    }
    CHECK(test.sections.size() == 1);
    return check_errors(test.input(), found);
  }
  if (test.sections.size() == 1) test.sections.push_back({"import", "", 0});
  for (size_t i = 1; i < test.sections.size(); ++i) {
    Section& section = test.sections[i];
    INFO(section.header);
    std::optional<std::string_view> dims = section.words_of("import");
    if (!dims) {
      FAIL_CHECK("expected a section 'import', found '" << section.header << "'");
      continue;
    }
    ImportOptions options;
    options.dims = parse_dims(*dims);
    IRModule module = import_onnx_text(test.input(), test.name(), options);
    check_verified(module);
    check_round_trip(module);
    section.body = print_body(module);
  }
}

}  // namespace relaxc::test
