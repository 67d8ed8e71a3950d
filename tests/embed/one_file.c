/* A program in C that has the runtime linked in and runs an artifact of examples/digits once. Usage: one_file ARTIFACT */
#include <relaxc/relaxc.h>
#include <stdio.h>

int main(int argc, char** argv) {
  float image[64] = {0}, probability[10];
  int64_t in_shape[] = {1, 1, 8, 8}, out_shape[] = {1, 10};
  DLTensor in = {image, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, in_shape, NULL, 0};
  DLTensor out = {probability, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, out_shape, NULL, 0};
  relaxc_program* program = NULL;
  relaxc_session* session = NULL;
  if (argc != 2 || relaxc_load(argv[1], NULL, &program) || relaxc_session_new(program, NULL, &session) ||
      relaxc_run_into(session, NULL, &in, 1, &out, 1))
    return fprintf(stderr, "%s\n", relaxc_error_message()), 1;
  float sum = 0;
  for (int i = 0; i < 10; ++i) sum += probability[i];
  printf("%.3f\n", sum);
  relaxc_session_release(session);
  relaxc_program_release(program);
}
