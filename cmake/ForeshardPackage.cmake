# The installed package: libforeshard.a with all that foreshard/foreshard.h stands on, and what
# find_package(foreshard) reads. One archive of all layers, so that those who link it need to know
# nothing of them.

# foreshard_closure(<target> <layers> <others>): the static libraries of ours that <target> is linked
# with, itself among them, and the targets of others.
function(foreshard_closure target layers others)
  set(ours)
  set(foreign)
  set(fresh ${target})
  while(fresh)
    list(POP_FRONT fresh one)
    if(one IN_LIST ours OR one IN_LIST foreign)
      continue()
    endif()
    if(NOT one MATCHES "^foreshard_")
      list(APPEND foreign ${one})
      continue()
    endif()
    list(APPEND ours ${one})
    set(links)
    foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
      get_target_property(names ${one} ${property})
      foreach(name IN LISTS names)  # those of PRIVATE as a generator expression
        string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" name "${name}")
        if(name)
          list(APPEND links ${name})
        endif()
      endforeach()
    endforeach()
    list(APPEND fresh ${links})
  endwhile()
  set(archives)
  foreach(one IN LISTS ours)
    get_target_property(kind ${one} TYPE)
    if(kind STREQUAL "STATIC_LIBRARY")
      list(APPEND archives ${one})
    endif()
  endforeach()
  set(${layers} ${archives} PARENT_SCOPE)
  set(${others} ${foreign} PARENT_SCOPE)
endfunction()

foreshard_closure(foreshard_api layers others)
set(objects)
foreach(layer IN LISTS layers)
  list(APPEND objects $<TARGET_OBJECTS:${layer}>)
endforeach()
add_library(foreshard_package STATIC ${objects})
set_target_properties(foreshard_package PROPERTIES OUTPUT_NAME foreshard LINKER_LANGUAGE CXX)

# Headers alone are not needed to link; foreshardConfig.cmake finds the others.
list(REMOVE_ITEM others Boost::headers CLI11::CLI11 nlohmann_json::nlohmann_json)
set(found_by_package fmt::fmt yaml-cpp OpenSSL::Crypto ONNX::onnx Threads::Threads Ceres::ceres EXPAT::EXPAT
  protobuf::libprotobuf ZLIB::ZLIB Httplib::httplib SQLite::SQLite3 tomlplusplus::tomlplusplus Cbc::cbc)
foreach(one IN LISTS others)
  if(NOT one IN_LIST found_by_package)
    message(FATAL_ERROR "cmake/foreshardConfig.cmake.in does not find ${one}, which the library needs")
  endif()
endforeach()
set(FORESHARD_PACKAGE_LINKS ${others})

# What Debian calls them.
set(debian_fmt libfmt-dev)
set(debian_yaml-cpp libyaml-cpp-dev)
set(debian_OpenSSL libssl-dev)
set(debian_ONNX libonnx-dev)
set(debian_protobuf libprotobuf-dev)
set(debian_Ceres libceres-dev)
set(debian_EXPAT libexpat1-dev)
set(debian_Httplib libcpp-httplib-dev)
set(debian_ZLIB zlib1g-dev)
set(debian_SQLite libsqlite3-dev)
set(debian_tomlplusplus libtomlplusplus-dev)
set(debian_Cbc coinor-libcbc-dev)
set(debian)
foreach(one IN LISTS others)
  string(REGEX REPLACE "::.*" "" one ${one})
  list(APPEND debian ${debian_${one}})
endforeach()
list(JOIN debian ", " FORESHARD_PACKAGE_DEBIAN)

include(CMakePackageConfigHelpers)
set(package lib/cmake/foreshard)
set(library lib)
set(headers include)
set(catalogue ${data}/configs)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/foreshardConfig.cmake.in
  ${PROJECT_BINARY_DIR}/generated/foreshardConfig.cmake
  INSTALL_DESTINATION ${package} PATH_VARS library headers catalogue
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/foreshardConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)

# Left out where it was not built, as by `./run`: then the package says so.
install(TARGETS foreshard_package ARCHIVE DESTINATION ${library} COMPONENT library OPTIONAL)
install(DIRECTORY library/foreshard DESTINATION ${headers} COMPONENT library)
install(FILES ${PROJECT_BINARY_DIR}/generated/foreshardConfig.cmake
  ${PROJECT_BINARY_DIR}/generated/foreshardConfigVersion.cmake DESTINATION ${package}
  COMPONENT library)
