add_library(foreshard_options INTERFACE)
target_include_directories(foreshard_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(foreshard_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)

# foreshard_library(<name> SOURCES <file>... DEPS <lower library>...): one library per layer.
# PRIVATE_DEPS are third-party libraries that no header of the layer shows.
function(foreshard_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS;PRIVATE_DEPS")
  if(arg_SOURCES)
    add_library(${name} STATIC ${arg_SOURCES})
    target_link_libraries(${name} PUBLIC foreshard_options ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE foreshard_options ${arg_DEPS})
  endif()
endfunction()

# foreshard_test(<name> SOURCES <file>... DEPS <library>... [SLOW]): one binary, one ctest per
# TEST(). SLOW labels its tests `slow`: `./test --quick` leaves them out.
function(foreshard_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SLOW" "" "SOURCES;DEPS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE foreshard_options ${arg_DEPS} GTest::gmock_main)
  target_compile_definitions(${name} PRIVATE FORESHARD_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    FORESHARD_BINARY_DIR="${PROJECT_BINARY_DIR}")
  set(labels quick)
  if(arg_SLOW)
    set(labels slow)
  endif()
  gtest_discover_tests(${name} PROPERTIES LABELS "${labels}" DISCOVERY_TIMEOUT 60)
endfunction()

# foreshard_benchmark(<name> SOURCES <file>... DEPS <library>...): a Google Benchmark binary.
function(foreshard_benchmark name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE foreshard_options ${arg_DEPS} benchmark::benchmark)
endfunction()

# foreshard_fuzzer(<name> SOURCES <file>... DEPS <library>...): a libFuzzer binary in <build>/fuzz.
# Its first inputs are the files of tests/fuzz/corpus/<name>, where that folder exists.
function(foreshard_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE foreshard_options ${arg_DEPS})
  target_compile_definitions(${name} PRIVATE FORESHARD_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers ${name})
endfunction()
