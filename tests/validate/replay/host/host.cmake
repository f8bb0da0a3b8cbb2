# A rank of a Program by itself, for tests that start several under mpirun.
if(FORESHARD_HOST_REPLAY_FOUND)
  add_executable(host_rank ${CMAKE_CURRENT_LIST_DIR}/rank_main.cc)
  target_link_libraries(host_rank PRIVATE foreshard_replay_host MPI::MPI_CXX)
endif()
