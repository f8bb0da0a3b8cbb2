# What foreshard stands on, all from Debian's packages: tools/packages.txt names them and ./run
# installs them. Optional parts are looked for, and foreshard_print_summary() says what was found.

find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

find_package(Boost 1.74 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Ceres 2.1 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(EXPAT REQUIRED)
find_package(Protobuf REQUIRED)
find_package(ZLIB REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(tomlplusplus REQUIRED)

# foreshard_imported(<target> <library> <include dir>): a target for a library that Debian ships
# without a usable CMake config.
function(foreshard_imported target library include_dir)
  add_library(${target} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES
    IMPORTED_LOCATION ${library}
    INTERFACE_INCLUDE_DIRECTORIES ${include_dir}
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${include_dir})
endfunction()

find_path(SIMGRID_INCLUDE_DIR simgrid/s4u.hpp REQUIRED)
find_library(SIMGRID_LIBRARY simgrid REQUIRED)
foreshard_imported(SimGrid::SimGrid ${SIMGRID_LIBRARY} ${SIMGRID_INCLUDE_DIR})

find_path(CBC_INCLUDE_DIR coin/Cbc_C_Interface.h REQUIRED)
find_library(CBC_SOLVER_LIBRARY CbcSolver REQUIRED)
foreshard_imported(Cbc::cbc ${CBC_SOLVER_LIBRARY} ${CBC_INCLUDE_DIR})

if(FORESHARD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
  find_path(RAPIDCHECK_INCLUDE_DIR rapidcheck.h REQUIRED)
  find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
  foreshard_imported(rapidcheck::rapidcheck ${RAPIDCHECK_LIBRARY} ${RAPIDCHECK_INCLUDE_DIR})
endif()
if(FORESHARD_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()

# foreshard_wanted(<name> <found> <what>): turns AUTO into the answer and refuses an unmet ON.
function(foreshard_wanted name found what)
  if(${name} STREQUAL "ON" AND NOT found)
    message(FATAL_ERROR "${name} is ON, but ${what} was not found. Install it, or say -D${name}=AUTO.")
  endif()
endfunction()

include(ForeshardCuda)
foreshard_wanted(FORESHARD_CUDA ${FORESHARD_CUDA_FOUND} "${FORESHARD_CUDA_MISSING}")

set(FORESHARD_MPI_FOUND FALSE)
if(NOT FORESHARD_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(FORESHARD_MPI_FOUND TRUE)
  endif()
  foreshard_wanted(FORESHARD_MPI ${FORESHARD_MPI_FOUND} "an MPI library")
endif()

# BLAS with its C interface, beside MPI what replays on the host need. One thread is all that a rank
# uses, so a serial library is best; OpenBLAS is asked for first.
set(FORESHARD_HOST_REPLAY_FOUND FALSE)
if(FORESHARD_MPI_FOUND)
  set(BLA_VENDOR OpenBLAS)
  find_package(BLAS QUIET)
  if(NOT BLAS_FOUND)
    unset(BLA_VENDOR)
    find_package(BLAS QUIET)
  endif()
  unset(BLA_VENDOR)
  find_path(CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas openblas-serial openblas-pthread)
  mark_as_advanced(CBLAS_INCLUDE_DIR)
  if(BLAS_FOUND AND CBLAS_INCLUDE_DIR)
    set(FORESHARD_HOST_REPLAY_FOUND TRUE)
    add_library(ForeshardBlas::cblas INTERFACE IMPORTED GLOBAL)
    set_target_properties(ForeshardBlas::cblas PROPERTIES
      INTERFACE_LINK_LIBRARIES "${BLAS_LIBRARIES}"
      INTERFACE_INCLUDE_DIRECTORIES ${CBLAS_INCLUDE_DIR}
      INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${CBLAS_INCLUDE_DIR})
  endif()
endif()

# ONNX, to import graphs. Debian's libonnx is built with the ML operators and this namespace; its
# headers want to be told so.
set(FORESHARD_ONNX_FOUND FALSE)
if(NOT FORESHARD_ONNX STREQUAL "OFF")
  find_path(ONNX_INCLUDE_DIR onnx/shape_inference/implementation.h)
  find_library(ONNX_LIBRARY onnx)
  find_library(ONNX_PROTO_LIBRARY onnx_proto)
  mark_as_advanced(ONNX_INCLUDE_DIR ONNX_LIBRARY ONNX_PROTO_LIBRARY)
  if(ONNX_INCLUDE_DIR AND ONNX_LIBRARY AND ONNX_PROTO_LIBRARY)
    set(FORESHARD_ONNX_FOUND TRUE)
    foreshard_imported(ONNX::onnx ${ONNX_LIBRARY} ${ONNX_INCLUDE_DIR})
    set_target_properties(ONNX::onnx PROPERTIES
      INTERFACE_COMPILE_DEFINITIONS "ONNX_ML=1;ONNX_NAMESPACE=onnx"
      INTERFACE_LINK_LIBRARIES "${ONNX_PROTO_LIBRARY};protobuf::libprotobuf")
  endif()
  foreshard_wanted(FORESHARD_ONNX ${FORESHARD_ONNX_FOUND} "libonnx")
endif()

# cpp-httplib, to serve pages. Debian compiles it with the features that its .pc file names, on which the layout of
# its classes depends.
set(FORESHARD_HTTP_FOUND FALSE)
if(NOT FORESHARD_HTTP STREQUAL "OFF")
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(httplib QUIET IMPORTED_TARGET GLOBAL cpp-httplib)
  endif()
  if(httplib_FOUND)
    set(FORESHARD_HTTP_FOUND TRUE)
    add_library(Httplib::httplib INTERFACE IMPORTED GLOBAL)
    target_link_libraries(Httplib::httplib INTERFACE PkgConfig::httplib)
  endif()
  foreshard_wanted(FORESHARD_HTTP ${FORESHARD_HTTP_FOUND} "libcpp-httplib with pkg-config")
endif()

# Python with its headers and pybind11, for the package foreshard.
set(FORESHARD_PYTHON_FOUND FALSE)
if(NOT FORESHARD_PYTHON STREQUAL "OFF")
  find_package(Python3 3.10 QUIET COMPONENTS Interpreter Development.Module)
  find_path(PYBIND11_INCLUDE_DIR pybind11/pybind11.h)
  mark_as_advanced(PYBIND11_INCLUDE_DIR)
  if(Python3_FOUND AND PYBIND11_INCLUDE_DIR)
    set(FORESHARD_PYTHON_FOUND TRUE)
    add_library(ForeshardPython::pybind11 INTERFACE IMPORTED GLOBAL)
    set_target_properties(ForeshardPython::pybind11 PROPERTIES
      INTERFACE_LINK_LIBRARIES Python3::Module
      INTERFACE_INCLUDE_DIRECTORIES ${PYBIND11_INCLUDE_DIR}
      INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${PYBIND11_INCLUDE_DIR};${Python3_INCLUDE_DIRS}")
  endif()
  foreshard_wanted(FORESHARD_PYTHON ${FORESHARD_PYTHON_FOUND} "Python 3.10 with its headers and pybind11")
endif()

# One line per optional part: what it is for and whether this build can have it.
function(foreshard_print_summary)
  set(cuda "${FORESHARD_CUDA_MISSING} not found (only foreshard-replay on GPUs needs it)")
  if(FORESHARD_CUDA STREQUAL "OFF")
    set(cuda "off")
  elseif(FORESHARD_CUDA_FOUND)
    set(cuda "CUDA ${CUDAToolkit_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}, ${NCCL_INCLUDE_DIR}/nccl.h")
  endif()
  set(mpi "not found (only replays on the host and studies spread over machines need it)")
  if(FORESHARD_MPI STREQUAL "OFF")
    set(mpi "off")
  elseif(FORESHARD_MPI_FOUND)
    set(mpi "MPI ${MPI_CXX_VERSION}")
  endif()
  set(blas "not looked for (only replays on the host need it, beside MPI)")
  if(FORESHARD_HOST_REPLAY_FOUND)
    set(blas "${BLAS_LIBRARIES}")
  elseif(FORESHARD_MPI_FOUND)
    set(blas "not found (only replays on the host need it; libopenblas-serial-dev on Debian)")
  endif()
  set(onnx "not found (only graphs from .onnx files need it)")
  if(FORESHARD_ONNX STREQUAL "OFF")
    set(onnx "off")
  elseif(FORESHARD_ONNX_FOUND)
    set(onnx "${ONNX_LIBRARY}")
  endif()
  set(http "not found (only foreshard serve needs it; libcpp-httplib-dev and pkg-config on Debian)")
  if(FORESHARD_HTTP STREQUAL "OFF")
    set(http "off")
  elseif(FORESHARD_HTTP_FOUND)
    set(http "cpp-httplib ${httplib_VERSION}")
  endif()
  set(python "headers or pybind11 not found (only `import foreshard` needs them)")
  if(FORESHARD_PYTHON STREQUAL "OFF")
    set(python "off")
  elseif(FORESHARD_PYTHON_FOUND)
    set(python "Python ${Python3_VERSION}, ${PYBIND11_INCLUDE_DIR}/pybind11")
  endif()
  message(STATUS "foreshard ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, "
                 "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  message(STATUS "  CUDA + NCCL  ${cuda}")
  message(STATUS "  MPI          ${mpi}")
  message(STATUS "  BLAS         ${blas}")
  message(STATUS "  ONNX         ${onnx}")
  message(STATUS "  HTTP         ${http}")
  message(STATUS "  Python       ${python}")
  message(STATUS "  tests ${FORESHARD_TESTS}, benchmarks ${FORESHARD_BENCHMARKS}, "
                 "fuzzers ${FORESHARD_FUZZERS}")
endfunction()
