foreshard_test(report_test
  SOURCES report/disturbed_test.cc report/report_test.cc report/side_by_side_test.cc report/trace_test.cc
  DEPS foreshard_report nlohmann_json::nlohmann_json rapidcheck::rapidcheck)
