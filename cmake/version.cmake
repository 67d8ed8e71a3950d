# Writes the version and the commit as a source: cmake -DSOURCE_DIR=DIR -DVERSION=0.1.0 -DOUTPUT=FILE -P version.cmake
# (support/version.h). An archive without Git has no commit.
set(COMMIT)
if(EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND git rev-parse --short=8 HEAD WORKING_DIRECTORY ${SOURCE_DIR} ERROR_QUIET
                  OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
file(WRITE ${OUTPUT} "#include \"support/version.h\"
namespace relaxc {
const char* const kVersion = \"${VERSION}\";
const char* const kCommit = \"${COMMIT}\";
}  // namespace relaxc
")
