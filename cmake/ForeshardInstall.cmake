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
include(CPack)
