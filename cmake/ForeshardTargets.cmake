add_library(foreshard_options INTERFACE)
target_include_directories(foreshard_options INTERFACE ${PROJECT_SOURCE_DIR})
set(foreshard_warnings -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
# For those who change the sources: a user's compiler may see more.
set(strict OFF)
if(DEFINED ENV{CI})
  set(strict ON)
endif()
option(FORESHARD_WARNINGS_AS_ERRORS "A warning ends the build (default: where CI is set)" ${strict})
if(FORESHARD_WARNINGS_AS_ERRORS)
  list(APPEND foreshard_warnings -Werror)
  # What GCC finds only after inlining depends on what was inlined: on the level of optimisation, on
  # which sources are compiled together, even on the length of the folder's name. It stays a warning.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    foreach(family array-bounds dangling-pointer free-nonheap-object maybe-uninitialized nonnull
            null-dereference restrict stringop-overflow stringop-overread stringop-truncation
            use-after-free)
      list(APPEND foreshard_warnings -Wno-error=${family})
    endforeach()
  endif()
endif()
target_compile_options(foreshard_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:${foreshard_warnings}>)
# The Python module is a shared object. Nobody replaces a function of it, so that calls within it may be
# inlined as in a program.
target_compile_options(foreshard_options INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-semantic-interposition>)
# GCC 12 reports impossible overlaps in inlined std::string concatenation (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(foreshard_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

# Without a compiler cache a build starts from nothing: then the sources of a library are compiled
# a dozen at a time, which parses the headers they share once, and tests share precompiled headers. With
# a cache, which keeps each source on its own and would have to hash 110 MB of precompiled headers for
# each, neither pays; such builds are also the ones that notice a missing #include. In CI, whose cache
# does not know what has just changed, sources are compiled together in either case.
set(cached OFF)
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES ccache)
  set(cached ON)
endif()
set(together ON)
if(cached AND NOT DEFINED ENV{CI})
  set(together OFF)
endif()
set(precompiled ON)
if(cached)
  set(precompiled OFF)
endif()
option(FORESHARD_UNITY "Compile several sources of a library or a test at once" ${together})
# Reading headers is about half the work of a compile: the more sources together, the less work in all,
# and the fewer processors that share it.
set(batch 12)
if(DEFINED ENV{CI})
  set(batch 40)
endif()
set(FORESHARD_UNITY_BATCH ${batch} CACHE STRING "The most sources that are compiled at once")
option(FORESHARD_TEST_PCH "Precompile the headers of GoogleTest" ${precompiled})

# foreshard_rarely_run(<target>): compiled at -O1 in a release, which halves the compile time of code
# in which no time is spent.
function(foreshard_rarely_run name)
  target_compile_options(${name} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
endfunction()

# foreshard_library(<name> [HOT] SOURCES <file>... DEPS <lower library>...): one library per layer.
# PRIVATE_DEPS are third-party libraries that no header of the layer shows. HOT are the libraries in
# which a prediction, a conversion or a replay spends its time: only they are optimised in full.
function(foreshard_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "HOT" "" "SOURCES;DEPS;PRIVATE_DEPS")
  if(arg_SOURCES)
    add_library(${name} STATIC ${arg_SOURCES})
    target_link_libraries(${name} PUBLIC foreshard_options ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS})
    set_target_properties(${name} PROPERTIES UNITY_BUILD ${FORESHARD_UNITY} UNITY_BUILD_BATCH_SIZE ${FORESHARD_UNITY_BATCH}
      POSITION_INDEPENDENT_CODE ON)
    if(NOT arg_HOT)
      foreshard_rarely_run(${name})
    endif()
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE foreshard_options ${arg_DEPS})
  endif()
endfunction()

if(FORESHARD_TESTS AND FORESHARD_TEST_PCH)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/test_pch.cc CONTENT "")
  add_library(foreshard_test_pch OBJECT ${PROJECT_BINARY_DIR}/generated/test_pch.cc)
  target_link_libraries(foreshard_test_pch PRIVATE foreshard_options GTest::gmock)
  target_precompile_headers(foreshard_test_pch PRIVATE
    <gmock/gmock.h> <gtest/gtest.h> <map> <string> <vector>)
  set_target_properties(foreshard_test_pch PROPERTIES PCH_WARN_INVALID OFF)
  foreshard_rarely_run(foreshard_test_pch)
endif()

# foreshard_discover(<test binary> <GoogleTest pattern> <property> <value>...): one ctest per TEST() that
# the pattern matches.
function(foreshard_discover name pattern)
  # Values are left out of the names: of a struct they are bytes, other ones in each build.
  gtest_discover_tests(${name} NO_PRETTY_VALUES TEST_FILTER "${pattern}" DISCOVERY_TIMEOUT 60
    PROPERTIES ${ARGN})
endfunction()

# foreshard_shards(<test binary> <GoogleTest pattern> <property> <value>...): all tests that the pattern
# matches in a few ctests, since a process for each of some thousand short ones takes minutes to start.
function(foreshard_shards name pattern)
  set(shards 4)
  foreach(shard RANGE 1 ${shards})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}.${shard}of${shards} COMMAND ${name} --gtest_brief=1 "--gtest_filter=${pattern}")
    set_tests_properties(${name}.${shard}of${shards} PROPERTIES
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}" ${ARGN})
  endforeach()
endfunction()

# foreshard_test(<name> SOURCES <file>... DEPS <library>... [SLOW <pattern>...] [SERIAL <pattern>...]
# [SLOW_SERIAL <pattern>...] [GPU] [APART]): one binary. Each test is matched by one pattern at most. Slow
# ones have the label `slow`: `./test --quick` leaves them out. Serial ones are of processes and
# wall-clock time, which others beside them would disturb. APART: each test has a process of its own, as
# kernels of hosts change how the floating-point unit rounds.
function(foreshard_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "GPU;APART" "" "SOURCES;DEPS;SLOW;SERIAL;SLOW_SERIAL")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE foreshard_options ${arg_DEPS} GTest::gmock_main)
  target_compile_definitions(${name} PRIVATE FORESHARD_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    FORESHARD_BINARY_DIR="${PROJECT_BINARY_DIR}")
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${FORESHARD_UNITY} UNITY_BUILD_BATCH_SIZE ${FORESHARD_UNITY_BATCH})
  foreshard_rarely_run(${name})
  if(TARGET foreshard_test_pch)
    target_precompile_headers(${name} REUSE_FROM foreshard_test_pch)
    set_target_properties(${name} PROPERTIES PCH_WARN_INVALID OFF)
  endif()
  if(arg_GPU)
    foreshard_discover(${name} "*" LABELS gpu RUN_SERIAL TRUE)
    return()
  endif()
  string(JOIN ":" others ${arg_SLOW} ${arg_SERIAL} ${arg_SLOW_SERIAL})
  if(arg_APART)
    foreshard_discover(${name} "-${others}" LABELS quick)
  else()
    foreshard_shards(${name} "-${others}" LABELS quick COST 100)
  endif()
  # COST: ctest begins with slow ones, also where it has not yet seen how long they take.
  set(properties_SLOW LABELS slow COST 1000)
  set(properties_SERIAL LABELS quick RUN_SERIAL TRUE)
  set(properties_SLOW_SERIAL LABELS slow RUN_SERIAL TRUE)
  foreach(kind SLOW SERIAL SLOW_SERIAL)
    if(arg_${kind})
      string(JOIN ":" patterns ${arg_${kind}})
      foreshard_discover(${name} "${patterns}" ${properties_${kind}})
    endif()
  endforeach()
endfunction()

# foreshard_benchmark(<name> SOURCES <file>... DEPS <library>...): a Google Benchmark binary. No test
# runs it, so that it is built by its name, or with all others by the target `benchmarks`.
add_custom_target(benchmarks)
function(foreshard_benchmark name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  add_executable(${name} EXCLUDE_FROM_ALL ${arg_SOURCES})
  add_dependencies(benchmarks ${name})
  target_link_libraries(${name} PRIVATE foreshard_options ${arg_DEPS} benchmark::benchmark)
endfunction()

# foreshard_fuzzer(<name> DEPS <library>...): the fuzzer in <name>.cc, a libFuzzer binary in <build>/fuzz
# if FORESHARD_FUZZERS, else a source of the test that replays the inputs of all fuzzers.
function(foreshard_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS")
  if(NOT FORESHARD_FUZZERS)
    set_property(GLOBAL APPEND PROPERTY foreshard_fuzzer_sources ${name}.cc)
    set_property(GLOBAL APPEND PROPERTY foreshard_fuzzer_libraries ${arg_DEPS})
    return()
  endif()
  add_executable(${name} ${name}.cc)
  target_link_libraries(${name} PRIVATE foreshard_options ${arg_DEPS})
  target_compile_definitions(${name} PRIVATE FORESHARD_LIBFUZZER
    FORESHARD_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers ${name})
endfunction()
