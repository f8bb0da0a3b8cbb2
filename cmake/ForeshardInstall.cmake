# `cmake --install build/release --prefix DIR`: the programs, the catalogue where they look for it
# (share/foreshard/configs beside bin/), the documents, and what the program says of itself: completion
# for bash, zsh and fish, and with help2man a manual page for each command. The tree may be moved as a whole.
#
# `cmake --build build/release --target packages` makes packages of Debian of it, one of each component:
# foreshard (program), libforeshard-dev (library) and python3-foreshard (python).
include(GNUInstallDirs)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME program)
set(data share/foreshard)
set(documents share/doc/foreshard)

# foreshard-replay is left out where it was not built: `./run` builds foreshard alone.
install(TARGETS foreshard RUNTIME)
install(TARGETS foreshard_simgrid LIBRARY DESTINATION lib/foreshard)
install(TARGETS foreshard-replay RUNTIME OPTIONAL)
install(DIRECTORY configs DESTINATION ${data})
install(DIRECTORY docs examples DESTINATION ${documents})
install(FILES README.md CHANGELOG.md CITATION.cff CONTRIBUTING.md LICENSE NOTICE PREDICTIONS.md
  SECURITY.md THIRD_PARTY
  DESTINATION ${documents})

include(ForeshardPackage)

# The Python package, left out where it was not built; it finds the catalogue in share/.
if(FORESHARD_PYTHON_FOUND)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/python/foreshard DESTINATION lib/python3/dist-packages COMPONENT python OPTIONAL
    PATTERN __pycache__ EXCLUDE)
endif()

find_program(HELP2MAN_PROGRAM help2man)
mark_as_advanced(HELP2MAN_PROGRAM)
install(CODE "
  set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  execute_process(COMMAND \"${PROJECT_SOURCE_DIR}/tools/describe\" \${root}/bin/foreshard \${root}/share
      \"${HELP2MAN_PROGRAM}\"
    COMMAND_ERROR_IS_FATAL ANY)")

set(CPACK_PACKAGE_VENDOR "The foreshard authors")
set(CPACK_PACKAGE_CONTACT "The foreshard authors")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)  # Apache-2.0
set(CPACK_GENERATOR TGZ)
set(CPACK_STRIP_FILES ON)

set(CPACK_COMPONENTS_ALL program library)
set(CPACK_COMPONENT_LIBRARY_DEPENDS program)
set(CPACK_COMPONENT_PYTHON_DEPENDS program)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME foreshard)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "${PROJECT_DESCRIPTION}")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libforeshard-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "${FORESHARD_PACKAGE_DEBIAN}")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "${PROJECT_DESCRIPTION}: the library for C++")
set(packaged foreshard foreshard_simgrid foreshard_package)
if(TARGET foreshard-replay)
  list(APPEND packaged foreshard-replay)
endif()
if(FORESHARD_PYTHON_FOUND)
  list(APPEND CPACK_COMPONENTS_ALL python)
  list(APPEND packaged foreshard_python foreshard_python_files)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-foreshard)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  # The module is of one minor version of Python.
  math(EXPR next "${Python3_VERSION_MINOR} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.${Python3_VERSION_MINOR}), python3 (<< 3.${next})")
  set(CPACK_COMPONENT_PYTHON_DESCRIPTION "${PROJECT_DESCRIPTION}: the package for Python")
endif()
include(CPack)
add_custom_target(packages COMMAND ${CMAKE_CPACK_COMMAND} -G DEB -B ${PROJECT_BINARY_DIR}/packages
  WORKING_DIRECTORY ${PROJECT_BINARY_DIR} VERBATIM)
add_dependencies(packages ${packaged})
