foreshard_test(study_test
  SOURCES study/study_test.cc
  DEPS foreshard_study)
foreshard_test(search_test
  SOURCES study/search_test.cc
  DEPS foreshard_study nlohmann_json::nlohmann_json)
