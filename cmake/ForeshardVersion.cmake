# The target foreshard_version offers "foreshard_version.h": what this build is, for `version` and
# for the reports. The commit lies in a file that is rewritten only when HEAD moves; let one source
# include the header, so that a commit recompiles that source and nothing else.
#
# As a script (cmake -P) this file is what rewrites it.

if(CMAKE_SCRIPT_MODE_FILE)
  set(FORESHARD_COMMIT "unknown")
  if(GIT)
    execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --short=12 HEAD
      OUTPUT_VARIABLE answer RESULT_VARIABLE code OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(code EQUAL 0)
      set(FORESHARD_COMMIT ${answer})
    endif()
  endif()
  configure_file(${CMAKE_CURRENT_LIST_DIR}/foreshard_commit.h.in ${HEADER} @ONLY)
  return()
endif()

find_program(GIT_PROGRAM git)
mark_as_advanced(GIT_PROGRAM)
set(generated ${PROJECT_BINARY_DIR}/generated)

# Git's log of where HEAD was changes with every commit and checkout; a source archive has none.
set(head_log)
if(GIT_PROGRAM)
  execute_process(COMMAND ${GIT_PROGRAM} -C ${PROJECT_SOURCE_DIR} rev-parse --git-path logs/HEAD
    OUTPUT_VARIABLE answer RESULT_VARIABLE code OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(code EQUAL 0)
    get_filename_component(answer ${answer} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
    if(EXISTS ${answer})
      set(head_log ${answer})
    endif()
  endif()
endif()
set(git_argument "-DGIT=")
if(GIT_PROGRAM)
  set(git_argument "-DGIT=${GIT_PROGRAM}")
endif()
add_custom_command(OUTPUT ${generated}/foreshard_commit.h
  COMMAND ${CMAKE_COMMAND} ${git_argument} -DSOURCE=${PROJECT_SOURCE_DIR}
    -DHEADER=${generated}/foreshard_commit.h -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${head_log} ${CMAKE_CURRENT_LIST_DIR}/foreshard_commit.h.in ${CMAKE_CURRENT_LIST_FILE}
  COMMENT "Noting the commit" VERBATIM)
add_custom_target(foreshard_commit DEPENDS ${generated}/foreshard_commit.h)

set(FORESHARD_OPTIONAL_PACKAGES)
if(FORESHARD_CUDA_FOUND)
  string(APPEND FORESHARD_OPTIONAL_PACKAGES " CUDA-${CUDAToolkit_VERSION} NCCL")
endif()
if(FORESHARD_MPI_FOUND)
  string(APPEND FORESHARD_OPTIONAL_PACKAGES " MPI-${MPI_CXX_VERSION}")
endif()
string(STRIP "${FORESHARD_OPTIONAL_PACKAGES}" FORESHARD_OPTIONAL_PACKAGES)
configure_file(${CMAKE_CURRENT_LIST_DIR}/foreshard_version.h.in ${generated}/foreshard_version.h @ONLY)

add_library(foreshard_version INTERFACE)
target_include_directories(foreshard_version INTERFACE ${generated})
add_dependencies(foreshard_version foreshard_commit)
