foreshard_test(launch_test
  SOURCES launch/bad_files_test.cc launch/files_test.cc launch/round_trip_test.cc
  DEPS foreshard_launch fmt::fmt)
