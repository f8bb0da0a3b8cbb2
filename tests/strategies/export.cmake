foreshard_test(export_test
  SOURCES export/program_export_test.cc program_ir/samples.cc
  DEPS foreshard_export)
