foreshard_test(schedule_test
  SOURCES schedule/schedule_contract_test.cc schedule/schedule_test.cc
  DEPS foreshard_schedule)
