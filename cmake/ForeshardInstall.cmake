# `cmake --install build/release --prefix DIR`: the programs, the catalogue where they look for it
# (share/foreshard/configs beside bin/), the documents, and what the program says of itself: completion
# for bash and zsh, and with help2man a manual page for each command. The tree may be moved as a whole.
include(GNUInstallDirs)
set(data share/foreshard)
set(documents share/doc/foreshard)

# foreshard-replay is left out where it was not built: `./run` builds foreshard alone.
install(TARGETS foreshard RUNTIME)
install(TARGETS foreshard_simgrid LIBRARY DESTINATION lib/foreshard)
install(TARGETS foreshard-replay RUNTIME OPTIONAL)
install(DIRECTORY configs DESTINATION ${data})
install(DIRECTORY docs examples DESTINATION ${documents})
install(FILES README.md CHANGELOG.md CITATION.cff CONTRIBUTING.md LICENSE NOTICE PREDICTIONS.md SECURITY.md
  DESTINATION ${documents})

include(ForeshardPackage)

# The Python package, left out where it was not built; it finds the catalogue in share/.
if(FORESHARD_PYTHON_FOUND)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/python/foreshard DESTINATION lib/python3/dist-packages OPTIONAL
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
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)  # Apache-2.0
set(CPACK_GENERATOR TGZ)
# cpack -G DEB
set(CPACK_PACKAGE_CONTACT "The foreshard authors")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3 (>= 3.10)")
set(CPACK_STRIP_FILES ON)
include(CPack)
