foreshard_test(program_ir_test
  SOURCES program_ir/expand_test.cc program_ir/group_test.cc program_ir/json_test.cc
          program_ir/samples.cc program_ir/token_routing_test.cc program_ir/verify_test.cc
  DEPS foreshard_program_ir ${RAPIDCHECK_LIBRARY})
