/* Marks its steps: says "ready", waits for a line, does ARGUMENT steps of 2 ms (or of the
 * nanoseconds given behind it), waits for the end of its input. */
#define _POSIX_C_SOURCE 200809L
#include "culprit_annotate.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const long count = argc > 1 ? strtol(argv[1], NULL, 10) : 3;
  const struct timespec length = {0, argc > 2 ? strtol(argv[2], NULL, 10) : 2000000};
  char line[16];
  long i;
  puts("ready");
  fflush(stdout);
  if (read(0, line, 1) != 1) return 1;
  for (i = 0; i < count; ++i) {
    char name[64];
    snprintf(name, sizeof name, "step[DECODE bs=%ld toks=%ld]", i + 1, i + 1);
    CULPRIT_STEP_BEGIN(name);
    CULPRIT_STEP_BEGIN("inner");
    nanosleep(&length, NULL);
    CULPRIT_STEP_END();
    CULPRIT_MARK("half");
    CULPRIT_STEP_END();
  }
  CULPRIT_STEP_BEGIN("train");
  CULPRIT_STEP_END();
  puts("done");
  fflush(stdout);
  return read(0, line, 1) >= 0 ? 0 : 1;
}
