foreshard_test(reshard_choice_test
  SOURCES reshard/bound_test.cc reshard/cases.cc reshard/choose_test.cc reshard/price_test.cc
          reshard/program_test.cc
          simulate/small.cc
  DEPS foreshard_reshard foreshard_study)
foreshard_test(reshard_regret_test
  SOURCES reshard/cases.cc reshard/regret_test.cc
  DEPS foreshard_reshard foreshard_study)
