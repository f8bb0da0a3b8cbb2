# What foreshard stands on, all from Debian's packages (./run installs them).
find_package(PkgConfig REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(TBB REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)

# Debian's libsimgrid-dev ships neither a CMake config nor a find module.
find_path(SIMGRID_INCLUDE_DIR simgrid/s4u.hpp REQUIRED)
find_library(SIMGRID_LIBRARY simgrid REQUIRED)
add_library(SimGrid::SimGrid UNKNOWN IMPORTED)
set_target_properties(SimGrid::SimGrid PROPERTIES
  IMPORTED_LOCATION ${SIMGRID_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${SIMGRID_INCLUDE_DIR}
  INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${SIMGRID_INCLUDE_DIR})

if(FORESHARD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
  find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
endif()
if(FORESHARD_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
