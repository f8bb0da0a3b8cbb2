# Lists the contents of the replay bundle. For foreshard's source tree SOURCE and the folder NLOHMANN
# that contains nlohmann/json.hpp, it sets:
#   bundle_version   foreshard's version
#   bundle_files     entries "path in the bundle|file to copy"
file(READ ${SOURCE}/CMakeLists.txt bundle_root)
string(REGEX MATCH "project\\(foreshard VERSION ([0-9.]+)" bundle_match "${bundle_root}")
set(bundle_version ${CMAKE_MATCH_1})

set(bundle_files
  "CMakeLists.txt|${SOURCE}/validate/replay/bundle/CMakeLists.bundle.txt"
  "README.md|${SOURCE}/validate/replay/bundle/README.bundle.md"
  "cmake/ForeshardCuda.cmake|${SOURCE}/cmake/ForeshardCuda.cmake")
file(GLOB bundle_base RELATIVE ${SOURCE} ${SOURCE}/base/*.h ${SOURCE}/base/*.cc)
list(REMOVE_ITEM bundle_base base/progress.cc base/progress.h base/csv.cc base/csv.h base/page.cc base/page.h)
list(APPEND bundle_base base/record/forward.h base/record/record.cc base/record/record.h
  base/yaml/names.h)
file(GLOB_RECURSE bundle_layers RELATIVE ${SOURCE}
  ${SOURCE}/base/net/* ${SOURCE}/strategies/program/ir/* ${SOURCE}/validate/measurement/* ${SOURCE}/validate/replay/*)
list(FILTER bundle_layers EXCLUDE REGEX "^validate/replay/bundle/")
list(FILTER bundle_layers INCLUDE REGEX "\\.(cc|cu|h|txt)$")
foreach(file ${bundle_base} ${bundle_layers})
  list(APPEND bundle_files "${file}|${SOURCE}/${file}")
endforeach()
if(NLOHMANN)
  file(GLOB_RECURSE bundle_json RELATIVE ${NLOHMANN} ${NLOHMANN}/nlohmann/*.hpp)
  foreach(file ${bundle_json})
    list(APPEND bundle_files "third_party/${file}|${NLOHMANN}/${file}")
  endforeach()
endif()
