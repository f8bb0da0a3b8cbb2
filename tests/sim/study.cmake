foreshard_test(study_test
  SOURCES study/study_test.cc
  DEPS foreshard_study)
