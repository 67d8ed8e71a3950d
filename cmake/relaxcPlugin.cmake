# Plug-ins (docs/plugins.md): a shared object has no copy of the compiler; it uses that of the program that loads it.

# relaxc_add_plugin(NAME SOURCES...): the target NAME, libNAME.so, for `relaxc --plugin` and load_plugins().
function(relaxc_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_include_directories(${name} SYSTEM PRIVATE
    $<TARGET_PROPERTY:relaxc::compiler,INTERFACE_INCLUDE_DIRECTORIES>
    $<TARGET_PROPERTY:relaxc::runtime,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(${name} PRIVATE fmt::fmt)
endfunction()

# relaxc_host_plugins(TARGET): a program that loads plug-ins holds all of the compiler and shows it to them.
function(relaxc_host_plugins target)
  target_link_options(${target} PRIVATE "LINKER:--whole-archive" "$<TARGET_FILE:relaxc::compiler>"
                      "$<TARGET_FILE:relaxc::runtime>" "LINKER:--no-whole-archive")
  target_link_libraries(${target} PRIVATE relaxc::compiler)
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
endfunction()
